"""The memory agent, version 3 of the paper: message router, conflict router per similar memory (Figure 2)."""

from langgraph.graph import END, START, StateGraph

from mneme.nodes.chat.context import MemoryContext
from mneme.nodes.chat.memory_agent import (
    Check,
    Given,
    Result,
    State,
    check,
    compose,
    each_decision,
    each_pair,
    find_similar,
    forget,
    is_settled,
    receive,
    route,
    routed,
    settle,
    weigh,
)
from mneme.nodes.chat.memory_operations import Task, discard, insert_memory, update_memory

builder = StateGraph(State, context_schema=MemoryContext, input_schema=Given, output_schema=Result)
builder.add_node(receive)
builder.add_node("message_router", route)
builder.add_node(compose)
builder.add_node(forget)
builder.add_node(find_similar)
builder.add_node("conflict_router", check, input_schema=Check)
builder.add_node(weigh)
builder.add_node(insert_memory, input_schema=Task)
builder.add_node(update_memory, input_schema=Task)
builder.add_node(discard, input_schema=Task)
builder.add_node(settle)

builder.add_edge(START, "receive")
builder.add_conditional_edges("receive", is_settled, {True: END, False: "message_router"})
builder.add_conditional_edges("message_router", routed, ["compose", "forget", "settle"])
builder.add_edge("compose", "find_similar")
builder.add_edge("forget", "settle")
builder.add_conditional_edges("find_similar", each_pair, ["conflict_router", "weigh"])
builder.add_edge("conflict_router", "weigh")
builder.add_conditional_edges("weigh", each_decision, ["insert_memory", "update_memory", "discard", "settle"])
builder.add_edge("insert_memory", "settle")
builder.add_edge("update_memory", "settle")
builder.add_edge("discard", "settle")
builder.add_edge("settle", END)

graph = builder.compile(name="memory_agent")
