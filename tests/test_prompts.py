"""The form of an answer and the worked examples, as a question shows them to a model."""

from dataclasses import replace
from functools import cached_property
from typing import Annotated, Literal

from pydantic import BaseModel, Field, JsonValue, RootModel

from mneme.prompts.prompt import Prompt, shape


class Slots(RootModel[dict[str, JsonValue]]):
    """Named by who asks."""


class Part(BaseModel):
    """One of several."""

    name: Annotated[str, Field(max_length=9)]
    size: int | None = None


class Whole(BaseModel):
    """An answer with a field of each kind."""

    route: Literal["store", "discard"]
    sure: bool
    share: float
    parts: list[Part]
    words: list[str] = []
    counts: dict[str, int] = {}
    slots: Slots = Slots({})
    slot_0: str = Field("", alias="next step")


class Nothing(BaseModel):
    """What needs no input."""


def test_a_question_ends_in_the_form_of_its_answer() -> None:
    form = (
        '{"route": "store"|"discard", "sure": true or false, "share": number, "parts": [{"name": "…", '
        '"size": integer or null}, …], "words": ["…", …], "counts": {"…": integer, …}, '
        '"slots": {"…": …, …}, "next step": "…"}'
    )
    assert shape(Whole) == form
    asked = Prompt(name="ask", given=Nothing, answer=Whole, system="Be brief.", user="\nWhat?\n")
    assert asked.wording(Nothing()) == ("Be brief.", f"What?\n\nReply with one JSON object: {form}")
    assert asked.user_text(Nothing()) == "What?"


class Computed(BaseModel):
    """What computes a list from its fields, once."""

    count: int

    @cached_property
    def numbers(self) -> list[int]:
        return [*range(self.count)]


def test_what_is_given_may_have_computed_something_before() -> None:
    asked = Prompt(name="ask", given=Computed, answer=Nothing, system="Be brief.", user="$count?")
    given = Computed(count=2)
    assert given.numbers == [0, 1] and asked.user_text(given) == "2?"


def test_a_question_for_a_text_has_no_form() -> None:
    asked = Prompt(name="ask", given=Nothing, answer=str, system="Be brief.", user="What?")
    assert asked.wording(Nothing()) == ("Be brief.", "What?")


def test_worked_examples_are_shown_whole_and_after_what_they_answer() -> None:
    part = Part(name="größer")
    examples: list[Part | str] = [part, '\n<part>9</part>\n{"name": "nine", "size": 9}\n']
    asked = Prompt(name="ask", given=Nothing, answer=Part, system="Name it.", user="…", examples=examples)
    assert asked.system_text() == (
        'Name it.\n\nExample:\n{"name": "größer", "size": null}'
        '\n\nExample:\n<part>9</part>\n{"name": "nine", "size": 9}'
    )
    form = 'Reply with one JSON object: {"name": "…", "size": integer or null}'
    assert asked.system_text(with_examples=False) == f"Name it.\n\n{form}", (
        "who sees no example sees the form"
    )
    assert asked.wording(Nothing())[1] == "…\n\nReply with one JSON object.", "the examples show the rest"
    unshown = replace(asked, examples=[])
    assert unshown.wording(Nothing()) == ("Name it.", f"…\n\n{form}")
