"""The retriever learns beside what it serves: versions, what is kept out, rollback, kills, two at once."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from mneme.core.errors import BadInput, LedgerMismatch, NotFound, StorageFailure
from mneme.core.settings import settings
from mneme.graphs.retriever_training import builder
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.pools import look_up, retrievers_of
from mneme.nodes.sharing.retriever_judging import Judging, better
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.lessons import Graded, Measure, RetrieverLesson, RetrieverLessons, labelled
from mneme.stores.pools.memory_pool import MemoryPool, Pair, Pooled, asked
from mneme.stores.pools.retrievers import Retriever, Retrievers
from tests.doubles.embedding import WordEmbedder
from tests.doubles.tiny_encoder import WIDE

SEEDS = Path(__file__).parents[2] / "library" / "pairs"
STORED = Change(reason="stored", actor="test")
QUESTION = "Write a pun about a baker and his oven."


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two homes once, for tests to copy: in `taught`, what the pool in `filled` holds was learned."""
    place = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MNEME_HOME", str(place / "taught"))
        settings.cache_clear()
        asyncio.run(_prepare(place))
    settings.cache_clear()
    return place


async def _prepare(place: Path) -> None:
    async with opened(place / "taught") as pool:
        await store(pool, shipped("puzzle", "riddle", "pun"))
    shutil.copytree(place / "taught", place / "filled")
    async with opened(place / "taught") as pool:
        await kept_version(pool)


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[MemoryPool]:
    """Open the pool of a home."""
    ledger = await open_ledger(str(home / "ledger"), WordEmbedder())
    yield MemoryPool(ledger, "local", "wit")
    await ledger.close()


@pytest.fixture
async def pool(prepared: Path, own_home: Path) -> AsyncIterator[MemoryPool]:
    """Give a pool with the shipped jokes and verses, of which nothing has been learned."""
    shutil.copytree(prepared / "filled", own_home)
    async with opened(own_home) as filled:
        yield filled


@pytest.fixture
async def taught(prepared: Path, own_home: Path) -> AsyncIterator[MemoryPool]:
    """Give a pool with the shipped jokes and verses, and the version that learned from them."""
    shutil.copytree(prepared / "taught", own_home)
    async with opened(own_home) as learned:
        yield learned


def shipped(*agents: str, few: int | None = None) -> list[Pair]:
    """Give shipped pairs whose questions name their kind: the double of an embedder knows words alone."""
    items = [
        (agent, json.loads(line))
        for agent in agents
        for line in (SEEDS / f"{agent}.jsonl").read_text(encoding="utf-8").splitlines()[:few]
    ]
    return [
        Pair(
            prompt=f"{agent}! {item['question']}", answer=item["answer"], agent=agent, domain="wit", score=90
        )
        for agent, item in items
    ]


async def store(pool: MemoryPool, pairs: list[Pair]) -> None:
    for pair in pairs:
        await pool.add(pair, change=STORED)
        await RetrieverLessons(pool).open_all([Pooled(key=pair.key, pair=pair)], change=STORED)


async def train(pool: MemoryPool, **context: Any) -> dict[str, Any]:
    graph = builder.compile(store=LedgerStore(pool.ledger))
    given = PoolContext(**{"grader": "rules", "learning": "projection", **context})
    ended: dict[str, Any] = await graph.ainvoke({"pool": pool.pool}, context=given)
    return ended


async def kept_version(pool: MemoryPool, seed: int = 0) -> tuple[Retrievers, Retriever]:
    """Train on all that waits; return the version that was kept last."""
    await train(pool, seed=seed)
    retrievers = await retrievers_of(pool)
    kept = [each for each in await retrievers.all() if each.kept]
    assert kept, "the shipped jokes and puzzles teach something"
    return retrievers, kept[-1]


async def successor(retrievers: Retrievers, first: Retriever, by: float = -1.0) -> Retriever:
    """Let a second version serve, with other weights."""
    weights = await retrievers.weights(first.number)
    name = await asyncio.to_thread(retrievers.store, weights | {"up": np.float32(by) * weights["up"]})
    number = await retrievers.count() + 1
    second = first.model_copy(update={"number": number, "parent": first.number, "weights": name})
    await retrievers.record(second, change=STORED)
    await retrievers.serve(number, instead_of=first.number, change=STORED)
    await retrievers.prune()
    return second


