"""Consolidation (§8): examine, gather, measure, train, judge, deploy, replay, settle."""

from langgraph.graph import END, START

from mneme.nodes.learning.consolidation.deploy import deploy, each_replay, replay, settle
from mneme.nodes.learning.consolidation.state import Replaying, Result, State, TuningContext, Wanted
from mneme.nodes.learning.consolidation.tune import (
    examine,
    gather,
    has_forgotten,
    is_due,
    judge_tuned,
    measure,
    train,
)
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=TuningContext, input_schema=Wanted, output_schema=Result)
builder.add_node(examine)
builder.add_sequence([gather, measure, train, judge_tuned])
builder.add_node(deploy)
builder.add_node(replay, input_schema=Replaying)
builder.add_node(settle)

builder.add_edge(START, "examine")
builder.add_conditional_edges("examine", is_due, ["gather", END])
builder.add_conditional_edges("judge_tuned", has_forgotten, ["deploy", "settle"])
builder.add_conditional_edges("deploy", each_replay, ["replay", "settle"])
builder.add_edge("replay", "settle")
builder.add_edge("settle", END)

graph = builder.compile(name="consolidation")
