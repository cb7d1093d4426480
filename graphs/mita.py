"""MiTa (§3, algorithm 1): members perceive, negotiate and execute; a manager allocates and summarises."""

from langgraph.graph import END, START

from mneme.nodes.household import mita
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.household.household_state import Task
from mneme.nodes.household.mita_state import ProposalRequest, Result, State
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=HouseholdContext, input_schema=Task, output_schema=Result)
builder.add_sequence([mita.begin, mita.perceive])
builder.add_node(mita.summarise)
builder.add_node(mita.negotiate, input_schema=ProposalRequest)  # one member each, all at once (eq. 2)
builder.add_node(mita.allocate)
builder.add_node(mita.follow_proposals)
builder.add_node(mita.execute)
builder.add_node(mita.finish)

builder.add_edge(START, "begin")
builder.add_conditional_edges("perceive", mita.after_perceiving, ["summarise", "negotiate", "finish"])
builder.add_conditional_edges("summarise", mita.negotiations, ["negotiate", "finish"])
builder.add_conditional_edges("negotiate", mita.who_decides, ["allocate", "follow_proposals"])
builder.add_edge("allocate", "execute")
builder.add_edge("follow_proposals", "execute")
builder.add_edge("execute", "perceive")
builder.add_edge("finish", END)

graph = builder.compile(name="mita")
