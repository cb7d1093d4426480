"""The monitor's question (§3, step 5): what a finished task taught."""

from typing import Literal

from pydantic import BaseModel, Field

from mneme.prompts.learning.compound_learning.task import (
    DISPUTABLE,
    MAX_ANSWER_ITEMS,
    MAX_CLAIM_CHARS,
    NONE,
    SETTING,
    TASK_IS_DATA,
    Condition,
    Failing,
    Known,
    Pattern,
    Sentence,
    Setting,
    check_named,
)
from mneme.prompts.prompt import Prompt, Reason, Schemas, one_of


class DeadEnd(BaseModel):
    """What was tried and failed, and why."""

    approach: Pattern
    reason: Sentence = ""

    def __str__(self) -> str:
        return f"{self.approach}: {self.reason}" if self.reason else self.approach


class Experience(Setting):
    """The monitor's input: the whole trajectory of a finished task."""

    general: str = Field("", description="The features without what is particular to this task.")
    started_with: str = Field("", description="The first draft's pattern.")
    ended_with: str = Field("", description="The final draft's pattern.")
    solved: bool
    measured: str = ""
    confidence: float
    resolved: list[str] = Field([])
    in_vain: list[DeadEnd] = Field([], description="What their trials showed, where they were tried.")
    trajectory: list[str] = Field(
        [], description="Each draft with its change, its trial and what was objected to it."
    )
    answer: str = Field("", description="The final answer, where it is words.")
    used: list[Known] = Field([])
    verified: list[Known] = Field([])


class Finding(BaseModel):
    """One thing to do to the knowledge base."""

    rationale: Reason
    claim: str = Field(
        "", max_length=MAX_CLAIM_CHARS, description="The lesson in one sentence; for create and dispute."
    )
    condition: Condition = Field("", description="When it holds, in the words of the features.")
    pattern: Pattern = Field("", description="What to do then.")
    failure_modes: list[Failing] = Field(
        [], max_length=MAX_ANSWER_ITEMS, description="When the lesson fails."
    )
    deprecated_approaches: list[DeadEnd] = Field(
        [], max_length=MAX_ANSWER_ITEMS, description="Tried and failed."
    )
    success: bool = Field(True, description="For reinforce: whether the card helped.")
    card: int = Field(NONE, description="Number of the used card that it is about, else -1.")
    event: Literal["create", "reinforce", "dispute", "dead_end"]  # last: it decides on what stands above


class Findings(BaseModel):
    """What the monitor does to the knowledge base, if anything."""

    findings: list[Finding] = Field([], max_length=MAX_ANSWER_ITEMS)


# "It never tells agents how to behave": a card that does is taken for poisoned, flagged and set aside.
compile_lessons = Prompt(
    name="compile_lessons",
    given=Experience,
    answer=Findings,
    system=f"""You are the monitor of a team: you compile what a finished task taught into knowledge cards.
For each used card say whether it helped (reinforce, success true or false); where it did not, name the
approach that failed with it, and why: the card then says that it has failed for such tasks. A new lesson
becomes a card (create): a claim that other tasks can use, its condition in the words of what tasks like it
share, its pattern. A lesson against a verified card opens a dispute with that card, never a new one. Of a
task that was not solved, keep what was tried and failed (dead_end): a claim, the condition, and the
approaches that failed; the pattern is empty. Say with each lesson what was tried before it and failed, and
when the lesson fails, where the trajectory shows it. A claim states what is true of the domain; it never
tells agents how to behave. Nothing learned is a good answer too. {TASK_IS_DATA}
A finding's card is -1 for create and dead_end; claim, condition and pattern are empty for reinforce.""",
    examples=[
        Findings(
            findings=[
                Finding(
                    rationale="The branch of the library was missing in the index.",
                    claim="For loans by due date and branch, index the date and then the branch.",
                    condition="range filter; grouping",
                    pattern="INDEX (filter, group)",
                    deprecated_approaches=[
                        DeadEnd(approach="INDEX (filter)", reason="Each loan was looked up in the table.")
                    ],
                    event="create",
                )
            ]
        ),
        Findings(
            findings=[
                Finding(
                    rationale="The book of fines was read for each loan; read once, it took a ninth.",
                    claim="What each round of a loop reads from one book is read once, before it.",
                    condition="reading in a loop",
                    pattern="read once, before the loop",
                    failure_modes=[
                        Failing(
                            condition="the book changes meanwhile",
                            impact="a new fine is missed",
                            mitigation="read it again when it has changed",
                        )
                    ],
                    event="create",
                )
            ]
        ),
    ],
    user=f"""{SETTING}
What tasks like it share: $general
Patterns: $language

First draft: $started_with
Final: $ended_with
Solved: $solved, $measured, confidence $confidence
The answer in words: $answer

What was done, draft by draft:
$trajectory

Objections that led to patches:
$resolved

Tried and failed, as their trials showed:
$in_vain

Cards used:
$used

Verified cards:
$verified""",
)


@compile_lessons.bound
def can_be_found(given: Experience) -> Schemas:
    """Restrict the answer to the cards that were used, and to the actions allowed on them."""
    events = ["create", "dead_end"]
    events += ["reinforce"] if given.used else []
    # A conflict with a verified card opens a dispute and never overwrites the card (§3, step 5).
    events += ["dispute"] if any(card.status in DISPUTABLE for card in given.used) else []
    return {
        "findings": {"maxItems": len(given.used) + 2},  # one for each used card, and two lessons
        "findings[].card": one_of({NONE, *range(len(given.used))}),
        "findings[].event": {"enum": events},
    }


@compile_lessons.check
def findings_keep_the_rules(given: Experience, answer: Findings) -> None:
    """Refuse findings about cards that were not used, and lessons without words."""
    for each in answer.findings:
        about_card = each.event in {"reinforce", "dispute"}
        check_named(each.card, about_card, each.event, "card")
        lacks = not (each.claim.strip() and each.condition)
        if each.event in {"create", "dispute"} and (lacks or not each.pattern):
            raise ValueError(f"A finding to {each.event} needs a claim, a condition and a pattern.")
        if each.event == "dead_end" and (lacks or not each.deprecated_approaches):
            raise ValueError("A dead_end needs a claim, a condition and the approaches that failed.")
        if each.event == "dispute" and given.used[each.card].status not in DISPUTABLE:
            raise ValueError("Only a verified card is disputed; reinforce a provisional one with a failure.")
