"""Rubric design (§3.1): a model drafts criteria, a person reviews them, and a version of them is frozen."""

from langgraph.graph import END, START

from mneme.nodes.sharing.context import DesignContext
from mneme.nodes.sharing.rubric_design import Result, State, Wanted, draft, freeze, is_reviewed, review
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=DesignContext, input_schema=Wanted, output_schema=Result)
builder.add_sequence([draft, review])
builder.add_node(freeze)

builder.add_edge(START, "draft")
builder.add_conditional_edges("review", is_reviewed, ["draft", "freeze", END])
builder.add_edge("freeze", END)

graph = builder.compile(name="rubric_design")
