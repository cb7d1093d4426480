"""Versions of the retriever: which is kept out, rollback, their files, and kills."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from mneme.core.errors import BadInput, LedgerMismatch, NotFound, StorageFailure
from mneme.nodes.sharing.pools import look_up
from mneme.nodes.sharing.retriever_judging import Judging, better
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.pools.lessons import RetrieverLessons
from mneme.stores.pools.memory_pool import MemoryPool
from mneme.stores.pools.retrievers import Retriever
from tests.doubles.embedding import WordEmbedder
from tests.doubles.retriever_pools import (
    QUESTION,
    STORED,
    file_of,
    kept_version,
    shipped,
    stems,
    store,
    successor,
    train,
)


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


def test_what_only_chance_parts_from_the_serving_version_is_not_called_no_worse_than_it() -> None:
    kept, reason, _ = better(judging([0.9, 0.6] * 20), judging([0.6, 0.9] * 20), judging([0.3] * 40))
    assert kept and reason.startswith("Kept: no worse than untrained on 40 held-out memories")


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
    assert "rollback --to-version 0" in raised.value.hint


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
from tests.doubles.retriever_pools import *

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
