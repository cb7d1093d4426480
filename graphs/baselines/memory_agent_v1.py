"""The memory agent, version 1 of the paper: one agent that calls its memory tools (Figure 2)."""

from langgraph.graph import END, START, StateGraph

from mneme.nodes.chat.context import MemoryContext
from mneme.nodes.chat.memory_agent import Given, Result, State, each_decision, is_settled, receive, settle
from mneme.nodes.chat.memory_operations import Task, insert_memory, replace_memory
from mneme.nodes.chat.memory_tools import find_similar_to_message, manage

builder = StateGraph(State, context_schema=MemoryContext, input_schema=Given, output_schema=Result)
builder.add_node(receive)
builder.add_node("find_similar", find_similar_to_message)
builder.add_node(manage)
builder.add_node(insert_memory, input_schema=Task)
builder.add_node("update_memory", replace_memory, input_schema=Task)
builder.add_node(settle)

builder.add_edge(START, "receive")
builder.add_conditional_edges("receive", is_settled, {True: END, False: "find_similar"})
builder.add_edge("find_similar", "manage")
builder.add_conditional_edges("manage", each_decision, ["insert_memory", "update_memory", "settle"])
builder.add_edge("insert_memory", "settle")
builder.add_edge("update_memory", "settle")
builder.add_edge("settle", END)

graph = builder.compile(name="memory_agent_v1")
