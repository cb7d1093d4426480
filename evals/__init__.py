"""Evaluations: one folder for each paper or part, and one module for each `mneme eval NAME`.

A module named in `EVALUATIONS` has a Pydantic model `Options`, whose fields become the command's options,
and `run(options, progress)`, which returns a `Report`.
"""

from typing import NamedTuple


class Evaluation(NamedTuple):
    """The module of an evaluation in this package, its one-line description, and its paper."""

    module: str
    does: str
    paper: str


CHAT, MITA, INTRINSIC = "Agentic RAG memory", "MiTa", "Intrinsic memory agents"
SHARING, LEARNING, OURS = "Memory sharing", "Self-improving memory", "Models, and our own parts"
EVALUATIONS = {
    "msc": Evaluation("chat.msc", "Score what is remembered: table 1, contradictions.", CHAT),
    "locomo": Evaluation("chat.locomo", "Measure evidence recall and answers on LoCoMo.", CHAT),
    "latency": Evaluation("chat.latency", "Measure the wait for a reply while memory agents work.", CHAT),
    "household": Evaluation("household.evaluation", "Compare teams: tables 1 and 2, figure 3.", MITA),
    "pddl": Evaluation("pddl.evaluation", "Compare eight memories on planning: table 1.", INTRINSIC),
    "pipeline_design": Evaluation(
        "discussion.pipeline_design", "Design a pipeline: table 2, figure 3.", INTRINSIC
    ),
    "memory_sharing": Evaluation(
        "sharing.memory_sharing", "Compare pools, and retrievers: tables 1 and 2.", SHARING
    ),
    "retrievers": Evaluation(
        "sharing.retriever_splits", "Count whose memories each retriever finds.", SHARING
    ),
    "compound_learning": Evaluation(
        "learning.compound_learning", "Compare query tuning with cards and rivals (§7).", LEARNING
    ),
    "governed": Evaluation(
        "governed.evaluation", "Count leaks, stale and nameless texts in shared memories.", OURS
    ),
    "compare": Evaluation("compare.evaluation", "Compare which memory helps with which work.", OURS),
    "model": Evaluation("prompts.evaluation", "Test which model is good enough for which role.", OURS),
    "bench": Evaluation("bench.bench", "Measure how fast Mneme's own parts are.", OURS),
}
"""Every evaluation by its name on the command line; nothing is imported until it is run."""
