"""The last question of a discussion: the document, in the team's own fields (§5: PIPELINE_OVERVIEW.json)."""

import json
import re
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, create_model, model_validator

from prompts.design_knowledge import KNOWLEDGE, platform_of
from prompts.discussion_rules import Item
from prompts.intrinsic_memory import CONTEXT, DATA, Speaking
from prompts.memory_template import Slots
from prompts.prompt import Prompt, prompt

LOWEST, HIGHEST = 1, 10
GOOD = re.compile("readiness|confidence|maturity", re.IGNORECASE)
"""Ratings of which the highest is best; of difficulties and risks it is the worst."""
UNSAID = "not discussed"
Texts = dict[str, str]


class Outline(BaseModel):
    """What a document consists of: each part's name with what it is for."""

    fields: Texts = {}
    item: str
    item_fields: Texts
    least: int = Field(1, description="How many items there must be.")
    ratings: Texts = {}
    report: Texts = {}

    def __str__(self) -> str:
        return self.model_dump_json(indent=1)

    @model_validator(mode="before")
    @classmethod
    def _of_text(cls, value: object) -> object:
        return json.loads(value) if isinstance(value, str) else value


class Documenting(Speaking):
    """What the writer of the document is shown."""

    outline: Outline
    ended: str = Field("consensus", description="Whether all accepted, or the turns ran out.")


class Written(BaseModel):
    """A document: prose first, then its fields, its items and its ratings."""

    report: Slots
    fields: Slots
    items: list[Slots]
    ratings: Slots

    @property
    def parts(self) -> dict[str, Any]:
        """Return the parts as plain JSON."""
        return self.model_dump(by_alias=True)


@prompt(
    system=f"""You write the document on which a team of experts has agreed, from your memory and the turns
that are shown. Put in every item that was agreed, with its choice and what was said of it; add nothing that
nobody said; where something was not discussed, say so. Rate as the ratings say, from 1 to 10. {DATA}
Reply with one JSON object with report, fields, items and ratings, e.g. {{"report": {{"summary": "…"}},
"fields": {{"Platform": "AWS"}}, "items": [{{"name": "Object storage (Amazon S3)", "pros": "durable",
"cons": "egress costs", "design": "three zones", "details": "partitioned by date"}}],
"ratings": {{"Implementation difficulties": 6}}}}""",
    user=f"""You are the $role: $duties

{CONTEXT}

How the discussion ended: $ended

What the document consists of (each item has a name beside its fields):
$outline""",
)
def write_document(given: Documenting) -> Written:
    """Write down every item that the context still shows, and rate by what there is to build."""
    found = list(given.view.visible.values())
    outline = given.outline
    return Written(
        report=Slots({name: _prose(name, found, given) for name in outline.report}),
        fields=Slots({name: _field(name, found, given) for name in outline.fields}),
        items=[Slots(cast(Any, _entry(item, outline))) for item in found],
        ratings=Slots({name: _rating(name, found, given) for name in outline.ratings}),
    )


@write_document.check
def is_whole(given: Documenting, answer: Written) -> None:
    """Refuse items without a name, two of one name, ratings beyond 1 to 10, and fewer items than were agreed.

    Where fewer are visible than a document must have, no wording can mend it: what there is, is the answer.
    """
    parts = answer.parts
    names = [str(item.get("name", "")).strip().lower() for item in parts["items"]]
    if len(names) < min(given.outline.least, len(given.view.visible)) or not all(names):
        raise ValueError(
            f"{len(names)} items, each with a name, are too few: give each {given.item} agreed on."
        )
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"{twice[0]} is there twice: join them.")
    for name, rating in parts["ratings"].items():
        if not LOWEST <= rating <= HIGHEST:
            raise ValueError(f"{name} is {rating}; ratings go from {LOWEST} to {HIGHEST}.")
    if empty := [name for name, text in parts["fields"].items() if not str(text).strip()]:
        raise ValueError(f"The field {empty[0]} is empty.")


def write_document_as(outline: Outline) -> Prompt[Documenting, Written]:
    """Return the question whose answer has exactly the parts of this outline."""
    return _as(outline.model_dump_json())


@lru_cache(maxsize=64)
def _as(outline: str) -> Prompt[Documenting, Written]:
    given: dict[str, Any] = json.loads(outline)
    fields: dict[str, Any] = {
        "report": (_texts("Report", given["report"], str), ...),
        "fields": (_texts("Fields", given["fields"], str), ...),
        "items": (list[_texts("Item", {"name": "", **given["item_fields"]}, str)], ...),  # type: ignore[misc]
        "ratings": (_texts("Ratings", given["ratings"], int), ...),
    }
    return replace(write_document, answer=create_model("Written", __base__=Written, **fields))


def _texts(name: str, parts: Texts, kind: type) -> type[BaseModel]:
    fields: dict[str, Any] = {
        f"part_{number}": (kind, Field(alias=each, description=purpose))
        for number, (each, purpose) in enumerate(parts.items())
    }
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


def _entry(item: Item, outline: Outline) -> Texts:
    said = {"because": item.because, **item.parts}
    parts = {name: said.get(name.lower(), UNSAID) for name in outline.item_fields}
    return {"name": f"{item.name} ({item.choice})", **parts}


def _effort(found: list[Item], item: str) -> float:
    known = {kind.name: kind.effort for kind in KNOWLEDGE.get(item.lower(), ())}
    return sum(known.get(each.name, 2) for each in found) / max(1, len(found))


def _rating(name: str, found: list[Item], given: Documenting) -> int:
    """Rate by the mean effort of the items and by their number; what is kept running weighs a little less."""
    keeping = "mainten" in name.lower()
    rating = 1.4 * _effort(found, given.item) + len(found) / (6 if keeping else 5)
    bounded = max(LOWEST, min(HIGHEST, round(rating)))
    return LOWEST + HIGHEST - bounded if GOOD.search(name) else bounded


def _field(name: str, found: list[Item], given: Documenting) -> str:
    if name == "Platform":
        return platform_of(given.task)
    if name == "Verdict":
        grave = [item for item in found if "blocking" in f"{item.choice} {item.parts.get('severity', '')}"]
        return "revise" if grave else "approve with changes" if found else "approve"
    return f"{len(found)} items; see the report."


def _prose(name: str, found: list[Item], given: Documenting) -> str:
    named = ", ".join(f"{item.name} ({item.choice})" for item in found) or "nothing"
    if name == "resources":
        return "; ".join(f"{item.name}: {_size(item, given.item)} effort" for item in found) or UNSAID
    if name == "plan":
        return " ".join(f"{item.name}: {item.because}." for item in found) or UNSAID
    if name == "next_steps":
        return (
            " ".join(f"{item.name}: {item.parts.get('suggestion', UNSAID)}." for item in found[:5]) or UNSAID
        )
    ending = "Agreed" if given.ended == "consensus" else f"Not agreed by all ({given.ended})"
    return f"{ending}: {named}."


def _size(item: Item, kind: str) -> str:
    effort = round(_effort([item], kind))
    return "little" if effort <= 1 else "some" if effort <= 3 else "much"