def stems(home: Path) -> list[str]:
    return [each.stem for each in home.glob("retrievers/*/*")]


def file_of(home: Path, version: Retriever) -> Path:
    (found,) = (home / "retrievers").glob(f"*/{version.weights}.safetensors")
    return found


async def test_what_was_stored_is_learned_and_logged(taught: MemoryPool) -> None:
    retrievers, first = await kept_version(taught)
    assert (first.learning, first.seed, first.device) == ("projection", 0, "cpu")
    assert first.losses[-1] < first.losses[0] and first.seconds > 0
    assert first.after.held_out >= 8
    assert first.after.kind is not None and first.before.kind is not None
    assert first.after.kind >= first.before.kind and set(first.gains) == {"serving", "untrained"}
    assert first.reason.startswith("Kept: ") and "of the asker's kind" in first.reason
    assert await retrievers.get(first.number) == first
    assert await retrievers.serving() == first.number
    number, vector, *_ = await look_up(taught, QUESTION)
    assert number == first.number
    assert vector != pytest.approx(await taught.ledger.vector_of(QUESTION))
    assert len(await taught.retrieve(QUESTION, 3, vector=vector)) == 3


@pytest.mark.long
async def test_every_lesson_is_learned_once_and_held_out_ones_never(pool: MemoryPool) -> None:
    await train(pool)
    assert (await train(pool))["why"] == "No memory is new.", "one run learns from all that waits"
    versions = await (await retrievers_of(pool)).all()
    kept = [key for version in versions if version.kept for key in version.memories]
    assert len(kept) == len(set(kept)), "what a refused version learned is learned again, no other"
    lessons = await RetrieverLessons(pool).of([*dict.fromkeys(k for each in versions for k in each.memories)])
    assert {each.status for each in lessons if each.key in kept} <= {"learned"}
    assert {each.status for each in lessons} <= {"learned", "refused"}
    trained = [each for each in lessons if not each.is_held_out]
    assert versions[-1].positives == sum(len(each.positives) for each in trained)
    assert versions[-1].negatives == sum(len(each.negatives) for each in trained)
    assert 0 < versions[-1].after.held_out <= len(lessons) - len(trained)
    assert await RetrieverLessons(pool).count_on("waiting") == 0


