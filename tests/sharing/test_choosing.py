"""Which memories an agent is shown, and how live scores bring an earlier retriever back."""

from pathlib import Path

import pytest

from mneme.core.settings import settings
from mneme.nodes.sharing.choosing import chosen
from mneme.nodes.sharing.pools import retrievers_of, watch
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.live_scores import Scores, is_worse
from mneme.stores.pools.memory_pool import MemoryPool, Pair
from mneme.stores.pools.retrievers import Judged, Retriever
from mneme.stores.write_gate import near

STORED = Change(reason="stored", actor="test")


def pair(prompt: str, answer: str) -> Pair:
    return Pair(prompt=prompt, answer=answer, agent="pun", domain="wit", score=90)


async def test_no_two_examples_are_nearly_the_same(edge_ledger: Ledger) -> None:
    pool = MemoryPool(edge_ledger, "local", "wit")
    twins = [
        pair("Why is the baker rich?", "He makes a lot of dough every single day."),
        pair("Why is a baker rich?", "He makes a lot of dough, every single day!"),
        pair("Why is the baker tired?", "Because his work is such a grind."),
    ]
    await pool.add_all(twins, change=STORED)
    _, found = await chosen(pool, "Why is the baker rich?", 3)
    assert len(found) == 2 and not near(found[0].pair.answer, found[1].pair.answer)
    _, without = await chosen(pool, "Why is the baker rich?", 3, without=twins[0].answer)
    assert [each.pair.answer for each in without] == [twins[2].answer]


def test_scores_fall_beyond_chance_or_not() -> None:
    good = Scores(count=40, total=40 * 80, squares=40 * (80**2 + 100))
    assert is_worse(Scores(count=40, total=40 * 60, squares=40 * (60**2 + 100)), good)
    assert not is_worse(Scores(count=40, total=40 * 79, squares=40 * (79**2 + 100)), good)
    assert not is_worse(Scores(count=5, total=0, squares=0), good), "five answers are too few"


async def test_where_live_scores_fall_the_version_before_serves(
    edge_ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_HOME", str(tmp_path))
    settings.cache_clear()
    pool = MemoryPool(edge_ledger, "local", "wit")
    retrievers = await retrievers_of(pool)
    judged = Judged(held_out=8, recall=0, told_apart=0, loss=0, k=10)
    version = Retriever(
        number=1, parent=0, learning="projection", weights="none", embedder="any", memories=[], positives=0,
        negatives=0, losses=[], before=judged, after=judged, kept=True, reason="", seconds=0, device="cpu",
        seed=0,
    )  # fmt: skip
    await retrievers.record(version, change=STORED)
    for _ in range(30):
        assert await watch(pool, 0, 80) == ""
    await retrievers.serve(1, instead_of=0, change=STORED)
    told = [await watch(pool, 1, 20 + number % 3) for number in range(30)]
    assert not any(told[:-1]) and told[-1].startswith("Retriever 1 was rolled back to 0: 21 of 100")
    assert await retrievers.serving() == 0
    settings.cache_clear()
