"""Dispute resolution (§5): try both approaches on similar tasks, two rounds at most; then ask a person."""

from langgraph.graph import END, START

from mneme.nodes.learning import dispute_resolution as dispute
from mneme.nodes.learning.context import TeamContext
from mneme.nodes.learning.dispute_resolution import Case, Ended, State
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=TeamContext, input_schema=Case, output_schema=Ended)
builder.add_node(dispute.choose)
builder.add_sequence([dispute.test, dispute.recommend])
# The ledger notes the escalation before the run waits, so that other programs list the dispute meanwhile.
builder.add_sequence([dispute.escalate, dispute.ask_person, dispute.settle])

builder.add_edge(START, "choose")
builder.add_conditional_edges("choose", dispute.can_test, ["test", "recommend"])
# `choose` again: a second round on other tasks.
builder.add_conditional_edges("recommend", dispute.is_decided, ["settle", "choose", "escalate"])
builder.add_edge("settle", END)

graph = builder.compile(name="dispute_resolution")
