"""Memory training (§3.2): grade what is new, train, judge; keep what retrieves no worse; repeat."""

from langgraph.graph import END, START

from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.retriever_training import (
    Result,
    State,
    Waiting,
    Wanted,
    begin,
    each_lesson,
    gather,
    grade,
    keep,
    more,
    train,
)
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=PoolContext, input_schema=Wanted, output_schema=Result)
builder.add_node(begin)
builder.add_node(gather)
builder.add_node(grade, input_schema=Waiting)
builder.add_node(train)
builder.add_node(keep)

builder.add_edge(START, "begin")
builder.add_edge("begin", "gather")
builder.add_conditional_edges("gather", each_lesson, ["grade", "train", END])
builder.add_edge("grade", "train")
builder.add_edge("train", "keep")
builder.add_conditional_edges("keep", more, ["gather", END])

graph = builder.compile(name="retriever_training")
