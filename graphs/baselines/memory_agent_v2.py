"""The memory agent, version 2 of the paper: message router, then one upsert router (Figure 2)."""

from langgraph.graph import END, START, StateGraph

from mneme.nodes.chat.context import MemoryContext
from mneme.nodes.chat.memory_agent import (
    Given,
    Result,
    State,
    compose,
    each_decision,
    find_similar,
    forget,
    is_settled,
    receive,
    route,
    route_upserts,
    routed,
    settle,
)
from mneme.nodes.chat.memory_operations import Task, discard, insert_memory, update_memory

builder = StateGraph(State, context_schema=MemoryContext, input_schema=Given, output_schema=Result)
builder.add_node(receive)
builder.add_node("message_router", route)
builder.add_node(compose)
builder.add_node(forget)
builder.add_node(find_similar)
builder.add_node("upsert_router", route_upserts)
builder.add_node(insert_memory, input_schema=Task)
builder.add_node(update_memory, input_schema=Task)
builder.add_node(discard, input_schema=Task)
builder.add_node(settle)

builder.add_edge(START, "receive")
builder.add_conditional_edges("receive", is_settled, {True: END, False: "message_router"})
builder.add_conditional_edges("message_router", routed, ["compose", "forget", "settle"])
builder.add_edge("compose", "find_similar")
builder.add_edge("forget", "settle")
builder.add_edge("find_similar", "upsert_router")
builder.add_conditional_edges(
    "upsert_router", each_decision, ["insert_memory", "update_memory", "discard", "settle"]
)
builder.add_edge("insert_memory", "settle")
builder.add_edge("update_memory", "settle")
builder.add_edge("discard", "settle")
builder.add_edge("settle", END)

graph = builder.compile(name="memory_agent_v2")
