"""Intrinsic Memory Agents (§3, §5): select a speaker, let it speak, update its own memory; repeat."""

from langgraph.graph import END, START

from mneme.nodes.discussion.context import DiscussionContext
from mneme.nodes.discussion.ending import approval, ask_approval, close, document, verdict
from mneme.nodes.discussion.intrinsic_memory import floor, hear, open, select, speak, update
from mneme.nodes.discussion.state import Given, Result, State
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=DiscussionContext, input_schema=Given, output_schema=Result)
builder.add_sequence([open, select])
builder.add_node(speak)
builder.add_node(hear)
builder.add_node(update)
builder.add_node(document)
builder.add_node(ask_approval)
builder.add_node(close)

builder.add_edge(START, "open")
builder.add_conditional_edges("select", floor, ["speak", "hear", "document"])
builder.add_edge("speak", "update")
builder.add_edge("hear", "update")  # a person's turn is an output of the role that the person speaks for
builder.add_edge("update", "select")
builder.add_conditional_edges("document", approval, ["ask_approval", "close"])
builder.add_conditional_edges("ask_approval", verdict, ["close", "select"])  # remarks are discussed
builder.add_edge("close", END)

graph = builder.compile(name="intrinsic_memory")
