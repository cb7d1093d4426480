"""Memory training (§3.2): grade new memories, train and judge a version, keep it if no worse; repeat."""

from langgraph.graph import END, START

from mneme.nodes.sharing import retriever_training as training
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.retriever_training import Result, State, Waiting, Wanted
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=PoolContext, input_schema=Wanted, output_schema=Result)
builder.add_node(training.begin)
builder.add_node(training.gather)
builder.add_node(training.grade, input_schema=Waiting)
builder.add_node(training.train)
builder.add_node(training.keep)

builder.add_edge(START, "begin")
builder.add_edge("begin", "gather")
# `train` at once: a training that was killed left graded memories.
builder.add_conditional_edges("gather", training.each_lesson, ["grade", "train", END])
builder.add_edge("grade", "train")
builder.add_edge("train", "keep")
builder.add_conditional_edges("keep", training.more, ["gather", END])

graph = builder.compile(name="retriever_training")
