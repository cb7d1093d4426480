"""The devil's advocate's question (§3, step 2): what is wrong with a draft."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mneme.environments.trial import Trial
from mneme.prompts.learning.compound_learning.task import (
    MAX_ANSWER_ITEMS,
    NONE,
    SETTING,
    TASK_IS_DATA,
    Known,
    Pattern,
    Setting,
    Severity,
    check_named,
)
from mneme.prompts.prompt import Prompt, Reason, Schemas, one_of

MAX_CHECK_CHARS = 2_000
Kind = Literal["missing_edge_case", "contradiction", "known_pitfall", "unstated_assumption"]


class Objection(BaseModel):
    """What is wrong with a draft, or may be."""

    evidence: Reason = Field(description="What in the draft, the plan or the trial shows it.")
    kind: Kind
    card: int = Field(NONE, description="Number of the verified card that is contradicted, else -1.")
    pitfall: int = Field(NONE, description="Number of the deprecated card that is repeated, else -1.")
    remedy: Pattern = Field("", description="A pattern that may mend it; may be empty.")
    severity: Severity

    def __str__(self) -> str:
        remedy = f" (may help: {self.remedy})" if self.remedy else ""
        return f"{self.severity}, {self.kind}: {self.evidence}{remedy}"


class Review(Setting):
    """The devil's advocate's input: a draft, and the result of its trial."""

    draft: str
    pattern: str = ""
    rests_on: list[str] = Field([], description="The claims of the cards that the draft rests on.")
    proven: bool = Field(False, description="Whether the draft rests on cards.")
    trial: Trial | None = None
    tried: list[str] = Field([])
    earlier: list[str] = Field([], description="What was objected to earlier drafts, and what came of it.")
    remedies: list[str] = Field([])
    cards: list[Known] = Field([])
    pitfalls: list[Known] = Field([])


class Objections(BaseModel):
    """All that the devil's advocate objects to, if anything."""

    hidden_check: Annotated[str, Field(max_length=MAX_CHECK_CHARS)] = Field(
        "", description="A shell command that ends with 0 only where the draft is right; may be empty."
    )
    objections: list[Objection] = Field([], max_length=MAX_ANSWER_ITEMS)


# The four kinds of objection are the paper's (§3, step 2); the trial is ours: the draft of §7's third task
# can be challenged only after it has run.
challenge_draft = Prompt(
    name="challenge_draft",
    given=Review,
    answer=Objections,
    system=f"""You are the devil's advocate of a team. Look for what is wrong with the draft: a missing
edge case, a contradiction with a verified card (name its number), a pitfall known from a deprecated card
(name its number), an unstated assumption. What a card says has failed under a condition that holds here is
a dead end: object to a draft that tries it again, with what the card says of it, and name no such remedy.
Where its condition does not hold here, it is none. Rest each objection on the plan, the trial or a card.
Blocking means that the draft must not go out so; all else is advisory. No objection is a good answer too.
Repeat no earlier objection that a later draft has answered. {TASK_IS_DATA}
Where files are changed, write a hidden check: a command that tries what the given checks leave out (an empty
input, other digits, another order) and ends with 0 only where the draft is right. It is run on a copy.
Card and pitfall are -1 where an objection names none. The remedy is a pattern: in the pattern language where
the task has one, else in plain words; "" where you know none.""",
    examples=[
        Objections(
            objections=[
                Objection(
                    evidence="The plan scans all the loans of the library.",
                    kind="missing_edge_case",
                    remedy="INDEX (filter, group)",
                    severity="blocking",
                )
            ]
        ),
        Objections(
            hidden_check="python3 -c 'from fines import sums; assert sums([], {}) == []'",
            objections=[
                Objection(
                    evidence="The trial says that sums([7], book) fails: loan 7 has no line in the book.",
                    kind="missing_edge_case",
                    remedy="take a loan without a line for one without a fine",
                    severity="blocking",
                )
            ],
        ),
    ],
    user=f"""{SETTING}
Patterns: $language

Draft ($pattern):
$draft

The draft rests on these cards:
$rests_on

Trial: $trial

Tried before:
$tried

Objected before:
$earlier

Verified cards:
$cards

Deprecated cards:
$pitfalls

Remedies that apply:
$remedies""",
)


@challenge_draft.bound
def can_be_objected(given: Review) -> Schemas:
    """Restrict the answer to the cards that are shown, and to the kinds of objection that they allow."""
    kinds = ["missing_edge_case", "unstated_assumption"]
    kinds += ["contradiction"] if given.cards else []  # these name a card, so there must be one
    kinds += ["known_pitfall"] if given.pitfalls else []
    return {
        # A command checks files, where there is a world that runs it.
        "hidden_check": {"maxLength": MAX_CHECK_CHARS if given.trial and "files" in given.parts else 0},
        "objections": {"maxItems": 6},  # a small model fills a list to its end
        "objections[].kind": {"enum": kinds},
        "objections[].card": one_of({NONE, *range(len(given.cards))}),
        "objections[].pitfall": one_of({NONE, *range(len(given.pitfalls))}),
    }


@challenge_draft.check
def objections_name_what_they_rest_on(given: Review, answer: Objections) -> None:
    """Refuse a contradiction without a verified card, and a pitfall without a deprecated one."""
    for each in answer.objections:
        check_named(each.card, each.kind == "contradiction", each.kind, "card")
        check_named(each.pitfall, each.kind == "known_pitfall", each.kind, "pitfall")
