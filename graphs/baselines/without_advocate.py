"""Compound learning without the devil's advocate: trials alone say what is wrong with a draft."""

from langgraph.graph import END, START

from mneme.nodes.learning.compound_learning.challenge import is_patched, needs_patch, patch
from mneme.nodes.learning.compound_learning.compile import compile, keep
from mneme.nodes.learning.compound_learning.decide import decide, verify
from mneme.nodes.learning.compound_learning.research import recall, research
from mneme.nodes.learning.compound_learning.state import Result, State
from mneme.nodes.learning.context import LearningContext
from mneme.nodes.learning.without_advocate import try_out
from mneme.nodes.learning.worlds import Problem
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=LearningContext, input_schema=Problem, output_schema=Result)
builder.add_sequence([recall, research, try_out])
builder.add_node(patch)
builder.add_sequence([verify, decide, compile, keep])

builder.add_edge(START, "recall")
builder.add_conditional_edges("try_out", needs_patch, ["patch", "verify"])
builder.add_conditional_edges("patch", is_patched, {True: "try_out", False: "verify"})
builder.add_edge("keep", END)

graph = builder.compile(name="without_advocate")
