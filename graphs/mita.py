"""MiTa (§3): members perceive, negotiate and execute; a manager allocates and summarises."""

from langgraph.graph import END, START

from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.household.household_state import Task
from mneme.nodes.household.mita import (
    after_perceiving,
    allocate,
    begin,
    execute,
    finish,
    follow_proposals,
    negotiate,
    negotiations,
    perceive,
    summarise,
    who_decides,
)
from mneme.nodes.household.mita_state import Asked, Result, State
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=HouseholdContext, input_schema=Task, output_schema=Result)
builder.add_sequence([begin, perceive])
builder.add_node(summarise)
builder.add_node(negotiate, input_schema=Asked)
builder.add_node(allocate)
builder.add_node(follow_proposals)
builder.add_node(execute)
builder.add_node(finish)

builder.add_edge(START, "begin")
builder.add_conditional_edges("perceive", after_perceiving, ["summarise", "negotiate", "finish"])
builder.add_conditional_edges("summarise", negotiations, ["negotiate", "finish"])
builder.add_conditional_edges("negotiate", who_decides, ["allocate", "follow_proposals"])
builder.add_edge("allocate", "execute")
builder.add_edge("follow_proposals", "execute")
builder.add_edge("execute", "perceive")
builder.add_edge("finish", END)

graph = builder.compile(name="mita")