async def test_a_version_that_retrieves_worse_is_kept_out(
    taught: MemoryPool, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    retrievers, first = await kept_version(taught)
    before = await look_up(taught, QUESTION)
    monkeypatch.setattr("mneme.models.retriever.projection.LEARNING_RATE", 20.0)
    await store(taught, shipped("limerick"))
    bad = Retriever.model_validate((await train(taught))["retriever"])
    assert not bad.kept and bad.reason.startswith("Kept out:")
    assert (await retrievers.get(bad.number)).reason == bad.reason
    assert await retrievers.serving() == first.number
    assert await look_up(taught, QUESTION) == before
    assert bad.weights not in stems(own_home)
    with pytest.raises(BadInput, match="cannot be used"):
        await retrievers.roll_back(bad.number, change=STORED)


def judging(kind: Sequence[float], told_apart: Sequence[float] = (0.5,) * 20) -> Judging:
    return Judging(kind, told_apart, (), 0.5)


OLD = judging([0.6] * 40)
NOISE = [0.0, 1.0] * 20


@pytest.mark.parametrize(
    ("fresh", "serving", "kept", "told"),
    [
        (judging([0.9] * 40), OLD, True, "Kept: better"),
        (judging([0.6] * 40), OLD, True, "Kept: no worse"),
        (judging([*[0.6] * 39, 0.4]), OLD, True, "Kept: no worse"),  # by a hair, and shown to be no more
        (judging([0.3] * 40), OLD, False, "fewer than serving"),
        (judging([*[0.9] * 4, *[0.3] * 4]), judging([0.6] * 8), False, "is not shown"),
        (judging(NOISE), judging(NOISE[::-1]), False, "is not shown"),
        (judging([0.9] * 40, [0.2] * 20), OLD, False, "apart worse"),
    ],
)
def test_a_version_serves_where_it_is_shown_to_be_no_worse(
    fresh: Judging, serving: Judging, kept: bool, told: str
) -> None:
    is_kept, reason, gains = better(fresh, serving, serving)
    assert is_kept is kept and told in reason, reason
    assert set(gains) == {"serving", "untrained"}


def test_many_small_losses_do_not_add_up() -> None:
    """What is no worse than its parent is still held against the untrained embedder."""
    kept, reason, _ = better(judging([0.5] * 40), judging([0.5] * 40), OLD)
    assert not kept and "fewer than untrained" in reason


def grades(*values: float, measure: Measure = "grade") -> list[Graded]:
    return [Graded(key=f"{n:02}", contradiction=value, measure=measure) for n, value in enumerate(values)]


LESSON = RetrieverLesson(key="ff", question="?")


@pytest.mark.parametrize(
    ("given", "positives", "negatives"),
    [
        (grades(0.1, 0.2, 0.3, 0.7, 0.8, 0.9), ["00", "01", "02"], ["03", "04", "05"]),
        (grades(*[0.2] * 11), [], []),
        (grades(*[0.2] * 11, 0.9), [], ["11"]),  # the eleven cannot be told apart: none is chosen by its key
        (grades(0.50, 0.51, 0.52, 0.53), [], []),
        (grades(0.50, 0.505, 0.525, 0.53, measure="likelihood"), ["00", "01"], ["02", "03"]),
    ],
)
def test_no_label_comes_of_the_order_of_keys(
    given: list[Graded], positives: list[str], negatives: list[str]
) -> None:
    for candidates in (given, given[::-1]):
        found = labelled(LESSON, candidates, 6)
        assert (found.positives, found.negatives) == (positives, negatives)


async def test_what_a_refused_version_learned_is_learned_again(
    taught: MemoryPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store(taught, shipped("limerick"))
    with monkeypatch.context() as patched:
        patched.setattr("mneme.models.retriever.projection.LEARNING_RATE", 20.0)
        refused = Retriever.model_validate((await train(taught))["retriever"])
    assert not refused.kept
    assert {each.status for each in await RetrieverLessons(taught).of(refused.memories)} == {"refused"}
    assert (await train(taught))["why"] == "No memory is new.", "the same again would be refused again"
    await store(taught, shipped("sonnet", few=2))
    again = Retriever.model_validate((await train(taught))["retriever"])
    assert {*refused.memories} < {*again.memories}


async def test_a_rollback_lets_an_earlier_version_serve_again(taught: MemoryPool) -> None:
    retrievers, first = await kept_version(taught)
    second = await successor(retrievers, first)
    assert await retrievers.roll_back(None, change=STORED) == second.parent == first.number
    assert (await look_up(taught, QUESTION)).number == first.number
    assert await retrievers.roll_back(second.number, change=STORED) == second.number
    assert await retrievers.roll_back(0, change=STORED) == 0
    assert (await look_up(taught, QUESTION)).vector == await taught.ledger.vector_of(QUESTION)
    with pytest.raises(BadInput, match="nothing was before"):
        await retrievers.roll_back(None, change=STORED)
    with pytest.raises(NotFound):
        await retrievers.roll_back(99, change=STORED)


@pytest.mark.parametrize("harm", ["damaged", "missing"])
async def test_a_file_that_is_gone_or_damaged_is_told_and_can_be_rolled_back(
    taught: MemoryPool, own_home: Path, harm: str
) -> None:
    by = {"damaged": 0.5, "missing": 0.25}[harm]  # a version of which this process holds nothing yet
    retrievers, before = await kept_version(taught)
    first = await successor(retrievers, before, by)
    file = file_of(own_home, first)
    if harm == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-8] + b"\0" * 8)
    with pytest.raises(StorageFailure, match=f"retriever {first.number}") as raised:
        await look_up(taught, QUESTION)
    assert "rollback" in raised.value.hint
    assert await retrievers.roll_back(None, change=STORED) == first.parent
    assert (await look_up(taught, QUESTION)).number == first.parent
    with pytest.raises((StorageFailure, BadInput), match=f"etriever {first.number}"):
        await retrievers.roll_back(first.number, change=STORED)


