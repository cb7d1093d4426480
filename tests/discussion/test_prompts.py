"""The questions of discussions: memories, items and messages keep to their bounds."""

import json
from typing import Any

import pytest

from mneme.library.teams.team import load_team, shipped
from mneme.models.asking.replies import Unusable, read
from mneme.models.asking.schema import flat
from mneme.prompts.discussion.document import (
    ENTRIES_LEFT_OUT,
    SHORTENED,
    UNSAID,
    UNSHOWN,
    Documenting,
    Outline,
    write_document_as,
)
from mneme.prompts.discussion.intrinsic_memory import (
    ROOM_TO_SPARE,
    Speaking,
    contribute,
    delegate,
    evaluate,
    integrate,
)
from mneme.prompts.discussion.memory_template import MAX_ENTRIES, MAX_ENTRY_CHARS, Slots
from mneme.prompts.discussion.memory_update import Remembering, update_memory_by
from mneme.prompts.discussion.template_making import LEAST, MAX_PURPOSE_CHARS, MOST, Place, make_template
from mneme.prompts.prompt import Prompt
from mneme.rules.registry import answer as by_rule
from tests.doubles.questions import schema_of, unbounded

OUTLINE = Outline(
    fields={"Platform": "where it runs"},
    item="Component",
    item_fields={"pros": "what speaks for it", "cons": "what speaks against it"},
    least=2,
    ratings={"Difficulty": "how hard it is"},
    report={"summary": "what was agreed"},
)
TEMPLATE = {"facts": ["One fact each"], "own": {"plan": "What to do next"}}
SPEAKING = {"role": "Engineer", "duties": "storage", "task": "Store it."}
SPOKEN = Speaking(**SPEAKING, room=1500)
REMEMBERING = Remembering(
    role="Engineer",
    template=Slots(TEMPLATE),
    memory=Slots({"facts": [], "own": {"plan": ""}}),
    output="It is stored.",
    limit=2000,
)


@pytest.mark.parametrize("name", shipped())
def test_the_memories_of_shipped_teams_are_bounded(name: str) -> None:
    for role in load_team(name).roles:
        assert unbounded(flat(update_memory_by(role.memory).answer)) == []


@pytest.mark.parametrize("question", [contribute, delegate, integrate, evaluate], ids=lambda each: each.name)
@pytest.mark.parametrize("room", [400, 1500, 1599, 1600, 4000])
def test_a_message_that_its_bound_cut_off_is_refused(question: Prompt[Any, Any], room: int) -> None:
    given = question.given(**SPEAKING, room=room)
    longest = schema_of(question, given)["properties"]["message"]["maxLength"]
    assert longest > ROOM_TO_SPARE * room and longest != 2000, "which servers refuse"
    said = {"reasoning": "So.", "changes": False, "accept": False, "finalize": False}
    fields = {name: value for name, value in said.items() if name in question.answer.model_fields}
    question.verify(given, question.answer(**fields, message="a" * room))
    with pytest.raises(ValueError, match="are the most"):
        question.verify(given, question.answer(**fields, message="a" * longest))


def test_an_item_names_only_turns_that_were_taken() -> None:
    item = schema_of(write_document_as(OUTLINE), Documenting(**SPEAKING, outline=OUTLINE, last=4))[
        "properties"
    ]
    turns = item["items"]["items"]["properties"]["turns"]
    assert (turns["maxItems"], turns["items"]["maximum"]) == (4, 4)


@pytest.mark.parametrize("cut", ["", ENTRIES_LEFT_OUT, SHORTENED])
def test_what_was_left_out_for_length_is_never_called_not_discussed(cut: str) -> None:
    question, memory = write_document_as(OUTLINE), f"- Store (S3) because it is cheap. [1]\n{cut}"
    given = Documenting(**SPEAKING, outline=OUTLINE, last=4, memory=memory)
    by_rules = by_rule(question, given)
    texts = json.dumps(by_rules.parts)
    assert ((UNSAID in texts), (UNSHOWN in texts)) == (not cut, bool(cut))
    wrong = by_rules.model_copy(update={"fields": Slots({"Platform": "Not discussed."})})
    said = [each for each in question.doubts if _doubts(each, given, wrong)]
    assert len(said) == bool(cut) and not any(_doubts(each, given, by_rules) for each in question.doubts)


def _doubts(doubt: Any, given: Documenting, answer: Any) -> bool:
    try:
        doubt(given, answer)
    except ValueError:
        return True
    return False


def test_an_expert_is_concerned_once() -> None:
    asked = SPOKEN.model_copy(update={"experts": ["Cook", "Waiter"]})
    concerns = schema_of(contribute, asked)["properties"]["raises"]["items"]["properties"]["concerns"]
    assert concerns["maxItems"] == 2


def test_a_memory_s_entries_are_held_to_their_bounds() -> None:
    answer = update_memory_by(TEMPLATE).answer
    wrong: list[dict[str, Any]] = [
        {"facts": ["a" * (MAX_ENTRY_CHARS + 1)], "own": {"plan": ""}},
        {"facts": ["a"] * (MAX_ENTRIES + 1), "own": {"plan": ""}},
        {"facts": [], "own": {"plan": "a" * (MAX_ENTRY_CHARS + 1)}},
    ]
    for memory in wrong:
        with pytest.raises(Unusable):
            read(json.dumps({"reason": "New.", "memory": memory}), answer)


def test_a_template_has_room_for_no_more_slots_than_it_may_have() -> None:
    place = Place(role="Engineer", duties="storage", task="Store it.")
    slots = schema_of(make_template, place)["properties"]["slots"]
    assert (slots["minItems"], slots["maxItems"]) == (LEAST, MOST)


def test_rules_keep_a_slot_s_purpose_short() -> None:
    place = Place(role="Engineer", duties=f"what {'needs care ' * 99}", task="Store it.", fields="a, " * 300)
    made = by_rule(make_template, place)
    assert max(len(slot.purpose) for slot in made.slots) <= MAX_PURPOSE_CHARS
