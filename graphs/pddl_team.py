"""A team in a PDDL world (§4): a solver, a second agent, and a memory of any kind."""

from langgraph.graph import END, START

from mneme.nodes.pddl.context import PddlContext
from mneme.nodes.pddl.pddl_team import Given, Result, State, act, is_over, observe, recall, remember, solve
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=PddlContext, input_schema=Given, output_schema=Result)
builder.add_node(recall)
builder.add_sequence([solve, act, observe])
builder.add_node(remember)

builder.add_edge(START, "recall")
builder.add_conditional_edges("recall", is_over, ["solve", "remember"])  # a goal may hold from the start
builder.add_conditional_edges("observe", is_over, ["solve", "remember"])
builder.add_edge("remember", END)

graph = builder.compile(name="pddl_team")
