"""A prompt cache (§1): the same words get the same answer; any other task is solved without memory."""

from mneme.graphs.compound_learning import team
from mneme.nodes.learning.compound_learning.devils_advocate import challenge
from mneme.nodes.learning.prompt_cache import is_known, keep, look_up

builder = team(look_up, challenge, keep)
builder.add_conditional_edges("look_up", is_known, ["keep", "research"])

graph = builder.compile(name="prompt_cache")
