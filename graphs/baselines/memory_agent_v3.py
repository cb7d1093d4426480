"""The memory agent, version 3 of the paper: message router, conflict router per similar memory (Figure 2)."""

from mneme.graphs.memory_agent import OPERATION_NODES, workflow_from
from mneme.nodes.chat.memory_agent import decide, find_similar, routed
from mneme.nodes.chat.message_lifecycle import each_decision
from mneme.nodes.chat.paper_versions import compose, conflict_router, message_router

builder = workflow_from("message_router")
builder.add_node(message_router)
builder.add_node(compose)
builder.add_node(find_similar)
builder.add_node(conflict_router)
builder.add_node(decide)

builder.add_conditional_edges(
    "message_router", routed, {"find_similar": "compose", "forget": "forget", "settle": "settle"}
)
builder.add_edge("compose", "find_similar")
builder.add_edge("find_similar", "conflict_router")
builder.add_edge("conflict_router", "decide")
builder.add_conditional_edges("decide", each_decision, OPERATION_NODES)
builder.add_edge("forget", "settle")

graph = builder.compile(name="memory_agent_v3")
