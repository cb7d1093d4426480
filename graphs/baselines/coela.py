"""CoELA (Zhang et al., ICLR 2024): each agent perceives, remembers, drafts a message, plans, executes."""

from langgraph.graph import END, START

from mneme.nodes.household.alone import is_over
from mneme.nodes.household.coela import State, communicate, plan, remember
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.household.household import begin, execute, perceive
from mneme.nodes.household.household_state import Ending, Task
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=HouseholdContext, input_schema=Task, output_schema=Ending)
builder.add_sequence([begin, perceive])
builder.add_sequence([remember, communicate, plan, execute])

builder.add_edge(START, "begin")
builder.add_conditional_edges("perceive", is_over, {True: END, False: "remember"})
builder.add_edge("execute", "perceive")

graph = builder.compile(name="coela")
