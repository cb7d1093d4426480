"""Memory Sharing for tests: its shipped pairs, a pool of them, and a question asked through the graph."""

import json
from pathlib import Path
from typing import Any

from mneme.graphs.memory_sharing import builder as memory_sharing
from mneme.library.agents.agent import load_agent
from mneme.nodes.sharing.context import SharingContext
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.lessons import keep
from mneme.stores.pools.memory_pool import MemoryPool, Pair
from tests.doubles.ollama import Json

RULES = {"answerer": "rules", "scorer": "rules", "grader": "rules"}
CHANGE = Change(reason="a test", actor="test")
MODEL = "ollama:llama3.1:8b"
SEEDS = Path(__file__).parents[2] / "library" / "pairs"
POEMS = "literary_creation"


def seeds(agent: str) -> list[Pair]:
    """Return an agent's shipped pairs."""
    lines = (SEEDS / f"{agent}.jsonl").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line) for line in lines]
    domain = load_agent(agent).domain
    return [
        Pair(prompt=each["question"], answer=each["answer"], agent=agent, domain=domain, score=100)
        for each in told
    ]


def pool_in(ledger: Ledger, name: str = POEMS) -> MemoryPool:
    return MemoryPool(ledger, "poets", name)


async def filled(ledger: Ledger, *agents: str, pool: str = POEMS) -> MemoryPool:
    """Return a pool that holds the shipped pairs of these agents."""
    pairs = [each for agent in agents for each in seeds(agent)]
    await keep(pool_in(ledger, pool), pairs, change=CHANGE)
    return pool_in(ledger, pool)


async def ask(ledger: Ledger, question: str, agent: str = "limerick", **more: Any) -> Any:
    graph = memory_sharing.compile(store=LedgerStore(ledger))
    return await graph.ainvoke({"question": question}, context=context(agent, **more))


def context(agent: str = "limerick", **more: Any) -> SharingContext:
    return SharingContext(**{"team": "poets", "agent": agent, **RULES, **more})


def of(body: Json, prompt: Any) -> bool:
    return bool(body["messages"][0]["content"].startswith(prompt.system))
