"""Dispute resolution (§5): both approaches on similar tasks, at most two rounds, then a person."""

from langgraph.graph import END, START

from mneme.nodes.learning.context import TeamContext
from mneme.nodes.learning.dispute_resolution import (
    Case,
    Ended,
    State,
    ask_person,
    can_test,
    choose,
    escalate,
    is_decided,
    recommend,
    settle,
    test,
)
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=TeamContext, input_schema=Case, output_schema=Ended)
builder.add_node(choose)
builder.add_sequence([test, recommend])
builder.add_sequence([escalate, ask_person, settle])

builder.add_edge(START, "choose")
builder.add_conditional_edges("choose", can_test, ["test", "recommend"])
builder.add_conditional_edges("recommend", is_decided, ["settle", "choose", "escalate"])
builder.add_edge("settle", END)

graph = builder.compile(name="dispute_resolution")
