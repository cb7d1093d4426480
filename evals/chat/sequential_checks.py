"""Version 3 as the paper runs it (§3.1): similar memories are checked one after the other.

A baseline of `latency`; every other step is version 3's own.
"""

from typing import Any

from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from mneme.graphs.memory_agent import OPERATIONS, remembering
from mneme.nodes.chat.context import MemoryContext
from mneme.nodes.chat.memory_agent import decide, find_similar
from mneme.nodes.chat.paper_versions import compose, conflict_router, each_pair, message_router, routed
from mneme.nodes.chat.remembering import State, each_decision
from mneme.stores.ledger.base_store import LedgerStore


async def check_in_turn(state: State, runtime: Runtime[MemoryContext]) -> dict[str, Any]:
    """Judge the candidates against their similar memories, each check after the one before."""
    verdicts = []
    for send in each_pair(state):
        if isinstance(send, Send):
            verdicts += (await conflict_router(send.arg, runtime)).get("verdicts", [])
    return {"verdicts": verdicts}


def sequential_memory_agent(store: LedgerStore) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the memory agent with its checks in sequence."""
    builder = remembering("message_router")
    builder.add_node(message_router)
    builder.add_node(compose)
    builder.add_node(find_similar)
    builder.add_node(check_in_turn)
    builder.add_node(decide)
    builder.add_conditional_edges("message_router", routed, ["compose", "forget", "settle"])
    builder.add_edge("compose", "find_similar")
    builder.add_edge("find_similar", "check_in_turn")
    builder.add_edge("check_in_turn", "decide")
    builder.add_conditional_edges("decide", each_decision, OPERATIONS)
    return builder.compile(name="memory_agent_in_sequence", store=store)
