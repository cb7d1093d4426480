"""The chatbot of Figure 1: it answers at once and leaves memory to the agent in the background."""

from langgraph.graph import END, START

from mneme.nodes.chat.chatbot import Conversation, State, hand_over, recall, respond, wake
from mneme.nodes.chat.context import ChatContext
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=ChatContext, input_schema=Conversation, output_schema=Conversation)
builder.add_sequence([recall, hand_over, respond, wake])

builder.add_edge(START, "recall")
builder.add_edge("wake", END)

graph = builder.compile(name="chatbot")
