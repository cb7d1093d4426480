"""MHP (Puig et al., ICLR 2021): a hierarchical planner; tree search over subgoals on a sampled belief."""

from typing import Any

from langgraph.graph import END, START

from mneme.nodes.household.alone import is_over
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.household.household import begin, execute, perceive
from mneme.nodes.household.household_state import Ending, Task
from mneme.nodes.household.mhp import State, search_subgoals
from mneme.nodes.workflow import Workflow


def decentralised(state: type, *steps: Any) -> Workflow:
    """Build the graph of MHP, CoELA and ProAgent: all perceive, each decides in `steps`, all execute."""
    builder = Workflow(state, context_schema=HouseholdContext, input_schema=Task, output_schema=Ending)
    builder.add_sequence([begin, perceive])
    builder.add_sequence([*steps, execute])

    builder.add_edge(START, "begin")
    builder.add_conditional_edges("perceive", is_over, {True: END, False: steps[0].__name__})
    builder.add_edge("execute", "perceive")
    return builder


builder = decentralised(State, search_subgoals)

graph = builder.compile(name="mhp")
