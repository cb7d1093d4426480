"""The memory agent, version 2 of the paper: message router, then one upsert router (Figure 2)."""

from mneme.graphs.memory_agent import OPERATION_NODES, ROUTES, workflow_from
from mneme.nodes.chat.message_lifecycle import each_decision
from mneme.nodes.chat.paper_versions import compose, find_similar_to_message, message_router, upsert_router

builder = workflow_from("message_router")
builder.add_node(message_router)
builder.add_node("find_similar", find_similar_to_message)
builder.add_node(upsert_router)
builder.add_node(compose)

builder.add_conditional_edges("message_router", lambda state: state["route"], ROUTES)
builder.add_edge("find_similar", "upsert_router")
builder.add_edge("upsert_router", "compose")  # written down last: the routers see the raw message
builder.add_conditional_edges("compose", each_decision, OPERATION_NODES)
builder.add_edge("forget", "settle")  # these versions write nothing down beside a wish to forget

graph = builder.compile(name="memory_agent_v2")
