"""Remember all waiting messages one by one, with the memory agent as a subgraph."""

from langgraph.graph import START

from mneme.graphs.memory_agent import graph as memory_agent
from mneme.nodes.chat.asking_owner import Questions, ask_owner
from mneme.nodes.chat.context import MemoryContext
from mneme.nodes.chat.remember import Batch, Report, State, count, keep, take, take_in
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=MemoryContext, input_schema=Batch, output_schema=Report)
builder.add_node(take_in)
builder.add_node(take)
builder.add_node("memory_agent", memory_agent, error_handler=keep)  # a failed message must not end the run
builder.add_node(count)
builder.add_node(ask_owner, input_schema=Questions)

builder.add_edge(START, "take_in")
# `take` and `keep` return a Command with their next node, so they have no edges here.
builder.add_edge("take_in", "take")
builder.add_edge("memory_agent", "count")
builder.add_edge("count", "take")
builder.add_edge("ask_owner", "take")

graph = builder.compile(name="remember")
