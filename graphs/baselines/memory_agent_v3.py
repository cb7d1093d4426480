"""The memory agent, version 3 of the paper: message router, conflict router per similar memory (Figure 2)."""

from mneme.graphs.memory_agent import OPERATIONS, remembering
from mneme.nodes.chat.memory_agent import decide, find_similar
from mneme.nodes.chat.paper_versions import Check, compose, conflict_router, each_pair, message_router, routed
from mneme.nodes.chat.remembering import each_decision

builder = remembering("message_router")
builder.add_node(message_router)
builder.add_node(compose)
builder.add_node(find_similar)
builder.add_node(conflict_router, input_schema=Check)
builder.add_node(decide)

builder.add_conditional_edges("message_router", routed, ["compose", "forget", "settle"])
builder.add_edge("compose", "find_similar")
builder.add_conditional_edges("find_similar", each_pair, ["conflict_router", "decide"])
builder.add_edge("conflict_router", "decide")
builder.add_conditional_edges("decide", each_decision, OPERATIONS)

graph = builder.compile(name="memory_agent_v3")
