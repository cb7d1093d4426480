"""Memory Sharing's experiment (§4.1): pools that grow, retrievers that learn, agents that are asked.

A `PoolRun` is one pool of one seed: what is archived by hand goes in and trains the retriever; then the new
questions are asked in five parts, through the graph `memory_sharing`, which keeps what scores above its
threshold; after each part the graph `retriever_training` learns until nothing waits, and the test questions
are asked. These never enter a pool: they are asked under a threshold that no score exceeds.

Beside the paper's growth a second one stores the standard answers of the same questions instead of what the
agents wrote: what agents that write well gain by sharing, and the retriever by a full pool.

Every answer is in the journal at once; the pools lie beside it, so that an interrupted run goes on.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, get_args

from mneme.evals.report import Journal, Row, together
from mneme.evals.sharing.data import Item, Split
from mneme.evals.sharing.retrievers import Judging, judge
from mneme.graphs import memory_sharing, retriever_training
from mneme.library.agents.rubric import SINGLE_POOL
from mneme.nodes.sharing.context import PoolContext, SharingContext
from mneme.nodes.sharing.pools import retrievers_of
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.lessons import RetrieverLessons, keep
from mneme.stores.pools.memory_pool import MemoryPool, Pair

Pools = Literal["domain", "single"]
Growth = Literal["own", "standard"]
"""Source of the answers by which the pool grows: the agents' own (§4.1), or the standard ones."""
PARTS_OF_GROWTH = (0, 20, 40, 60, 80, 100)
"""Per cent of the new questions that have been asked; 0: what was archived by hand alone (§4.1)."""
SHOTS = (0, 1, 2, 3)
MAX_SHOTS = 3
UNREACHABLE_THRESHOLD = 100
"""A threshold that no score exceeds: what is asked for a test is not remembered."""
HAND_CHANGE = Change(reason="Archived by hand before the run (§3.2).", actor="evaluation")


@dataclass
class PoolRun:
    """One pool of one seed, with the items of its agents; `arm` names the source of its answers."""

    seed: int
    pools: Pools
    growth: Growth
    pool: str
    items: Split
    ledger: Ledger
    roles: SharingContext
    journal: Journal
    gate: asyncio.Semaphore
    report: Callable[[str], None]
    arm: str = ""

    @property
    def name(self) -> str:
        return "/".join(filter(None, [self.arm, str(self.seed), self.pools, self.growth, self.pool]))

    @property
    def team(self) -> str:
        told = [self.arm, f"seed {self.seed}", self.pools, self.growth]
        return ", ".join(filter(None, told))

    @property
    def memories(self) -> MemoryPool:
        return MemoryPool(self.ledger, self.team, self.pool)

    def _context(self, **more: Any) -> SharingContext:
        own = {"team": self.team, "pools": self.pools, "seed": self.seed, **more}
        return self.roles.model_copy(update=own)

    @cached_property
    def _graphs(self) -> tuple[Any, Any]:
        """The graphs that share and that train, each compiled once."""
        store = LedgerStore(self.ledger)
        return memory_sharing.builder.compile(store=store), retriever_training.builder.compile(store=store)

    async def run(self) -> None:
        """Run the whole experiment, without the parts that are in the journal."""
        if f"{self.name}/end" in self.journal:  # nothing of it has to be opened
            return
        await self.store(self.items["archived"])  # what is there already is not stored twice
        for percent in PARTS_OF_GROWTH:
            await self._grow(percent)
            await self.train(percent)
            for shots in _shots(self.pools, self.growth, percent):
                await together(self._tested(item, percent, shots) for item in self.items["test"])
        if self.pools == "domain":  # ways to choose examples, over the pool as it is in the end
            await together(self._judged(item) for item in self.items["test"])
        self.journal.add(f"{self.name}/end", {"kind": "end", **await self._state()})

    async def store(self, items: Sequence[Item]) -> None:
        """Put items into the pool verbatim, and train the retriever on them like on all others."""
        pairs = [
            Pair(prompt=each.question, answer=each.answer, agent=each.agent, domain=each.domain, score=100)
            for each in items
        ]
        await keep(self.memories, pairs, change=HAND_CHANGE)

    async def _grow(self, percent: int) -> None:
        """Ask the next part of the new questions one after another: each sees the results of the last."""
        part = _part(self.items["new"], percent)
        if self.growth == "standard":
            await self.store(part)
            return
        for item in part:
            case = f"{self.name}/grow/{item.id}"
            if case not in self.journal:
                found = await self._known(item) or await self._ask(item, MAX_SHOTS, self.roles.threshold)
                self.journal.add(case, self._row("grow", percent, MAX_SHOTS, item) | found)
            self._report(f"growing to {percent} %")

    async def _known(self, item: Item) -> Row | None:
        """Return the row of a pair that a run killed between pool and journal has stored; else None."""
        async for each in self.memories.pairs(item.agent):
            if each.pair.asks == item.question:
                known = {"answer": each.pair.answer, "score": each.pair.score, "stored": True}
                return known | {"retriever": each.pair.retriever, "shown": [], "faults": []}
        return None

    async def train(self, percent: int) -> None:
        """Train the retriever on everything that waits, unless too little is held out to judge it."""
        given: Any = {"pool": self.pool}
        own = self._context().model_dump(include={*PoolContext.model_fields} - {"agent"})
        context, lessons, before = PoolContext(**own), RetrieverLessons(self.memories), 0
        # Ends also where a training takes nothing.
        while (waiting := await lessons.count_on("waiting")) not in {0, before}:
            before = waiting
            await self._graphs[1].ainvoke(given, context=context)
        case = f"{self.name}/retrievers/{percent}"
        if case not in self.journal:
            self.journal.add(case, {"kind": "retrievers", "percent": percent, **await self._state()})

    async def _state(self) -> Row:
        retrievers = await retrievers_of(self.memories)
        versions = [each.model_dump(exclude={"memories", "losses"}) for each in await retrievers.all()]
        return {
            **self._where,
            "memories": await self.memories.count(),
            "serving": await retrievers.serving(),
            "versions": versions,
        }

    async def _tested(self, item: Item, percent: int, shots: int) -> None:
        case = f"{self.name}/test/{percent}/{shots}/{item.id}"
        if case not in self.journal:
            async with self.gate:
                found = await self._ask(item, shots, UNREACHABLE_THRESHOLD)
            self.journal.add(case, self._row("test", percent, shots, item) | found)
        self._report(f"asked at {percent} %, {shots} shots")

    def _row(self, kind: str, percent: int, shots: int, item: Item) -> Row:
        asked = {"agent": item.agent, "item": item.id, "reference": item.answer}
        return {"kind": kind, "percent": percent, "shots": shots, **self._where, **asked}

    @property
    def _where(self) -> Row:
        where = {"seed": self.seed, "pools": self.pools, "growth": self.growth, "pool": self.pool}
        return where | ({"arm": self.arm} if self.arm else {})

    async def _ask(self, item: Item, shots: int, threshold: int | None) -> Row:
        """Give a question to its agent through the graph."""
        given: Any = {"question": item.question}
        context = self._context(agent=item.agent, shots=shots, threshold=threshold)
        found = await self._graphs[0].ainvoke(given, context=context)
        kept = ("answer", "score", "stored", "retriever", "faults")
        shown, kinds = [each["key"] for each in found["shown"]], [each["agent"] for each in found["shown"]]
        own = kinds.count(item.agent) / len(kinds) if kinds else None
        return {name: found[name] for name in kept} | {"shown": shown, "own_kind": own}

    async def _judged(self, item: Item) -> None:
        case = f"{self.name}/judge/{item.id}"
        if case not in self.journal:
            answerer = self.roles.answerer_of(item.agent)
            judging = Judging(self.memories, answerer, self.roles.grader, self.seed)
            by_graph = self.journal[f"{self.name}/test/100/{MAX_SHOTS}/{item.id}"]
            async with self.gate:
                found = await judge(item, judging, by_graph["answer"])
            self.journal.add(case, self._row("judge", 100, MAX_SHOTS, item) | {"ways": found})
        self._report("ways to choose examples")

    def _report(self, what: str) -> None:
        self.report(f"{self.arm and f'{self.arm}, '}seed {self.seed}, {self.pool}: {what}")


