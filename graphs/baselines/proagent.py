"""ProAgent (Zhang et al., AAAI 2024): each agent watches its teammates, infers, plans, verifies, executes."""

from langgraph.graph import END, START

from mneme.nodes.household.alone import is_over
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.household.household import begin, execute, perceive
from mneme.nodes.household.household_state import Ending, Task
from mneme.nodes.household.proagent import State, plan, watch
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=HouseholdContext, input_schema=Task, output_schema=Ending)
builder.add_sequence([begin, perceive])
builder.add_sequence([watch, plan, execute])

builder.add_edge(START, "begin")
builder.add_conditional_edges("perceive", is_over, {True: END, False: "watch"})
builder.add_edge("execute", "perceive")

graph = builder.compile(name="proagent")
