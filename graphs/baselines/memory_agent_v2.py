"""The memory agent, version 2 of the paper: message router, then one upsert router (Figure 2)."""

from mneme.graphs.memory_agent import OPERATIONS, remembering
from mneme.nodes.chat.paper_versions import (
    compose,
    composed,
    decided,
    find_similar_to_message,
    message_router,
    route_upserts,
    routed_to_search,
)

builder = remembering("message_router")
builder.add_node(message_router)
builder.add_node("find_similar", find_similar_to_message)
builder.add_node("upsert_router", route_upserts)
builder.add_node(compose)

builder.add_conditional_edges(
    "message_router", routed_to_search, ["compose", "find_similar", "forget", "settle"]
)
builder.add_edge("find_similar", "upsert_router")
builder.add_conditional_edges("upsert_router", decided, ["compose", *OPERATIONS])
builder.add_conditional_edges("compose", composed, ["find_similar", *OPERATIONS])

graph = builder.compile(name="memory_agent_v2")
