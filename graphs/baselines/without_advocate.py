"""Compound learning without the devil's advocate: only trials say what is wrong with a draft."""

from mneme.graphs.compound_learning import team
from mneme.nodes.learning.compound_learning.monitor import compile, keep
from mneme.nodes.learning.compound_learning.researcher import recall
from mneme.nodes.learning.without_advocate import try_out

builder = team(recall, try_out, compile, keep)
builder.add_edge("recall", "research")

graph = builder.compile(name="without_advocate")
