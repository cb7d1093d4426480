"""The memory agent, version 3 of the paper: message router, conflict router per similar memory (Figure 2)."""

from mneme.graphs.memory_agent import OPERATION_NODES, ROUTES, workflow_from
from mneme.nodes.chat.memory_agent import decide, find_similar
from mneme.nodes.chat.message_lifecycle import each_decision
from mneme.nodes.chat.paper_versions import compose, conflict_router, message_router

builder = workflow_from("message_router")
builder.add_node(message_router)
builder.add_node(compose)
builder.add_node(find_similar)
builder.add_node(conflict_router)
builder.add_node(decide)

builder.add_conditional_edges("message_router", lambda state: state["route"], ROUTES | {"store": "compose"})
builder.add_edge("compose", "find_similar")  # written down first: each fact is compared by itself
builder.add_edge("find_similar", "conflict_router")
builder.add_edge("conflict_router", "decide")
builder.add_conditional_edges("decide", each_decision, OPERATION_NODES)
builder.add_edge("forget", "settle")  # these versions write nothing down beside a wish to forget

graph = builder.compile(name="memory_agent_v3")
