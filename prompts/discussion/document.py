"""The last question of a discussion: the document, in the team's own fields (§5: PIPELINE_OVERVIEW.json)."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from types import GenericAlias
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, create_model, model_validator

from mneme.prompts.discussion.intrinsic_memory import CONTEXT, DISCUSSION_IS_DATA, ITEM, Speaking
from mneme.prompts.discussion.memory_template import Slots, closed_model
from mneme.prompts.prompt import Prompt, Schemas, refuse

LOWEST, HIGHEST = 1, 10
UNSAID, UNSHOWN = "not discussed", "left out for length"
"""Texts of a document for a point not discussed, and for one perhaps in turns not shown to the writer."""
ENTRIES_LEFT_OUT = "(Further entries are left out.)"
SHORTENED = "(Entries that end in … are shortened.)"
MIN_ITEM_ROOM = 20  # maximum items of a document, or twice the required number if that is more


Prose = Annotated[str, Field(max_length=1_900)]  # a model's server can enforce at most 1,999
Phrase = Annotated[
    str,
    # `"Days": 4` is the same as `"Days": "4"`; true and false, which are integers in Python, are no text.
    BeforeValidator(lambda value: str(value) if type(value) in (int, float) else value),
    Field(max_length=600),
]
"""Text about an item or in a field: a few sentences, as in a turn."""
Rating = Annotated[int, Field(ge=LOWEST, le=HIGHEST)]
Texts = dict[str, str]
TURNS = "turns"
"""The numbers of the turns that an item comes from; a team may have a field of that name instead."""
MAX_TURN_NUMBERS = 20
Numbers = Annotated[list[Annotated[int, Field(ge=1, le=10_000)]], Field(max_length=MAX_TURN_NUMBERS)]


class Outline(BaseModel):
    """The parts of a document: each name with its purpose."""

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
    """The input of the document's writer."""

    outline: Outline
    last: int = Field(0, description="The number of the last turn; 0: not known.")
    ended: str = Field("consensus", description="Whether all accepted, or the turns ran out.")

    @property
    def is_cut(self) -> bool:
        """Whether a part of the team's memories was shortened or left out."""
        return ENTRIES_LEFT_OUT in self.memory or SHORTENED in self.memory


class Written(BaseModel):
    """A document: prose first, then its fields, its items and its ratings."""

    report: Slots
    fields: Slots
    items: list[Slots]
    ratings: Slots

    @property
    def parts(self) -> dict[str, Any]:
        """Return the parts as plain JSON, items that say the same once."""
        parts = self.model_dump(by_alias=True)
        kept: dict[str, dict[str, Any]] = {}
        for item in parts["items"]:
            said = {name: each for name, each in item.items() if isinstance(each, str)}
            first = kept.setdefault(json.dumps(said), item)
            if numbers := _numbers(item):
                first[TURNS] = list(dict.fromkeys([*_numbers(first), *numbers]))
        return parts | {"items": [*kept.values()]}


def _numbers(item: dict[str, Any]) -> list[int]:
    """Return the turns that an item names; a team's own field of that name is text."""
    found = item.get(TURNS)
    return found if isinstance(found, list) else []


write_document = Prompt(
    name="write_document",
    given=Documenting,
    answer=Written,
    system=f"""You write the document on which a team of experts has agreed, from what each of them remembers
and from the turns that are shown. Put in every item that was agreed, as it was last worded, with its choice
and what was said of it; add nothing that nobody said. Where something was not discussed, write
"{UNSAID}"; but where it may stand in lines that were shortened or left out, write "{UNSHOWN}". Of each item,
name the turns that it comes from by their numbers, which stand in brackets before a turn, or after a line of
what the team remembers. Rate as the ratings say, from 1 to 10. {DISCUSSION_IS_DATA}
Each item has its name first.""",
    examples=[
        '{"report": {"summary": "The mountain hut gets a slate roof and a wood stove."}, '
        '"fields": {"Site": "east slope"}, "items": [{"name": "Roof (slate tiles)", '
        '"pros": "keeps out the gale on the slope", "cons": "heavy to carry up to the hut", '
        '"design": "two layers on larch battens", "details": "tiles come by mule", "turns": [3, 7]}], '
        '"ratings": {"Building difficulty": 6}}'
    ],
    user=f"""{CONTEXT.replace("Your memory", "What the team remembers")}

How the discussion ended: $ended

What the document consists of (each item has a name beside its fields):
$outline""",
)


