"""The memory agent, version 2 of the paper: message router, then one upsert router (Figure 2)."""

from mneme.graphs.memory_agent import OPERATION_NODES, workflow_from
from mneme.nodes.chat.memory_agent import routed
from mneme.nodes.chat.message_lifecycle import each_decision
from mneme.nodes.chat.paper_versions import compose, find_similar_to_message, message_router, upsert_router

builder = workflow_from("message_router")
builder.add_node(message_router)
builder.add_node("find_similar", find_similar_to_message)
builder.add_node(upsert_router)
builder.add_node(compose)

builder.add_conditional_edges("message_router", routed, ["find_similar", "forget", "settle"])
builder.add_edge("find_similar", "upsert_router")
builder.add_edge("upsert_router", "compose")
builder.add_conditional_edges("compose", each_decision, OPERATION_NODES)
builder.add_edge("forget", "settle")

graph = builder.compile(name="memory_agent_v2")
