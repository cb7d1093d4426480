"""The updater of the memory agent as two agents: it brings older memories up to date in batches (§4.2)."""

from langgraph.graph import END, START

from mneme.nodes.chat.context import MemoryContext
from mneme.nodes.chat.two_agents import (
    Since,
    Updated,
    Updating,
    gather_new,
    is_left,
    look_at_batch,
    update_batch,
)
from mneme.nodes.workflow import Workflow

builder = Workflow(Updating, context_schema=MemoryContext, input_schema=Since, output_schema=Updated)
builder.add_node(gather_new)
builder.add_node(look_at_batch)
builder.add_node(update_batch)

builder.add_edge(START, "gather_new")
builder.add_conditional_edges("gather_new", is_left, {True: "look_at_batch", False: END})
builder.add_edge("look_at_batch", "update_batch")
builder.add_conditional_edges("update_batch", is_left, {True: "look_at_batch", False: END})

graph = builder.compile(name="memory_updater")