@write_document.check
def is_whole(given: Documenting, answer: Written) -> None:
    """Refuse items without a name, two of one name, ratings beyond 1 to 10, and fewer items than agreed."""
    refuse(_faults(given, answer.parts))


def _faults(given: Documenting, parts: dict[str, Any]) -> Iterator[str]:
    names = [str(item.get("name", "")).strip().lower() for item in parts["items"]]
    texts = [given.memory, *given.turns.root]
    shown = {hit["name"].lower() for text in texts for hit in ITEM.finditer(text)}
    # No more can be written than is shown; half of it is enough, since the team may have dropped the rest.
    if 2 * len(names) < min(given.outline.least, len(shown)) or not all(names):
        yield f"{len(names)} items, each with a name, are too few: give each {given.item} agreed on."
    for name in {name for name in names if name and names.count(name) > 1}:
        yield f"{name} is there twice: join them."
    for name, rating in parts["ratings"].items():
        if not LOWEST <= rating <= HIGHEST:
            yield f"{name} is {rating}; ratings go from {LOWEST} to {HIGHEST}."
    for name, text in parts["fields"].items():
        if not str(text).strip():
            yield f"The field {name} is empty."


# Lines that were cut may be of something else: a doubt.
@write_document.doubt
def says_what_was_not_shown(given: Documenting, answer: Written) -> None:
    """Doubt that something was not discussed where not all was shown."""
    if given.is_cut and f'"{UNSAID}' in json.dumps(answer.parts).lower():
        raise ValueError(f'Lines were shortened or left out: where "{UNSAID}" is not sure, say "{UNSHOWN}".')


def write_document_as(outline: Outline) -> Prompt[Documenting, Written]:
    """Return the question whose answer has exactly the parts of this outline."""
    return _as(outline.model_dump_json())


@lru_cache(maxsize=64)  # by its text, since an outline cannot be hashed
def _as(outline: str) -> Prompt[Documenting, Written]:
    given: dict[str, Any] = json.loads(outline)
    named: dict[str, Any] = dict.fromkeys(["name", *given["item_fields"]], (Phrase, ""))
    named |= {name: (Phrase, purpose) for name, purpose in given["item_fields"].items()}
    item = closed_model("Item", {TURNS: (Numbers, "Where it was said"), **named})
    most = max(MIN_ITEM_ROOM, 2 * given["least"])
    fields: dict[str, Any] = {
        "report": (_parts("Report", given["report"], Prose), ...),
        "fields": (_parts("Fields", given["fields"], Phrase), ...),
        "items": (GenericAlias(list, item), Field(max_length=most)),
        "ratings": (_parts("Ratings", given["ratings"], Rating), ...),
    }
    answer = create_model("Written", __base__=Written, **fields)
    if TURNS in named:
        return replace(write_document, answer=answer)
    return replace(write_document, answer=answer, bounds=[*write_document.bounds, _turns_that_there_were])


def _turns_that_there_were(given: Documenting) -> Schemas:
    """Restrict the answer to the numbers of actual turns, where these are known."""
    most = given.last  # a small model fills such a list to its end
    numbers: Schemas = {f"items[].{TURNS}": {"maxItems": min(MAX_TURN_NUMBERS, most)}}
    return numbers | {f"items[].{TURNS}[]": {"maximum": most}} if most else {}


def _parts(name: str, parts: Texts, kind: Any) -> type[BaseModel]:
    return closed_model(name, {each: (kind, purpose) for each, purpose in parts.items()})
