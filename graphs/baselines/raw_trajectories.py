"""Retrieval of raw trajectories (§1, §9): the team is shown how earlier tasks went, in place of cards."""

from mneme.graphs.compound_learning import team
from mneme.nodes.learning.compound_learning.devils_advocate import challenge
from mneme.nodes.learning.raw_trajectories import keep, recall

builder = team(recall, challenge, keep)
builder.add_edge("recall", "research")

graph = builder.compile(name="raw_trajectories")
