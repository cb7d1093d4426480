"""CoELA (Zhang et al., ICLR 2024): each agent perceives, remembers, drafts a message, plans, executes."""

from langgraph.graph import END, START

from mneme.nodes.household.alone import is_over
from mneme.nodes.household.coela import State, communicate, plan, remember
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.household.household import begin, execute, perceive
from mneme.nodes.household.household_state import Ending, Task
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=HouseholdContext, input_schema=Task, output_schema=Ending)
builder.add_node(begin)
builder.add_node(perceive)
builder.add_node(remember)
builder.add_node(communicate)
builder.add_node(plan)
builder.add_node(execute)

builder.add_edge(START, "begin")
builder.add_edge("begin", "perceive")
builder.add_conditional_edges("perceive", is_over, {True: END, False: "remember"})
builder.add_edge("remember", "communicate")
builder.add_edge("communicate", "plan")
builder.add_edge("plan", "execute")
builder.add_edge("execute", "perceive")

graph = builder.compile(name="coela")
