"""Which questions each role of each workflow asks: a model is chosen by role, not by question."""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel

from mneme.nodes.chat.context import ChatContext
from mneme.nodes.discussion.context import DiscussionContext
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.learning.context import LearningContext
from mneme.nodes.pddl.context import PddlContext
from mneme.nodes.sharing.context import DesignContext, SharingContext
from mneme.prompts.every import Key


class Role(NamedTuple):
    """A role, the field of its workflow's context that names its model, and the questions it is asked."""

    workflow: str
    field: str
    questions: Sequence[Key]
    variant: str = ""
    """Where the field serves several graphs with questions of their own: which of them."""

    def __str__(self) -> str:
        return f"{self.workflow}: {self.field}" + (f" ({self.variant})" if self.variant else "")


def _of(workflow: str, *names: str) -> list[Key]:
    return [(workflow, name) for name in names]


_CHANGING = ("rewrite_memory", "choose_forgotten")
_WRITING = ("route_message", "compose_memories", *_CHANGING)
_TURNS = ("contribute", "delegate", "integrate", "evaluate", "write_document", "update_memory")
_JUDGING = ("judge_design", "judge_as_printed")
_TRIALS = ("summarise_trial", "rate_relevance", "summarise_phase", "extract_key_steps", "explain_failure")
_INSIGHTS = ("revise_insights", "merge_insights", "project_insights")

CONTEXTS: dict[str, Sequence[type[BaseModel]]] = {
    "chat": [ChatContext],
    "discussion": [DiscussionContext],
    "household": [HouseholdContext],
    "learning": [LearningContext],
    "pddl": [PddlContext],
    "sharing": [SharingContext, DesignContext],
    "task_memories": [PddlContext],
}
"""Where the fields of each workflow's roles stand."""

ROLES: Sequence[Role] = (
    Role("chat", "chatbot", _of("chat", "reply")),
    Role("chat", "memory_agent", _of("chat", "read_message", "compare_memories", *_CHANGING)),
    Role("chat", "memory_agent", _of("chat", *_WRITING, "check_conflict"), "version 3"),
    Role("chat", "memory_agent", _of("chat", *_WRITING, "route_upsert"), "version 2"),
    Role("chat", "memory_agent", _of("chat", "choose_tools", "compose_memories", *_CHANGING), "version 1"),
    Role("chat", "memory_agent", _of("chat", "manage_memory"), "version 1 composing first"),
    Role("chat", "memory_agent", _of("chat", "read_message", "find_updates", *_CHANGING), "two agents"),
    Role("discussion", "agents", _of("discussion", *_TURNS)),
    Role("discussion", "agents", _of("discussion", "make_template", "design_team"), "a new team"),
    Role("discussion", "agents", _of("discussion", *_JUDGING), "judge of eval"),
    Role("household", "member", _of("household", "propose_action")),
    Role("household", "manager", _of("household", "allocate_actions", "summarise_passage")),
    Role("household", "member", _of("household", "draft_message", "choose_action"), "CoELA"),
    Role("household", "member", _of("household", "plan_skill"), "ProAgent"),
    Role("household", "perception", _of("household", "recognise_frame")),
    Role("learning", "researcher", _of("learning", "draft_solution", "patch_draft")),
    Role("learning", "devils_advocate", _of("learning", "challenge_draft", "resolve_dispute", "carry_out")),
    Role("learning", "leader", _of("learning", "resolve_task")),
    Role("learning", "monitor", _of("learning", "compile_lessons")),
    Role("pddl", "solver", _of("pddl", "choose_action")),
    Role("pddl", "second_agent", _of("pddl", "choose_otherwise")),
    Role("pddl", "memory_model", _of("discussion", "update_memory")),
    Role("sharing", "answerer", _of("sharing", "answer", "ask_for")),
    Role("sharing", "scorer", _of("sharing", "score_pair", "score_whole")),
    Role("sharing", "grader", _of("sharing", "grade_contradiction")),
    Role("sharing", "grader", _of("sharing", "contradicts"), "as one truth value"),
    Role("sharing", "designer", _of("sharing", "draft_rubric")),
    Role("task_memories", "memory_model", _of("task_memories", *_TRIALS, *_INSIGHTS)),
)
"""Every role, in the order of the tables; memories of tasks serve discussions (`agents`) as well."""
