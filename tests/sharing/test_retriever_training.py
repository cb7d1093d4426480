"""The retriever learns beside what it serves: from what, once, and two trainings at once."""

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from mneme.core.errors import BadInput
from mneme.graphs.retriever_training import builder
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.pools import look_up, retrievers_of
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.pools.lessons import Graded, Measure, RetrieverLesson, RetrieverLessons, labelled
from mneme.stores.pools.memory_pool import MemoryPool, Pair, Pooled, asked
from mneme.stores.pools.retrievers import Retriever
from tests.doubles.embedding import WordEmbedder
from tests.doubles.retriever_pools import QUESTION, STORED, kept_version, opened, shipped, stems, store, train
from tests.doubles.tiny_encoder import WIDE


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


async def test_turns_that_led_up_are_looked_up_when_learning_as_when_answering(pool: MemoryPool) -> None:
    said = ["user: What did the baker do?", "assistant: He kneaded the dough."]
    pair = Pair(prompt="A joke of it?", answer="Loaf.", leading=said, agent="pun", domain="wit", score=90)
    await store(pool, [pair])
    wanted = asked(pair.prompt, said)
    assert wanted.startswith(pair.prompt) and all(each in wanted for each in said)
    (lesson,) = await RetrieverLessons(pool).of([pair.key])
    assert lesson.question == wanted
    embedded = (await RetrieverLessons(pool).questions.vectors([pair.key]))[pair.key]
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