def _shots(pools: Pools, growth: Growth, percent: int) -> tuple[int, ...]:
    """Return the numbers of examples with which test questions are asked at a stage (tables 1, 2; figure 4).

    Without examples, and before anything new is stored, both growths are the same, and one is asked.
    """
    if pools == "single":
        return (MAX_SHOTS,) if percent == 100 else ()
    first = 0 if growth == "own" else 1
    if percent == 100:
        return SHOTS[:0:-1] if first else SHOTS[::-1]
    return (MAX_SHOTS,) if percent or not first else ()


def _part(items: Sequence[Item], percent: int) -> list[Item]:
    """Return the items that the last step to that percentage adds, the same share of each agent, in turn."""
    agents = list(dict.fromkeys(item.agent for item in items))
    steps = dict(zip(PARTS_OF_GROWTH[1:], PARTS_OF_GROWTH, strict=False))
    if percent not in steps:
        return []
    chosen = list[tuple[int, Item]]()
    for agent in agents:
        own = [item for item in items if item.agent == agent]
        first, last = (round(len(own) * part / 100) for part in (steps[percent], percent))
        chosen += enumerate(own[first:last])
    return [item for _, item in sorted(chosen, key=lambda each: each[0])]


def pools_of(items: Split) -> list[tuple[Pools, str, Split]]:
    """Return the pools of one seed with their items: one for each domain, and one for all."""
    made: list[tuple[Pools, str, Split]] = []
    for domain in dict.fromkeys(item.domain for item in [*items["archived"], *items["test"]]):
        own = {part: [item for item in of if item.domain == domain] for part, of in items.items()}
        made.append(("domain", domain, own))
    return [*made, ("single", SINGLE_POOL, items)]


def steps(items: Split) -> int:
    """Return how many times a seed's pools report their progress."""
    stages = [(pools, growth) for pools in get_args(Pools) for growth in get_args(Growth)]
    asked = sum(len(_shots(*stage, percent)) for stage in stages for percent in PARTS_OF_GROWTH)
    return len(get_args(Pools)) * len(items["new"]) + len(items["test"]) * (asked + len(get_args(Growth)))
