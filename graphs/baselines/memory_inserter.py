"""The inserter of the memory agent as two agents: it writes every fact down as a new memory (§4.2)."""

from mneme.graphs.memory_agent import remembering
from mneme.nodes.chat.memory_agent import message_router
from mneme.nodes.chat.two_agents import each_insertion

builder = remembering("message_router")
builder.add_node(message_router)

builder.add_conditional_edges("message_router", each_insertion, ["insert_memory", "forget", "settle"])

graph = builder.compile(name="memory_inserter")
