"""The leader's question (§3, step 4): resolve the task."""

from pydantic import BaseModel, Field

from mneme.environments.trial import Trial
from mneme.prompts.learning.compound_learning.research import Draft
from mneme.prompts.learning.compound_learning.task import (
    MAX_ANSWER_ITEMS,
    MAX_TEXT_CHARS,
    SETTING,
    TASK_IS_DATA,
    Known,
    Sentence,
    Setting,
)
from mneme.prompts.prompt import Prompt, Reason, Schemas, some_of


class Case(Setting):
    """The input of the leader's decision."""

    draft: Draft
    iterations: int
    trial: Trial | None = None
    resolved: list[str] = Field([])
    unresolved: list[str] = Field([])
    open_blocking: int = 0
    cards: list[Known] = Field([])


class Resolution(BaseModel):
    """The leader's decision."""

    rationale: Reason
    answer: str = Field(
        "", max_length=MAX_TEXT_CHARS, description="The final answer in words; empty: the draft as it is."
    )
    solved: bool = Field(description="Whether the task is solved; what was measured decides where it was.")
    confidence: float = Field(ge=0, le=1)
    references: list[Sentence] = Field([], max_length=5, description="External sources, where there are any.")
    uncertainties: list[Reason] = Field([], max_length=MAX_ANSWER_ITEMS)
    fallbacks: list[Sentence] = Field([], max_length=5)
    faster_or_novel: bool = Field(description="Whether it is faster than before, or a new approach.")
    reusable: bool = Field(description="Whether the approach is a pattern, not one task's accident.")
    promote: list[int] = Field(
        [], max_length=MAX_ANSWER_ITEMS, description="Numbers of the used cards that you approve as verified."
    )
    # The paper verifies a new card at once above a confidence of 0.8, if the leader approves (§3, step 5).
    verify_new: bool = Field(
        False, description="Whether a new card from this task is verified at once: measured, and sure."
    )


resolve_task = Prompt(
    name="resolve_task",
    given=Case,
    answer=Resolution,
    system=f"""You are the leader of a team. Decide on the final answer from the patched draft, the
objections closed and open, the cards it rests on and what was measured. Say how confident you are, what
is uncertain and what to fall back on. Only you approve cards as verified: approve one only where the task
was solved on it, it served before, and no blocking objection is open; one that is verified stays so. Where
nothing was measured, judge the answer yourself and say so. {TASK_IS_DATA}
The draft is the answer: copy nothing of it, and leave the answer empty, unless you give another in words.
Confidence is from 0 to 1. References are sources outside of the team: none of its cards. A new card is
verified at once only where the measurement is so clear that no second task is needed. Faster_or_novel:
whether the answer is faster than what there was, or a new approach. Reusable: whether other tasks can use
its approach.""",
    examples=[
        Resolution(
            rationale="The overdue loans were counted 4.2 times as fast.",
            solved=True,
            confidence=0.85,
            uncertainties=["lending a book takes a little longer"],
            fallbacks=["drop the index overdue_loans again"],
            faster_or_novel=True,
            reusable=True,
            promote=[0],
        )
    ],
    user=f"""{SETTING}

Draft after $iterations iterations:
$draft

Measured: $trial

Objections closed:
$resolved

Objections open:
$unresolved
Blocking and open: $open_blocking

Cards used:
$cards""",
)


@resolve_task.bound
def can_be_resolved(given: Case) -> Schemas:
    """Bind the verdict to the measurement, and offer the cards that may be promoted (§5)."""
    # Whether a measured task is solved is no opinion; without a world there is nothing but one.
    measured = {} if given.trial is None else {"solved": {"enum": [given.trial.solved]}}
    failed = given.trial is not None and not given.trial.solved
    may_verify = given.trial is not None and not failed and not given.open_blocking
    return {
        **measured,
        **some_of("promote", range(0 if failed or given.open_blocking else len(given.cards))),
        "verify_new": {} if may_verify else {"enum": [False]},
        "uncertainties": {"maxItems": 5},  # of a model; rules pass on all objections that are open
    }


@resolve_task.check
def promotes_by_what_is_solved(given: Case, answer: Resolution) -> None:
    """Refuse promotions by a task that is not solved."""
    if answer.promote and not answer.solved:
        raise ValueError("No card is promoted by an unsolved task.")
