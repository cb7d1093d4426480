"""The researcher's questions (§3, steps 1 and 3): draft a solution, and patch it."""

from typing import Annotated

from pydantic import BaseModel, Field

from mneme.environments.trial import Solution, Trial
from mneme.prompts.learning.compound_learning.task import (
    MAX_ANSWER_ITEMS,
    MAX_SQL_CHARS,
    MAX_TEXT_CHARS,
    PATTERN_TEXT,
    SETTING,
    TASK_IS_DATA,
    Advice,
    Known,
    Pattern,
    Sentence,
    Setting,
    Statement,
    parts_bounds,
)
from mneme.prompts.prompt import Prompt, Reason, some_of


class File(BaseModel):
    """A file with its whole new text."""

    path: Annotated[str, Field(max_length=300)]
    text: Annotated[str, Field(max_length=MAX_SQL_CHARS)]


class Draft(BaseModel):
    """A solution, in the parts that the task's world takes: words, SQL, files or a diff."""

    rationale: Reason = Field(description="Why this approach, in one or two sentences.")
    # Before the solution: the approach is chosen, then carried out.
    pattern: Pattern = Field(
        "", description="The approach in the pattern language, e.g. INDEX (filter, group); may be empty."
    )
    statements: list[Statement] = Field(
        [], max_length=MAX_ANSWER_ITEMS, description="CREATE INDEX or ANALYZE statements, in order."
    )
    query: str = Field(
        "", max_length=MAX_SQL_CHARS, description="The query to run instead; empty where it stays as it is."
    )
    files: list[File] = Field([], max_length=MAX_ANSWER_ITEMS, description="Files with their whole new text.")
    diff: str = Field("", max_length=MAX_SQL_CHARS, description="A unified diff, instead of whole files.")
    answer: str = Field(
        "", max_length=MAX_TEXT_CHARS, description="The answer in words, where nothing is run."
    )
    used: list[int] = Field(
        [], max_length=MAX_ANSWER_ITEMS, description="Numbers of the cards that the draft really rests on."
    )
    assumptions: list[Sentence] = Field([], max_length=5)

    def __str__(self) -> str:
        assumed = [f"assumes: {each}" for each in self.assumptions]
        return "\n".join([self.rationale, *filter(None, [self.solution.text, *assumed])])

    @property
    def solution(self) -> Solution:
        """Return the solution as a world takes it."""
        files = {each.path: each.text for each in self.files}
        return Solution.model_validate(self.model_dump(include={*Solution.model_fields}) | {"files": files})


class Work(Setting):
    """What the researcher knows of a task whenever it is asked."""

    cards: list[Known] = Field([])
    pitfalls: list[Known] = Field([])


TASK_SECTION = f"""{SETTING}

How the solution is written: $form
Patterns: $language"""
KNOWLEDGE_SECTION = """Cards:
$cards

Dead ends of earlier tasks:
$pitfalls"""


class Assignment(Work):
    """The researcher's input for a draft."""

    facts: list[str] = Field([])
    textbook: list[Advice] = Field([])


# All examples are of a library, in which no task plays: a small model copies from them.
draft_solution = Prompt(
    name="draft_solution",
    given=Assignment,
    answer=Draft,
    system=f"""You are the researcher of a team that solves tasks. Draft a solution. Use the cards that fit
(their rules are already made out for this task) and name the numbers of those that you really used; use
none that does not fit. What a card or a dead end says has failed, when its condition holds here, is not
tried again; where that condition does not hold, it may be tried. {TASK_IS_DATA}
{PATTERN_TEXT}""",
    examples=[
        Draft(
            rationale="Card 0 fits: the overdue loans are filtered by due date and grouped by branch.",
            pattern="INDEX (filter, group)",
            statements=["CREATE INDEX overdue_loans ON loans (due_date, branch_id)"],
            used=[0],
            assumptions=["few of the library's loans are overdue"],
        ),
        Draft(
            rationale="No card fits. The book of fines is read for each loan; it is enough to read it once.",
            pattern="read once, before the loop",
            files=[
                File(
                    path="fines.py",
                    text="def sums(loans, book):\n    fines = book.read()\n    return [fines[e] for e in loans]",  # noqa: E501
                )
            ],
        ),
    ],
    user=f"""{TASK_SECTION}

{KNOWLEDGE_SECTION}

What the tools told:
$facts

What a textbook begins with, or what nobody tried on such a task:
$textbook""",
    bounds=[lambda given: some_of("used", range(len(given.cards))) | parts_bounds(given)],
)


@draft_solution.check
def is_not_empty(given: Assignment, answer: Draft) -> None:
    """Refuse an empty draft."""
    if not (answer.solution.text or answer.pattern):
        raise ValueError(f"The draft is empty. {given.form}")


class Complaint(Work):
    """A draft with its open objections, each with its remedy worked out for the task."""

    draft: Draft
    objections: list[str]
    advice: list[Advice]
    trial: Trial | None = None


class Patch(Draft):
    """A revised draft, and the numbers of the objections that it closes."""

    closed: list[int] = Field(
        [], max_length=MAX_ANSWER_ITEMS, description="Numbers of the objections that the patch closes."
    )


patch_draft = Prompt(
    name="patch_draft",
    given=Complaint,
    answer=Patch,
    system=f"""You are the researcher of a team. The devil's advocate objected to your draft. Patch it where
an objection is right, and name the numbers of the objections that the patch closes; an objection that is
wrong stays open. What a card or a dead end says has failed, when its condition holds here, is no patch.
{TASK_IS_DATA}
Give the whole new draft, not only what changes.
{PATTERN_TEXT}""",
    examples=[
        Patch(
            rationale="The index on the loans lacked the branch that they are grouped by.",
            pattern="INDEX (filter, group)",
            statements=["CREATE INDEX overdue_loans ON loans (due_date, branch_id)"],
            closed=[0],
        ),
        Patch(
            rationale="A loan without a line in the book has no fine, so it is asked for with a default.",
            pattern="read once, before the loop",
            files=[
                File(
                    path="fines.py",
                    text="def sums(loans, book):\n    fines = book.read()\n    return [fines.get(e, 0) for e in loans]",  # noqa: E501
                )
            ],
            closed=[0],
        ),
    ],
    user=f"""{TASK_SECTION}

Draft:
$draft

Trial: $trial

Objections:
$objections

Their remedies, made out for this task where they could be:
$advice

{KNOWLEDGE_SECTION}""",
    bounds=[
        # A patch rests on no card that the draft did not use.
        lambda given: (
            some_of("closed", range(len(given.objections)))
            | parts_bounds(given)
            | some_of("used", {*given.draft.used})
        )
    ],
)
