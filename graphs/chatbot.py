"""The chatbot of Figure 1: reply at once, and leave remembering to the memory agent in the background."""

from langgraph.graph import END, START

from mneme.nodes.chat.chatbot import Conversation, State, hand_over, recall, respond, wake
from mneme.nodes.chat.context import ChatContext
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=ChatContext, input_schema=Conversation, output_schema=Conversation)
# `recall` shows what waits in the inbox, so the new message is handed over after it; and before `respond`, so
# that it is not lost with a reply that fails.
builder.add_sequence([recall, hand_over, respond, wake])

builder.add_edge(START, "recall")
builder.add_edge("wake", END)

graph = builder.compile(name="chatbot")