async def test_turns_that_led_up_are_looked_up_when_learning_as_when_answering(pool: MemoryPool) -> None:
    said = ["user: What did the baker do?", "assistant: He kneaded the dough."]
    pair = Pair(prompt="A joke of it?", answer="Loaf.", leading=said, agent="pun", domain="wit", score=90)
    await store(pool, [pair])
    wanted = asked(pair.prompt, said)
    assert wanted.startswith(pair.prompt) and all(each in wanted for each in said)
    (lesson,) = await RetrieverLessons(pool).of([pair.key])
    assert lesson.question == wanted
    embedded = (await RetrieverLessons(pool).vectors([pair.key]))[pair.key]
    assert list(embedded) == pytest.approx(await pool.ledger.vector_of(wanted), abs=1e-5)
    found = await pool.candidates(Pooled(key=pair.key, pair=pair), 5)
    hits = await pool.retrieve(wanted, 6, mode="bm25")
    assert [each.key for each in found] == [each.key for each in hits if each.key != pair.key][:5]


async def test_questions_of_one_answer_are_held_out_together(pool: MemoryPool) -> None:
    first = shipped("pun")[:10]
    again = [
        each.model_copy(update={"prompt": f"{each.prompt} Please, {n}."}) for each in first for n in "ab"
    ]
    await store(pool, again)
    lessons = {each.key: each for each in await RetrieverLessons(pool).of([p.key for p in [*first, *again]])}
    sides = [{lessons[p.key].is_held_out for p in [*first, *again] if p.answer == f.answer} for f in first]
    assert {len(each) for each in sides} == {1}
    assert {each for side in sides for each in side} == {True, False}


async def test_two_trainings_at_once_make_one_version_serve_and_lose_nothing(pool: MemoryPool) -> None:
    ended = await asyncio.gather(train(pool), train(pool), look_up(pool, QUESTION))
    retrievers = await retrievers_of(pool)
    versions = await retrievers.all()
    assert [each.number for each in versions] == list(range(1, len(versions) + 1))
    outcomes = [each["retriever"] is not None or "was first" in each["why"] for each in ended[:2]]
    assert all(outcomes) and any(each["retriever"] for each in ended[:2])
    assert await retrievers.serving() in {0, *(each.number for each in versions if each.kept)}
    await kept_version(pool)
    learned = {key for version in await retrievers.all() for key in version.memories}
    assert not await RetrieverLessons(pool).on("graded", 100)
    assert learned >= {key for version in versions for key in version.memories}


@pytest.mark.long
async def test_the_same_seed_makes_the_same_retriever(prepared: Path, tmp_path: Path) -> None:
    made = list[dict[str, Any]]()
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        shutil.copytree(prepared / "filled", tmp_path / name)
        async with opened(tmp_path / name) as pool:
            made.append((await train(pool, seed=seed))["retriever"])
    told = [(each["weights"], each["losses"], each["after"]) for each in made]
    assert told[0] == told[1]
    assert told[0][0] != told[2][0]


async def test_a_memory_that_was_removed_teaches_nothing(pool: MemoryPool) -> None:
    gone = shipped("pun")[0]
    await pool.remove(gone.key, change=STORED)
    while (await train(pool))["why"] != "No memory is new.":
        pass
    (lesson,) = await RetrieverLessons(pool).of([gone.key])
    assert lesson.status == "skipped" and not lesson.candidates
    named = {
        key
        for each in await RetrieverLessons(pool).of([p.key for p in shipped("puzzle", "riddle", "pun")])
        for key in (*each.positives, *each.negatives)
    }
    assert named and gone.key not in named


async def test_what_was_graded_before_a_kill_is_not_graded_again(pool: MemoryPool) -> None:
    stale = [each.model_dump() for each in await RetrieverLessons(pool).on("waiting", 4)]
    await train(pool)
    graph = builder.compile(store=LedgerStore(pool.ledger), checkpointer=InMemorySaver())
    killed = RunnableConfig(configurable={"thread_id": "killed"})
    left: dict[str, Any] = {"pool": pool.pool, "lessons": stale, "left_over": 0}
    await graph.aupdate_state(killed, left, as_node="gather")
    context = PoolContext(grader="rules", learning="projection")
    told = [each async for each in graph.astream(None, killed, context=context, stream_mode="custom")]
    assert stale and not told


