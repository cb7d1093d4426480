"""The memory agent, version 1 of the paper: one agent that calls its memory tools (Figure 2)."""

from mneme.graphs.memory_agent import OPERATION_NODES, workflow_from
from mneme.nodes.chat.memory_tools import compose_quoted, find_similar_to_message, manage
from mneme.nodes.chat.message_lifecycle import each_decision

builder = workflow_from("find_similar")
builder.add_node("find_similar", find_similar_to_message)
builder.add_node(manage)
builder.add_node("compose", compose_quoted)

builder.add_edge("find_similar", "manage")
builder.add_edge("manage", "compose")
builder.add_conditional_edges("compose", each_decision, OPERATION_NODES)
builder.add_edge("forget", "settle")  # never reached: version 1 has no router that could say "forget"

graph = builder.compile(name="memory_agent_v1")
