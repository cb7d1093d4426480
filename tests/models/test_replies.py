"""What is read of a reply as it stands, and what is asked again."""

import json
import random
import re
from typing import Literal

import pytest
from pydantic import BaseModel, Field

from mneme.models.asking.replies import Unusable, calls_in, copied, objects, read
from mneme.models.asking.schema import flat, narrowed_schema, room_for
from mneme.models.asking.streaming import RepetitionDetector, countable, repeats
from mneme.prompts.prompt import MAX_REASON_CHARS, Reason, one_of
from tests.doubles.questions import unbounded


class Parcel(BaseModel):
    """An answer with a text, a number, a flag, and a list."""

    note: str = Field(max_length=80)
    weight: int = Field(ge=0, le=90)
    fragile: bool | None = None
    marks: list[str] = Field([], max_length=4)


NOTE = "It's a \"small\" one, don't drop it"
PLAIN = {"note": NOTE, "weight": 3, "fragile": None, "marks": ["a", "b"]}
TEXT = json.dumps(PLAIN)

FORMS = {
    "plain": TEXT,
    "fenced, with prose around it": f"Sure! Here it is:\n```json\n{TEXT}\n```\nI hope {{this}} helps.",
    "a comma too many": TEXT[:-1] + ",}",
    "line comments": TEXT.replace('"weight"', '// in kilograms\n"weight"'),
    "block comments": TEXT.replace('"weight"', '/* kg */ "weight"'),
    "Python's comments": TEXT.replace('"weight"', '# in kilograms\n"weight"'),
    "Python's words": TEXT.replace("null", "None"),
    "Python's quotes": repr(PLAIN).replace(repr(NOTE), json.dumps(NOTE)),
    "single quotes": repr(PLAIN).replace(NOTE.replace("'", "\\'"), NOTE.replace("'", "\\'")),
    "typographic quotes": TEXT.replace(json.dumps(NOTE), "NOTE")
    .replace('"', "”")
    .replace("NOTE", json.dumps(NOTE)),
    "a tool call": json.dumps({"name": "Parcel", "arguments": PLAIN}),
    "a tool call with its arguments as text": json.dumps({"name": "Parcel", "arguments": TEXT}),
    "a tool call of OpenAI's form": json.dumps(
        {"type": "function", "function": {"name": "f", "parameters": PLAIN}}
    ),
    "a tool call in tags": f"<tool_call>{json.dumps({'name': 'Parcel', 'arguments': PLAIN})}</tool_call>",
    "under the key answer": json.dumps({"answer": PLAIN}),
    "under the type's name, in a list": json.dumps({"Parcel": [PLAIN]}),
    "in a list of one": json.dumps([PLAIN]),
    "said twice": f"{TEXT}\n\nAgain: {TEXT}",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_that_has_one_meaning_is_read(form: str) -> None:
    assert read(FORMS[form], Parcel).model_dump() == PLAIN


REFUSED = {
    "two different objects": (TEXT + TEXT.replace("3", "4"), "more than one"),
    "one in a fence and another beside it": (f"{TEXT.replace('3', '4')}\n```\n{TEXT}\n```", "more than one"),
    "a field twice, with different values": (TEXT[:-1] + ', "weight": 4}', "given twice"),
    "the same in single quotes": ("{'note': 'a', 'note': 'b', 'weight': 1, 'marks': []}", "given twice"),
    "cut off": (TEXT[:-1], "cut off"),
    "cut off after a whole one": (TEXT + TEXT[:-9], "complete"),
    "an apostrophe that ends its string": ("{'note': 'it's', 'weight': 1, 'marks': []}", "complete"),
    "not a number": (TEXT.replace("3", "NaN"), "complete"),
    "infinite": ("{'note': 'a', 'weight': Infinity, 'marks': []}", "complete"),
    "a field missing": ('{"note": "a", "marks": []}', "weight"),
    "under two keys": (json.dumps({"answer": PLAIN, "why": "x"}), "Missing"),
    "wrapped too often": (json.dumps({"a": {"b": {"c": {"d": PLAIN}}}}), "Missing"),
    "too heavy": (TEXT.replace("3", "91"), "weight"),
    "in no form": ("note: small, weight: 3", "not a complete"),
    "nested without end": ('{"a":' * 3000, "not a complete"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_whatever_would_be_a_guess_is_refused_with_a_reason(case: str) -> None:
    raw, reason = REFUSED[case]
    with pytest.raises(Unusable, match=reason) as refused:
        read(raw, Parcel)
    assert refused.value.raw == raw


def test_calls_are_found_in_other_forms_too() -> None:
    assert calls_in("{'name': 'look', 'arguments': {'at': 'Ulm',}}") == [("look", {"at": "Ulm"})]
    assert objects("No {braces} here") == []


# Bounds.


class Choice(BaseModel):
    why: Reason
    kind: Literal["put", "grab"]
    options: list[Parcel] = Field(max_length=3)
    number: int


def test_every_field_is_bounded_by_its_type_or_by_what_is_asked() -> None:
    schema = flat(Choice)
    assert unbounded(schema) == ["options[].marks[]", "number"]
    whole = narrowed_schema(
        schema,
        {"options[].marks[]": {"maxLength": 9}, "number": one_of(range(-1, 3)), "options": {"maxItems": 2}},
    )
    assert unbounded(whole) == []
    assert whole["properties"]["number"]["enum"] == [-1, 0, 1, 2]
    assert schema == flat(Choice), "the type's own schema stays as it is"
    assert room_for(whole) < room_for(narrowed_schema(whole, {"options": {"maxItems": 3}}))


def test_a_text_that_the_grammar_ended_is_too_long_and_a_reason_is_clipped() -> None:
    schema = flat(Choice)["properties"]
    assert schema["why"]["maxLength"] == MAX_REASON_CHARS
    assert schema["options"]["items"]["properties"]["note"]["maxLength"] == 81
    read(TEXT.replace(json.dumps(NOTE), json.dumps("n" * 80)), Parcel)
    with pytest.raises(Unusable, match="at most 80"):
        read(TEXT.replace(json.dumps(NOTE), json.dumps("n" * 81)), Parcel)
    long = json.dumps({"why": "for " * 200, "kind": "PUT", "options": [], "number": 1})
    assert len(read(long, Choice).why) <= MAX_REASON_CHARS


def test_the_length_that_grammars_refuse_is_never_asked_for() -> None:
    class Document(BaseModel):
        text: str = Field(max_length=1999)

    assert flat(Document)["properties"]["text"]["maxLength"] == 2001


# Circles.

COUNTING = "".join(f'{{"member": {n}, "option": {n}}}, ' for n in range(20, 60))


def test_counting_up_is_noticed_in_json_within_a_hundred_tokens() -> None:
    detector, tokens = RepetitionDetector(countable({"maxItems": 3})), [*COUNTING]
    seen = next(at for at, token in enumerate(tokens) if detector.sees(token))
    assert seen < 330, "characters, of which JSON has some three a token"


def test_a_list_as_long_as_its_schema_allows_is_no_circle() -> None:
    schema = {"properties": {"pairs": {"type": "array", "maxItems": 40}}}
    assert not repeats(COUNTING, countable(schema))
    assert repeats(COUNTING, countable({"type": "object"}))
    assert not repeats(COUNTING), "a table in free text counts up too"


def test_a_long_sentence_that_comes_again_and_again_is_a_circle() -> None:
    sentence = "The museum was founded in a small house on the corner of the old market square, long ago. "
    assert repeats(sentence * 5)
    assert not repeats(sentence * 2 + "Then it moved.")


def test_free_text_that_goes_on_with_the_same_few_words_is_babble() -> None:
    chance = random.Random(7)
    babble = "It is possible. " + ", ".join(chance.choice(["Yes", "no", "no"]) for _ in range(400))
    detector = RepetitionDetector()
    seen = next(at for at, token in enumerate(re.findall(r"\S+\s*", babble)) if detector.sees(token))
    assert 90 < seen < 150, "words"
    assert not repeats(" ".join(chance.choice("01") for _ in range(400))), "a row of numbers may be asked for"


# Copies.

EXAMPLE = '{"why": "The fridge is near and food is missing.", "choice": 2}'


@pytest.mark.parametrize(
    ("asked", "reply", "is_copy"),
    [
        ("Walk to the sofa.", EXAMPLE, True),
        ("Walk to the sofa.", '{"why": "So: the fridge is near, and food is missing!", "choice": 0}', True),
        ("The fridge is near; some food is missing still.", EXAMPLE, False),
        ("Walk to the sofa.", '{"why": "The sofa is near and the book is missing.", "choice": 2}', False),
        ("Walk to the sofa.", "no JSON at all: The fridge is near and food is missing.", False),
    ],
)
def test_a_sentence_of_the_example_is_a_copy_unless_it_was_asked_about(
    asked: str, reply: str, is_copy: bool
) -> None:
    assert bool(copied([EXAMPLE], asked, reply)) is is_copy
