"""A prompt cache (§1): the same words get the same answer; any other task is solved without memory."""

from langgraph.graph import END, START

from mneme.nodes.learning.compound_learning.challenge import challenge, is_patched, needs_patch, patch
from mneme.nodes.learning.compound_learning.decide import decide, verify
from mneme.nodes.learning.compound_learning.research import research
from mneme.nodes.learning.compound_learning.state import Result, State
from mneme.nodes.learning.context import LearningContext
from mneme.nodes.learning.prompt_cache import is_known, keep, look_up
from mneme.nodes.learning.worlds import Problem
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=LearningContext, input_schema=Problem, output_schema=Result)
builder.add_node(look_up)
builder.add_sequence([research, challenge])
builder.add_node(patch)
builder.add_sequence([verify, decide, keep])

builder.add_edge(START, "look_up")
builder.add_conditional_edges("look_up", is_known, ["keep", "research"])
builder.add_conditional_edges("challenge", needs_patch, ["patch", "verify"])
builder.add_conditional_edges("patch", is_patched, {True: "challenge", False: "verify"})
builder.add_edge("keep", END)

graph = builder.compile(name="prompt_cache")
