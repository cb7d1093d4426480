"""Compound learning (§2, §3): researcher, devil's advocate, leader and monitor around one shared memory."""

from langgraph.graph import END, START

from mneme.nodes.learning.compound_learning.challenge import challenge, is_patched, needs_patch, patch
from mneme.nodes.learning.compound_learning.compile import compile, keep
from mneme.nodes.learning.compound_learning.decide import decide, verify
from mneme.nodes.learning.compound_learning.research import recall, research
from mneme.nodes.learning.compound_learning.state import Result, State
from mneme.nodes.learning.context import LearningContext
from mneme.nodes.learning.worlds import Problem
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=LearningContext, input_schema=Problem, output_schema=Result)
builder.add_sequence([recall, research, challenge])
builder.add_node(patch)
builder.add_sequence([verify, decide, compile, keep])

builder.add_edge(START, "recall")
builder.add_conditional_edges("challenge", needs_patch, ["patch", "verify"])
builder.add_conditional_edges("patch", is_patched, {True: "challenge", False: "verify"})
builder.add_edge("keep", END)

graph = builder.compile(name="compound_learning")
