"""The questions of task memories: each answer is bounded, each worked example is a valid answer."""

from typing import Any

import pytest
from pydantic import BaseModel

from mneme.environments.turns import Turn
from mneme.prompts.prompt import Prompt
from mneme.prompts.task_memories.task_memories import (
    LONGEST_RULE,
    LONGEST_SUMMARY,
    Alike,
    Comparison,
    Course,
    Phase,
    Rulebook,
    explain_failure,
    extract_key_steps,
    merge_insights,
    rate_relevance,
    revise_insights,
    summarise_phase,
    summarise_trial,
)
from mneme.rules.registry import answer as by_rule
from tests.doubles.questions import assert_bounded, assert_examples_hold, schema_of

COURSE = Course(goal="Ball1 is at kitchen.", result="succeeded", steps=["pick ball1", "drop ball1"])
UNBEGUN = Course(goal="Ball1 is at kitchen.", result="failed", steps=[])
ASKED: list[tuple[Prompt[Any, Any], BaseModel]] = [
    (summarise_trial, COURSE),
    (rate_relevance, Comparison(goal="Ball1.", other_goal="Ball2.", steps=["pick ball2"])),
    (summarise_phase, Phase(goal="Ball1.", before="", steps=["pick ball1"])),
    (extract_key_steps, COURSE),
    (extract_key_steps, UNBEGUN),
    (explain_failure, COURSE),
    (revise_insights, Rulebook(rules=["Look first."], succeeded=["Goal: a"], failed=[])),
    (revise_insights, Rulebook(rules=[], succeeded=["Goal: a"], failed=[])),
    (merge_insights, Alike(rules=["Look first.", "Look."])),
]


def as_text(number: int, output: str, outcome: str = "") -> str:
    return str(Turn(number=number, agent="solver", output=output, outcome=outcome))


def named(asked: tuple[Prompt[Any, Any], BaseModel]) -> str:
    return asked[0].name


@pytest.mark.parametrize("asked", ASKED, ids=named)
def test_every_field_of_an_answer_is_bounded(asked: tuple[Prompt[Any, Any], BaseModel]) -> None:
    assert_bounded(*asked)


@pytest.mark.parametrize("asked", ASKED, ids=named)
def test_each_worked_example_is_a_valid_answer(asked: tuple[Prompt[Any, Any], BaseModel]) -> None:
    prompt, _ = asked
    assert_examples_hold(prompt)


def test_only_what_is_offered_can_be_named() -> None:
    steps, none = (schema_of(extract_key_steps, each)["properties"]["steps"] for each in (COURSE, UNBEGUN))
    assert steps["items"]["enum"] == [0, 1] and steps["maxItems"] == 2
    assert none["items"]["enum"] == [-1] and none["maxItems"] == 0
    operation = schema_of(*ASKED[7])["properties"]["operations"]["items"]["properties"]
    assert operation["rule"]["enum"] == [-1] and operation["kind"]["enum"] == ["ADD"]
    assert schema_of(*ASKED[8])["properties"]["rules"]["maxItems"] == 2


def test_rules_keep_to_the_bounds_however_long_a_talk_was() -> None:
    talk = [as_text(number, f"{number} said {'so much ' * 99}", "Seen.") for number in range(40)]
    long = Course(goal="Say it, all of it, " * 99, result="succeeded", steps=talk)
    assert len(by_rule(summarise_trial, long).summary) <= LONGEST_SUMMARY
    steps = "; ".join(f"act{number} thing" for number in range(200))
    trial = f"Goal: {', '.join(f'part{n} of the goal' for n in range(99))}\nKey steps: {steps}"
    revised = by_rule(revise_insights, Rulebook(rules=[], succeeded=[trial], failed=[]))
    assert 0 < len(revised.operations[0].text) <= LONGEST_RULE
    kept = revise_insights.answer(operations=revised.operations).operations[0].text
    again = by_rule(revise_insights, Rulebook(rules=[kept], succeeded=[trial], failed=[]))
    assert again.operations[0].kind == "AGREE", "a shortened rule is recognised"
    merged = by_rule(merge_insights, Alike(rules=["word " * 500, "Look."]))
    assert all(len(each) <= LONGEST_RULE for each in merged.rules)
