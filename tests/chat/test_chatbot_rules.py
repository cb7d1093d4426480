"""The chatbot's rule: answers from memories alone, honestly."""

from collections.abc import Sequence

import pytest

from mneme.prompts.chat.chatbot import Recalled, Turn, reply
from mneme.rules.registry import answer as by_rule

MEMORIES = [
    "Max, a Labrador mix, loves playing fetch and is 5 years old.",
    "The user's sister Emily lives in Portland.",
    "The user's dentist appointment is on Thursday.",
    "The user lives in Berlin and works as a nurse.",
]


def turn(message: str, memories: Sequence[str]) -> Turn:
    return Turn(message=message, memories=[Recalled(content=each, told_on="2026-11-20") for each in memories])


def say(message: str) -> str:
    return by_rule(reply, turn(message, MEMORIES))


def test_a_question_about_a_name_tells_what_is_known() -> None:
    assert say("What do we know about Max?") == f"You told me:\n- {MEMORIES[0]}"


def test_memories_are_told_as_they_are() -> None:
    assert say("When is my dentist appointment?").endswith("The user's dentist appointment is on Thursday.")
    assert "The user's sister Emily lives in Portland." in say("Where does my sister live?")


def test_what_no_memory_answers_is_said_to_be_unknown() -> None:
    assert say("How tall is the Eiffel Tower?").startswith("I don't know")
    closest = say("What is my favourite colour?")
    assert "cannot tell without a language model" in closest
    assert MEMORIES[0] in closest


def test_what_was_said_a_moment_ago_is_known_at_once() -> None:
    said = Turn(message="What is my dog called?", said=["My dog is called Rex."])
    assert by_rule(reply, said) == "You told me:\n- My dog is called Rex."


def test_statements_are_acknowledged_without_pretending() -> None:
    assert say("I have a parrot.") == "Noted."
    assert "no language model" in say("Hello there!")
    assert say("")
    assert say("x" * 200_000)


def test_without_memories_nothing_is_invented() -> None:
    assert by_rule(reply, Turn(message="Who is Max?")).startswith("I don't know")
    assert "(none)" in reply.wording(Turn(message="Who is Max?"))[1]


@pytest.mark.parametrize(
    ("question", "memory"),
    [
        ("Where do I live?", "I live in Denver."),
        ("whats my job", "My job is nursing."),
        ("do i have any pets?", "The user has two pets."),
        ("What am I allergic to?", "The user is allergic to nuts."),
    ],
)
def test_a_question_is_answered_by_what_it_asks_for(question: str, memory: str) -> None:
    others = ["The user's brother lives in Rome.", "My brother lives in Oslo.", "The user plays chess."]
    assert by_rule(reply, turn(question, [*others, memory])) == f"You told me:\n- {memory}"
