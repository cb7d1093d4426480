"""The chatbot of Figure 1: it answers at once and leaves memory to the agent in the background."""

from langgraph.graph import END, START, StateGraph

from nodes.chatbot import Conversation, State, hand_over, recall, respond
from nodes.context import ChatContext

builder = StateGraph(State, context_schema=ChatContext, input_schema=Conversation, output_schema=Conversation)
builder.add_node(recall)
builder.add_node(respond)
builder.add_node(hand_over)

builder.add_edge(START, "recall")
builder.add_edge("recall", "respond")
builder.add_edge("respond", "hand_over")
builder.add_edge("hand_over", END)

graph = builder.compile(name="chatbot")
