"""Memory Sharing (§3): retrieve examples, answer after them, score by the rubric, store good pairs."""

from langgraph.graph import END, START

from mneme.nodes.sharing.context import SharingContext
from mneme.nodes.sharing.memory_sharing import Question, Result, State, answer, retrieve, score, store
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=SharingContext, input_schema=Question, output_schema=Result)
builder.add_sequence([retrieve, answer, score, store])

builder.add_edge(START, "retrieve")
builder.add_edge("store", END)

graph = builder.compile(name="memory_sharing")
