"""Version 3 as the paper runs it (§3.1): similar memories are checked one after the other.

The baseline of `latency`; every other step is the memory agent's own.
"""

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from mneme.nodes.chat.context import MemoryContext
from mneme.nodes.chat.memory_agent import (
    Result,
    State,
    check,
    compose,
    each_decision,
    each_pair,
    find_similar,
    forget,
    receive,
    route,
    routed,
    settle,
    weigh,
)
from mneme.nodes.chat.memory_operations import discard, insert_memory, update_memory
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.users.inbox import Message


async def check_in_turn(state: State, runtime: Runtime[MemoryContext]) -> dict[str, Any]:
    """Judge the candidates against their similar memories, each check after the one before."""
    verdicts = []
    for send in each_pair(state):
        if isinstance(send, Send):
            verdicts += (await check(send.arg, runtime))["verdicts"]
    return {"verdicts": verdicts}


def sequential_memory_agent(store: LedgerStore) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Build the memory agent with its checks in sequence."""
    builder = StateGraph(State, context_schema=MemoryContext, input_schema=Message, output_schema=Result)
    builder.add_node(receive)
    builder.add_node(route)
    builder.add_node(compose)
    builder.add_node(forget)
    builder.add_node(find_similar)
    builder.add_node(check_in_turn)
    builder.add_node(weigh)
    builder.add_node(insert_memory)
    builder.add_node(update_memory)
    builder.add_node(discard)
    builder.add_node(settle)
    builder.add_edge(START, "receive")
    builder.add_edge("receive", "route")
    builder.add_conditional_edges("route", routed, ["compose", "forget", "settle"])
    builder.add_edge("compose", "find_similar")
    builder.add_edge("forget", "settle")
    builder.add_edge("find_similar", "check_in_turn")
    builder.add_edge("check_in_turn", "weigh")
    builder.add_conditional_edges(
        "weigh", each_decision, ["insert_memory", "update_memory", "discard", "settle"]
    )
    builder.add_edge("insert_memory", "settle")
    builder.add_edge("update_memory", "settle")
    builder.add_edge("discard", "settle")
    builder.add_edge("settle", END)
    return builder.compile(name="memory_agent_in_sequence", store=store)