async def test_too_little_is_not_trained_on_and_waits(edge_ledger: Ledger) -> None:
    pool = MemoryPool(edge_ledger, "local", "few")
    assert (await train(pool))["why"] == "No memory is new."
    await store(pool, shipped("limerick", few=8))
    ended = await train(pool)
    assert ended["retriever"] is None and "cannot judge a version" in ended["why"]
    lessons = RetrieverLessons(pool)
    waiting = {each.key for each in await lessons.on("waiting", 100)}
    assert len(waiting) == 8 and not await lessons.on("graded", 100), (
        "what no training can follow is not graded"
    )
    await store(pool, shipped("puzzle", "riddle", "pun"))
    await train(pool)
    version = (await (await retrievers_of(pool)).all())[0]
    assert waiting <= {*version.memories}
    graph = builder.compile(store=LedgerStore(edge_ledger))
    with pytest.raises(BadInput, match="Which pool"):
        await graph.ainvoke({"pool": " "}, context=PoolContext(grader="rules"))


async def test_lessons_that_two_trainings_move_at_once_are_moved_once_or_learned_last(
    pool: MemoryPool,
) -> None:
    lessons = RetrieverLessons(pool)
    keys = [each.key for each in await lessons.on("waiting", 20)]
    await asyncio.gather(*(lessons.mark(keys, to, change=STORED) for to in ("learned", "refused")))
    for key in keys:
        moves = [each.shelf for each in await pool.ledger.history(lessons.namespace, key)]
        assert moves in (["waiting", "learned"], ["waiting", "refused"], ["waiting", "refused", "learned"])


async def test_a_lesson_that_was_learned_is_not_called_refused(pool: MemoryPool) -> None:
    lessons = RetrieverLessons(pool)
    keys = [each.key for each in await lessons.on("waiting", 20)]
    for status in ("refused", "learned", "refused"):
        await lessons.mark(keys, status, change=STORED)
    assert {each.status for each in await lessons.of(keys)} == {"learned"}


async def test_what_was_learned_last_is_told_first(taught: MemoryPool) -> None:
    retrievers, first = await kept_version(taught)
    before = await retrievers.count()
    for number in range(before + 1, before + 21):
        told = {"number": number, "memories": [f"{number}-early", f"{number}-late", "again"]}
        await retrievers.record(first.model_copy(update=told), change=STORED)
    newest, older = before + 20, before + 19
    assert await retrievers.learned(5) == [
        *("again", f"{newest}-late", f"{newest}-early", f"{older}-late", f"{older}-early")
    ]
    every = await retrievers.learned(10_000)
    assert len(every) == len({*every}) and {*first.memories, f"{before + 1}-early"} <= {*every}


async def test_a_retriever_of_another_embedder_is_a_clear_error(taught: MemoryPool) -> None:
    retrievers, first = await kept_version(taught)
    foreign = first.model_copy(update={"number": await retrievers.count() + 1, "embedder": "other:model"})
    await retrievers.record(foreign, change=STORED)
    with pytest.raises(BadInput, match="belongs to other:model"):
        await retrievers.roll_back(foreign.number, change=STORED)
    await retrievers.serve(foreign.number, instead_of=first.number, change=STORED)
    with pytest.raises(LedgerMismatch, match="other:model") as raised:
        await look_up(taught, "Another question.")
    assert "rollback --to 0" in raised.value.hint


async def test_what_killed_processes_left_half_written_is_swept(taught: MemoryPool, own_home: Path) -> None:
    retrievers, first = await kept_version(taught)
    folder = file_of(own_home, first).parent
    stale, young = folder / "old.part", folder / "new.part"
    for part in (stale, young):
        part.write_bytes(b"half")
    os.utime(stale, (time.time() - 7200, time.time() - 7200))
    await retrievers.prune()
    assert not stale.exists() and young.exists()


