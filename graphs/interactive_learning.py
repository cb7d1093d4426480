"""Interactive learning (§3.3): find a question for each standard answer; agents answer; keep good pairs."""

from langgraph.graph import END, START

from mneme.nodes.sharing import interactive_learning as learning
from mneme.nodes.sharing.context import GrowthContext
from mneme.nodes.sharing.interactive_learning import Dealt, QuestionRequest, Result, State, Wanted
from mneme.nodes.workflow import Workflow

builder = Workflow(State, context_schema=GrowthContext, input_schema=Wanted, output_schema=Result)
builder.add_node(learning.take_in)
builder.add_node(learning.choose)
builder.add_node(learning.ask, input_schema=QuestionRequest)
builder.add_node(learning.pose)
builder.add_node(learning.exchange, input_schema=Dealt)
builder.add_node(learning.end)

builder.add_edge(START, "take_in")
builder.add_edge("take_in", "choose")
builder.add_conditional_edges("choose", learning.each_standard, ["ask", "end"])
builder.add_edge("ask", "pose")  # runs once, after all questions of the fan-out
builder.add_conditional_edges("pose", learning.each_exchange, ["exchange", "choose"])
builder.add_edge("exchange", "choose")  # what was stored may be a standard answer of the next round
builder.add_edge("end", END)

graph = builder.compile(name="interactive_learning")
