"""Consolidation (§8): examine, gather, measure, train, judge, deploy, replay, settle."""

from langgraph.graph import END, START

from mneme.nodes.learning.consolidation import deploy, tune
from mneme.nodes.learning.consolidation.state import Replaying, Result, State, TuningContext, Wanted
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=TuningContext, input_schema=Wanted, output_schema=Result)
builder.add_node(tune.examine)
builder.add_sequence([tune.gather, tune.measure, tune.train, tune.judge_tuned])
builder.add_node(deploy.deploy)
builder.add_node(deploy.replay, input_schema=Replaying)  # one answer each: a kill loses no finished one
builder.add_node(deploy.settle)

builder.add_edge(START, "examine")
builder.add_conditional_edges("examine", tune.is_due, ["gather", END])
# A model that has forgotten is noted without being deployed.
builder.add_conditional_edges("judge_tuned", tune.has_forgotten, ["deploy", "settle"])
builder.add_conditional_edges("deploy", deploy.each_replay, ["replay", "settle"])
builder.add_edge("replay", "settle")  # `settle` runs once, after all replays of the fan-out
builder.add_edge("settle", END)

graph = builder.compile(name="consolidation")
