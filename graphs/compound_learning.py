"""Compound learning (§2, §3): researcher, devil's advocate, leader and monitor share one memory."""

from typing import Any

from langgraph.graph import END, START

from mneme.nodes.learning.compound_learning.devils_advocate import challenge, is_patched, needs_patch, patch
from mneme.nodes.learning.compound_learning.leader import decide, verify
from mneme.nodes.learning.compound_learning.monitor import compile, keep
from mneme.nodes.learning.compound_learning.researcher import recall, research
from mneme.nodes.learning.compound_learning.state import Result, State
from mneme.nodes.learning.context import LearningContext
from mneme.nodes.learning.worlds import Problem
from mneme.nodes.workflow import Workflow


def team(first: Any, criticise: Any, *last: Any) -> Workflow:
    """Build the graph of the team and its rivals from a first step, a step that criticises, and the last."""
    builder = Workflow(State, context_schema=LearningContext, input_schema=Problem, output_schema=Result)
    builder.add_node(first)
    builder.add_sequence([research, criticise])
    builder.add_node(patch)
    builder.add_sequence([verify, decide, *last])

    builder.add_edge(START, first.__name__)  # the caller adds its next edge: a cache may skip all steps
    builder.add_conditional_edges(criticise.__name__, needs_patch, ["patch", "verify"])
    # An unchanged draft would meet the same objections again.
    builder.add_conditional_edges("patch", is_patched, {True: criticise.__name__, False: "verify"})
    builder.add_edge(last[-1].__name__, END)
    return builder


builder = team(recall, challenge, compile, keep)
builder.add_edge("recall", "research")

graph = builder.compile(name="compound_learning")
