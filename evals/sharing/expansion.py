"""Beyond figure 4 ("if the memory pool can be further expanded", §4.2): domain pools that go on growing.

After all new questions are asked, the agents ask one another through the graph `interactive_learning` (§3.3),
and the test questions are asked again at each size. A pool that stops growing says why.
"""

from typing import Any

from mneme.evals.report import Row
from mneme.graphs import interactive_learning
from mneme.nodes.sharing.context import GrowthContext, SharingContext
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.pools.memory_pool import MemoryPool

CALLS = 12
"""Calls for each memory that is wanted: many an answer is not stored."""
MOST_CALLS = 100_000
LAPS = 100


async def expand(pool: MemoryPool, size: int, asking: SharingContext) -> Row:
    """Let a domain's agents ask one another until the pool holds so many memories; return what came of it."""
    missing = size - await pool.count()
    if missing <= 0:
        return {"memories": await pool.count(), "why": "The pool holds as many."}
    graph: Any = interactive_learning.builder.compile(store=LedgerStore(pool.ledger))
    told = asking.model_dump(exclude={"agent"})
    context = GrowthContext(**told, budget=min(MOST_CALLS, CALLS * missing), laps=LAPS, until=size)
    config: Any = {"recursion_limit": MOST_CALLS}
    ended = await graph.ainvoke({"domain": pool.pool}, config, context=context)
    kept = ("memories", "why", "calls", "known", "rejected")
    counts = {name: len(ended[name]) for name in ("stored", "failed")}
    return {name: ended[name] for name in kept} | counts
