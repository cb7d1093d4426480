"""The re-scorer learns whose kind a question is and orders what is found; it serves only if it is better."""

import sys
from pathlib import Path

import numpy as np
import pytest

from mneme.core.settings import settings
from mneme.graphs.retriever_training import builder
from mneme.models.retriever.reranker import AGENT_WEIGHT, MIN_PROBABILITY, Reranker
from mneme.models.retriever.retriever import Examples, Matrix
from mneme.nodes.sharing.choosing import chosen, reranked
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.pools import look_up, retrievers_of
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.lessons import keep
from mneme.stores.pools.memory_pool import MemoryPool, Pair, Pooled

CHANGE = Change(reason="a test", actor="test")
THINGS = (
    *("baker", "sailor", "tailor", "miner", "farmer", "piper", "weaver", "potter", "glazier", "cooper"),
    *("fiddler", "miller", "porter", "ferryman", "shepherd", "smith", "cobbler", "hunter", "fisher", "mason"),
    *("thatcher", "chandler", "saddler", "brewer", "vintner", "carter", "dyer", "fuller", "joiner", "sawyer"),
)


def asked(agent: str, thing: str) -> str:
    return f"Why did the {thing} laugh?" if agent == "pun" else f"What has a {thing} and no door?"


def pairs(things: tuple[str, ...] = THINGS) -> list[Pair]:
    """Return a joke and a riddle about each thing: the thing is nearer than the kind."""
    return [
        Pair(
            prompt=asked(agent, thing),
            answer=f"{thing} {thing} {agent}{number} {'ha' if agent == 'pun' else 'hm'}",
            agent=agent,
            domain="wit",
            score=90,
        )
        for number, thing in enumerate(things)
        for agent in ("pun", "riddle")
    ]


def examples(texts: list[str], agents: list[str], vectors: Matrix) -> Examples:
    count = len(texts)
    nothing = np.zeros((count, 1, vectors.shape[1]), dtype=np.float32)
    kinds = np.zeros((count, count), dtype=np.float32)
    return Examples(texts, vectors, nothing, nothing[:, :, 0], vectors, kinds, agents)


def test_it_learns_whose_question_it_is_and_starts_anew_to_the_same_end() -> None:
    texts = [asked(agent, thing) for thing in THINGS for agent in ("pun", "riddle")]
    agents = ["pun", "riddle"] * len(THINGS)
    vectors = np.random.default_rng(0).normal(size=(len(texts), 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    given, learned = examples(texts, agents, vectors), Reranker(8)
    before = learned.loss(vectors, given)
    losses = learned.train(given, seed=0)
    assert before == 0.0 and losses[-1] < losses[0] / 3 and learned.loss(vectors, given) < losses[0] / 3
    (favours,) = learned.favours(["Why did the gardener laugh?"], vectors[:1])
    assert favours["pun"] > favours[""] > favours["riddle"] >= AGENT_WEIGHT * np.log(MIN_PROBABILITY)
    again = Reranker.of(8, learned.weights())
    again.train(given, seed=1)
    assert all(np.array_equal(row, again.kinds[name]) for name, row in learned.kinds.items())


def test_an_agent_that_nobody_learned_is_neither_favoured_nor_left_out() -> None:
    def found(agent: str, similarity: float) -> Pooled:
        pair = Pair(prompt="?", answer=agent, agent=agent, domain="wit", score=90)
        return Pooled(key=agent, pair=pair, similarity=similarity)

    hits = [found("riddle", 0.9), found("pun", 0.8), found("haiku", 0.85)]
    order = reranked(hits, {"pun": -0.01, "riddle": -1.0, "": -0.14})
    assert [each.key for each in order] == ["pun", "haiku", "riddle"]
    assert reranked(hits, {}) == hits


async def test_a_version_that_is_better_serves_and_one_rolls_it_back(
    edge_ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    pool = MemoryPool(edge_ledger, "local", "wit")
    await keep(pool, pairs(), change=CHANGE)
    asked_for = [f"Why {' '.join(three)}?" for three in zip(THINGS, THINGS[1:], THINGS[2:], strict=False)]
    untrained = [(await chosen(pool, question, 3))[1] for question in asked_for]
    graph = builder.compile(store=LedgerStore(edge_ledger))
    monkeypatch.setitem(sys.modules, "torch", None)
    nobody = PoolContext(grader="ollama:nobody-is-asked")  # needs neither grades nor PyTorch
    ended = await graph.ainvoke({"pool": "wit"}, context=nobody)
    retrievers = await retrievers_of(pool)
    serving = await retrievers.serving()
    assert serving and (await retrievers.get(serving)).learning == "reranker", ended["why"]
    trained = [(await chosen(pool, question, 3))[1] for question in asked_for]
    puns = [
        sum(each.pair.agent == "pun" for found in side for each in found) for side in (untrained, trained)
    ]
    assert puns[0] < puns[1]
    question = asked_for[-1]
    assert (await look_up(pool, question)).favours["pun"] > -0.1
    await retrievers.roll_back(0, change=CHANGE)
    assert [each.key for each in (await chosen(pool, question, 3))[1]] == [e.key for e in untrained[-1]]
    settings.cache_clear()
