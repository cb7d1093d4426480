"""The questions of task memories: only what is offered can be named, and rules keep to the bounds."""

from mneme.environments.turns import Turn
from mneme.prompts.task_memories.task_memories import (
    MAX_RULE_CHARS,
    MAX_SUMMARY_CHARS,
    Alike,
    Course,
    Rulebook,
    extract_key_steps,
    merge_insights,
    revise_insights,
    summarise_trial,
)
from mneme.rules.registry import answer as by_rule
from tests.doubles.questions import assert_bounded, schema_of

COURSE = Course(goal="Ball1 is at kitchen.", result="succeeded", steps=["pick ball1", "drop ball1"])
UNBEGUN = Course(goal="Ball1 is at kitchen.", result="failed", steps=[])


def as_text(number: int, output: str, outcome: str = "") -> str:
    return str(Turn(number=number, agent="solver", output=output, outcome=outcome))


def test_only_what_is_offered_can_be_named() -> None:
    steps, none = (schema_of(extract_key_steps, each)["properties"]["steps"] for each in (COURSE, UNBEGUN))
    assert steps["items"]["enum"] == [0, 1] and steps["maxItems"] == 2
    assert none["items"]["enum"] == [-1] and none["maxItems"] == 0
    assert_bounded(extract_key_steps, UNBEGUN)
    bare, alike = Rulebook(rules=[], succeeded=["Goal: a"], failed=[]), Alike(rules=["Look first.", "Look."])
    operation = schema_of(revise_insights, bare)["properties"]["operations"]["items"]["properties"]
    assert operation["rule"]["enum"] == [-1] and operation["kind"]["enum"] == ["ADD"]
    assert schema_of(merge_insights, alike)["properties"]["rules"]["maxItems"] == 2


def test_rules_keep_to_the_bounds_however_long_a_talk_was() -> None:
    talk = [as_text(number, f"{number} said {'so much ' * 99}", "Seen.") for number in range(40)]
    long = Course(goal="Say it, all of it, " * 99, result="succeeded", steps=talk)
    assert len(by_rule(summarise_trial, long).summary) <= MAX_SUMMARY_CHARS
    steps = "; ".join(f"act{number} thing" for number in range(200))
    trial = f"Goal: {', '.join(f'part{n} of the goal' for n in range(99))}\nKey steps: {steps}"
    revised = by_rule(revise_insights, Rulebook(rules=[], succeeded=[trial], failed=[]))
    assert 0 < len(revised.operations[0].text) <= MAX_RULE_CHARS
    kept = revise_insights.answer(operations=revised.operations).operations[0].text
    again = by_rule(revise_insights, Rulebook(rules=[kept], succeeded=[trial], failed=[]))
    assert again.operations[0].kind == "AGREE", "a shortened rule is recognised"
    merged = by_rule(merge_insights, Alike(rules=["word " * 500, "Look."]))
    assert all(len(each) <= MAX_RULE_CHARS for each in merged.rules)
