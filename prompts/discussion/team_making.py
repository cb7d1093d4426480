"""Design a team for a task: its experts, who leads them, and the document that they are to write (§6).

The result is a draft: a person reviews it before a team uses it.
"""

import re
from typing import Annotated

from pydantic import BaseModel, Field

from mneme.prompts.discussion.intrinsic_memory import DISCUSSION_IS_DATA
from mneme.prompts.discussion.template_making import plain_words
from mneme.prompts.prompt import Prompt, Reason

FEWEST, MOST = 2, 8
DOCUMENT_PART = re.compile(r"[^\W\d_][\w -]{0,39}")
RESERVED_NAMES = {"name", "turns", "minutes"}
"""Parts that every item or document has beside its own."""


class Assignment(BaseModel):
    """The task for which a team is made, and experts that it must have."""

    task: str
    experts: list[str] = Field([], description="Experts that there must be, each as `Title: duties`.")


class Expert(BaseModel):
    """One expert of a team."""

    duties: str = Field(max_length=600, description="Expertise and objectives in this task.")
    title: str = Field(max_length=60)  # after what it is for, as all names here


class Part(BaseModel):
    """A part of the document."""

    purpose: str = Field(max_length=300, description="What it is to say.")
    name: str = Field(max_length=40, description="A letter first; then letters, digits, blanks, - and _.")


MAX_CRITERIA = 6
Parts = Annotated[list[Part], Field(max_length=MOST)]


class TeamDraft(BaseModel):
    """A team to be reviewed."""

    reason: Reason = Field(description="What the task needs experts for, and what is to be written down.")
    experts: list[Expert] = Field(max_length=MOST)
    led: bool = Field(description="Whether a delegate gives the floor; else they speak in turn.")
    fields: Parts = Field(description="What the document says once.")
    item_fields: Parts = Field(description="What it says of each item, beside its name.")
    ratings: Parts = Field(description="What it rates from 1 to 10.")
    report: Parts = Field(description="Prose for its report.")
    criteria: list[Annotated[str, Field(max_length=60)]] = Field(
        max_length=MAX_CRITERIA, description="By what the solution is judged, in a few words each."
    )
    item: str = Field(max_length=40, description="What an item of the document is called, one word.")
    document: str = Field(max_length=40, description="The document's name: capitals and underscores.")


design_team = Prompt(
    name="design_team",
    given=Assignment,
    answer=TeamDraft,
    system=f"""You design a team of experts that is to discuss a task and write one document. Choose experts
whose fields the task needs and who see different things in it, from {FEWEST} to {MOST}; keep those that are
given. Two or three experts speak in turn; from four on a delegate should give the floor (led). The document
consists of items of one kind (each with its item_fields), of single fields, of ratings from 1 to 10, and of
prose (report): what somebody needs who acts by it. Its name is in capitals and underscores. \
{DISCUSSION_IS_DATA}""",
    examples=[
        TeamDraft(
            reason="The mountain hut needs a roof and heat; what is built is to be written down.",
            experts=[
                Expert(duties="Answers for roofs in the gale.", title="Roofer"),
                Expert(duties="Answers for heat, smoke and fire.", title="Stove Fitter"),
            ],
            led=False,
            fields=[Part(purpose="Which slope it stands on", name="Site")],
            item_fields=[Part(purpose="What it is made of", name="material")],
            # It names the hut: a plain "How hard it is to build" in an answer was refused as a copy of it.
            ratings=[Part(purpose="How hard the hut is to build in the gale", name="Building difficulty")],
            report=[Part(purpose="The mountain hut in a few sentences", name="summary")],
            criteria=["warmth", "safety in the gale"],
            item="Fixture",
            document="HUT_PLAN",
        )
    ],
    user="""Task:
$task

Experts that there must be:
$experts""",
    bounds=[
        lambda given: {
            "experts": {"minItems": FEWEST},
            "item_fields": {"minItems": 1},
            "criteria": {"minItems": 1},
        }
    ],
)


@design_team.check
def can_be_a_team(given: Assignment, answer: TeamDraft) -> None:
    """Refuse too few experts, one that is missing or there twice, and names that a document cannot have."""
    titles = ["_".join(plain_words(expert.title)) for expert in answer.experts]
    if not FEWEST <= len(titles) <= MOST or len(set(titles)) < len(titles) or "" in titles:
        raise ValueError(f"Give {FEWEST} to {MOST} experts, each with a title of its own in Latin letters.")
    wanted = ["_".join(plain_words(each.partition(":")[0])) for each in given.experts]
    if missing := [name for name in wanted if name not in titles]:
        raise ValueError(f"The expert {missing[0]} is missing: keep those that are given.")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", answer.document) or not DOCUMENT_PART.fullmatch(
        answer.item
    ):
        raise ValueError("document and item need plain names, such as HUT_PLAN and Fixture.")
    if not any(map(str.strip, answer.criteria)):
        raise ValueError("criteria: say by what the solution is judged.")
    if not answer.item_fields:
        raise ValueError("item_fields: say at least one thing of each item.")
    for parts in (answer.fields + answer.ratings, answer.item_fields, answer.report):
        names = [part.name.lower() for part in parts]
        wrong = [
            name
            for name in names
            if not DOCUMENT_PART.fullmatch(name) or name in RESERVED_NAMES or names.count(name) > 1
        ]
        if wrong:
            raise ValueError(f"{wrong[0]!r} cannot be the name of a part, or is there twice.")