async def test_old_versions_leave_no_files(
    taught: MemoryPool, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mneme.stores.pools.retrievers.FILES", 1)
    retrievers, first = await kept_version(taught)
    second = await successor(retrievers, first)
    assert second.weights in stems(own_home) and first.weights not in stems(own_home)
    with pytest.raises(BadInput, match="no file any more"):
        await retrievers.roll_back(first.number, change=STORED)


KILLED = """
import asyncio, sys
sys.path[:0] = [sys.argv[1]]
from mneme.models.retriever import projection
from tests.sharing.test_retriever_training import *

async def main():
    ledger = await open_ledger(sys.argv[2], WordEmbedder())
    pool = MemoryPool(ledger, "local", "wit")
    serving = await (await retrievers_of(pool)).serving()
    await store(pool, shipped("limerick"))
    projection.EPOCHS = 10**9
    step = projection.listwise
    def told(*given):
        print(serving, flush=True)
        return step(*given)
    projection.listwise = told
    await train(pool)

asyncio.run(main())
"""


def killed_while_training(place: str) -> int:
    """Let a process train, kill it in the middle; return the version that served it."""
    command = [sys.executable, "-c", KILLED, str(Path(__file__).parents[2]), place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        serving = int(process.stdout.readline())
        process.kill()
    return serving


@pytest.mark.long
async def test_killed_while_training_the_last_good_version_serves(prepared: Path, own_home: Path) -> None:
    shutil.copytree(prepared / "taught", own_home)
    place = str(own_home / "ledger")
    first = killed_while_training(place)
    ledger = await open_ledger(place, WordEmbedder())
    pool = MemoryPool(ledger, "local", "wit")
    assert (await look_up(pool, QUESTION))[0] == first
    waited = {each.key for each in await RetrieverLessons(pool).on("graded", 100)}
    assert waited, "what was graded before the kill is not graded again"
    ended = await train(pool)
    assert waited <= {*ended["retriever"]["memories"]}
    assert ended["retriever"]["parent"] == first
    await ledger.close()


async def test_a_tiny_encoder_is_trained_whole_and_kept_with_its_version(
    tiny: Path, tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mneme.models.embedding.minilm.weights", lambda: tiny)
    monkeypatch.setattr("mneme.models.retriever.whole_encoder.EPOCHS", 1)
    bundled = WordEmbedder("bundled:all-MiniLM-L6-v2", WIDE)
    ledger = await open_ledger(str(tmp_path / "bundled"), bundled)
    pool = MemoryPool(ledger, "local", "wit")
    await store(pool, shipped("puzzle", "riddle", "pun", few=20))
    version = Retriever.model_validate((await train(pool, learning="encoder", labels=2))["retriever"])
    assert (version.learning, version.embedder) == ("encoder", "bundled:all-MiniLM-L6-v2")
    retrievers = await retrievers_of(pool)
    assert (await retrievers.get(version.number)).reason == version.reason
    served, vector, *_ = await look_up(pool, QUESTION)
    assert served == (version.number if version.kept else 0)
    assert (vector != await ledger.vector_of(QUESTION)) is version.kept
    assert (version.weights in stems(own_home)) is version.kept
    await ledger.close()


@pytest.mark.long
async def test_the_whole_encoder_is_trained_and_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mneme.models.retriever.whole_encoder.EPOCHS", 1)
    monkeypatch.setattr(
        "mneme.models.retriever.whole_encoder.LEARNING_RATE", 1e-6
    )  # a small step does no harm: it is kept
    ledger = await open_ledger(str(tmp_path / "bundled"), await open_embedder("bundled"))
    pool = MemoryPool(ledger, "local", "wit")
    await store(pool, shipped("puzzle", "riddle", "pun", few=20))
    version = Retriever.model_validate((await train(pool, learning="encoder", labels=2))["retriever"])
    assert (version.learning, version.embedder) == ("encoder", "bundled:all-MiniLM-L6-v2")
    assert version.kept, version.reason
    number, vector, *_ = await look_up(pool, QUESTION)
    untrained = await ledger.vector_of(QUESTION)
    assert vector is not None and untrained is not None
    cosine = sum(a * b for a, b in zip(vector, untrained, strict=True))
    assert number == version.number and vector != untrained and cosine > 0.99
    await ledger.close()
