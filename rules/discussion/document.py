"""How rules answer the questions of `prompts/discussion/document.py`."""

import re
from typing import Any, cast

from mneme.prompts.discussion import document as questions
from mneme.prompts.discussion.document import (
    HIGHEST,
    LOWEST,
    TURNS,
    UNSAID,
    Documenting,
    Outline,
    Written,
)
from mneme.prompts.discussion.memory_template import Slots
from mneme.rules.discussion.design_knowledge import KNOWLEDGE, platform_of
from mneme.rules.discussion.discussion_rules import Item, view_of
from mneme.rules.registry import rule

MOST_TURNS = 20
GOOD = re.compile("readiness|confidence|maturity", re.IGNORECASE)
"""Ratings of which the highest is best; of difficulties and risks it is the worst."""


@rule(questions.write_document)
def write_document(given: Documenting) -> Written:
    """Write down every item that the context still shows, and rate by what there is to build."""
    found = list(view_of(given).visible.values())
    outline = given.outline
    return Written(
        report=Slots({name: _prose(name, found, given) for name in outline.report}),
        fields=Slots({name: _field(name, found, given) for name in outline.fields}),
        items=[Slots(cast(Any, _entry(item, outline))) for item in found],
        ratings=Slots({name: _rating(name, found, given) for name in outline.ratings}),
    )


def _entry(item: Item, outline: Outline) -> dict[str, Any]:
    said = {"because": item.because, **item.parts}
    parts = {name: said.get(name.lower(), UNSAID) for name in outline.item_fields}
    return {TURNS: item.turns[-MOST_TURNS:], "name": f"{item.name} ({item.choice})", **parts}


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
        return UNSAID
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
