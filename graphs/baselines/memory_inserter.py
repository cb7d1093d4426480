"""The inserter of the memory agent as two agents: it writes every fact down as a new memory (§4.2)."""

from mneme.graphs.memory_agent import remembering
from mneme.nodes.chat.memory_agent import read
from mneme.nodes.chat.two_agents import each_insertion

builder = remembering("read")
builder.add_node(read)

builder.add_conditional_edges("read", each_insertion, ["insert_memory", "forget", "settle"])

graph = builder.compile(name="memory_inserter")
