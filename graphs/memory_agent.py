"""The memory agent: read a message, compare it with similar memories, insert or update (Figure 2).

The paper's own three versions are in `graphs/baselines/`.
"""

from collections.abc import Hashable

from langgraph.graph import END, START

from mneme.nodes.chat import message_lifecycle as message
from mneme.nodes.chat.context import MemoryContext
from mneme.nodes.chat.memory_agent import (
    conflict_router,
    decide,
    find_similar,
    left_to_store,
    message_router,
)
from mneme.nodes.chat.memory_operations import discard, insert_memory, replace_memory, retire, update_memory
from mneme.nodes.chat.message_lifecycle import Given, Result, State
from mneme.nodes.workflow import Workflow

OPERATION_NODES = ["insert_memory", "update_memory", "replace_memory", "retire", "discard", "settle"]
ROUTES: dict[Hashable, str] = {"store": "find_similar", "forget": "forget", "discard": "settle"}


def workflow_from(first: str) -> Workflow:
    """Build the nodes of every version: receive a message, continue at `first`, carry out the operations."""
    builder = Workflow(State, context_schema=MemoryContext, input_schema=Given, output_schema=Result)
    builder.add_node(message.receive)
    for operation in (insert_memory, update_memory, replace_memory, retire, discard):
        builder.add_node(operation)
        builder.add_edge(operation.__name__, "settle")  # once, after all operations of the fan-out
    builder.add_node(message.forget)
    builder.add_node(message.settle)
    builder.add_edge(START, "receive")
    # A message that has an outcome was remembered before: a replay, or the same message sent again.
    builder.add_conditional_edges("receive", lambda state: state["route"] is None, {True: first, False: END})
    builder.add_edge("settle", END)
    return builder


builder = workflow_from("message_router")
builder.add_node(message_router)
builder.add_node(find_similar)
builder.add_node(conflict_router)
builder.add_node(decide)

builder.add_conditional_edges("message_router", lambda state: state["route"], ROUTES)
# One message may both ask to forget and tell something new.
builder.add_conditional_edges("forget", left_to_store, ["find_similar", "settle"])
builder.add_edge("find_similar", "conflict_router")
builder.add_edge("conflict_router", "decide")
builder.add_conditional_edges("decide", message.each_decision, OPERATION_NODES)

graph = builder.compile(name="memory_agent")
