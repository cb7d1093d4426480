"""A prompt cache (§1): a task in the same words gets the same answer; any other is solved without memory."""

from mneme.graphs.compound_learning import team
from mneme.nodes.learning.compound_learning.devils_advocate import challenge
from mneme.nodes.learning.prompt_cache import is_known, keep, look_up

builder = team(look_up, challenge, keep)
builder.add_conditional_edges("look_up", is_known, ["keep", "research"])  # a known answer is not tried again

graph = builder.compile(name="prompt_cache")
