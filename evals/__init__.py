"""Evaluations: one folder for each paper or part, and one module for each `mneme eval NAME`.

A module named in `EVALUATIONS` has a Pydantic model `Options`, whose fields become the command's options,
and `run(options, progress)`, which returns a `Report`.
"""

from typing import NamedTuple


class Evaluation(NamedTuple):
    """The module of an evaluation, within this package, and what it does in one line."""

    module: str
    does: str


EVALUATIONS = {
    "model": Evaluation("prompts.evaluation", "Test which model is good enough for which role."),
    "msc": Evaluation("chat.msc", "Score what is remembered: table 1, contradictions."),
    "locomo": Evaluation("chat.locomo", "Measure evidence recall and answers on LoCoMo."),
    "latency": Evaluation("chat.latency", "Measure the wait for a reply while memory agents work."),
    "household": Evaluation("household.evaluation", "Compare teams in a household: MiTa's tables 1 and 2."),
    "pddl": Evaluation("pddl.evaluation", "Compare eight memories of a team on planning tasks."),
    "pipeline_design": Evaluation(
        "discussion.pipeline_design", "Design a pipeline with intrinsic memory and without."
    ),
    "information_survival": Evaluation(
        "discussion.information_survival", "Measure which facts survive a discussion, by memory."
    ),
    "memory_sharing": Evaluation(
        "sharing.memory_sharing", "Compare pools of memories, and retrievers that learn."
    ),
    "compound_learning": Evaluation(
        "learning.compound_learning", "Compare query tuning with cards, rivals and nothing."
    ),
    "learning_curve": Evaluation(
        "learning.learning_curve", "Fit curves to what a task costs, over hundreds."
    ),
    "transfer": Evaluation("learning.transfer", "Try cards of one family of tasks in another (§11)."),
    "private_sharing": Evaluation(
        "learning.private_sharing", "Share cards between organisations: gain against ε."
    ),
    "consolidation": Evaluation(
        "learning.consolidation", "Measure what a consolidation saves and costs (§8)."
    ),
    "cadence": Evaluation("learning.cadence", "Measure what consolidating every n tasks costs (§11)."),
    "bench": Evaluation("bench.bench", "Measure how fast Mneme's own parts are."),
}
"""Every evaluation by the name that a user types; nothing is imported until it is run."""
