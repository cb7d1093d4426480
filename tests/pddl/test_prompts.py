"""The questions of planning problems: each reply is bounded, and each example is a reply."""

import json
from pathlib import Path
from typing import Any

import pytest

from mneme.prompts.pddl.pddl_team import Repetition, choose_action, choose_otherwise
from mneme.prompts.prompt import Prompt
from tests.doubles.questions import assert_bounded, assert_examples_hold

GIVEN = Repetition(task="t", memory="m", turns="", repeated="look around")
DOMAINS = Path(__file__).parents[2] / "environments" / "pddl" / "domains"
each_question = pytest.mark.parametrize(
    "prompt", [choose_action, choose_otherwise], ids=lambda each: each.name
)


@each_question
def test_no_field_of_a_reply_is_open_ended(prompt: Prompt[Any, Any]) -> None:
    assert_bounded(prompt, GIVEN)


@each_question
def test_the_examples_are_replies(prompt: Prompt[Any, Any]) -> None:
    assert_examples_hold(prompt)


@each_question
def test_the_example_gives_no_action_of_a_domain_away(prompt: Prompt[Any, Any]) -> None:
    shown = json.loads(prompt.example_texts[0])["action"].split()[0]
    texts = [path.read_text(encoding="utf-8") for path in DOMAINS.glob("*.pddl")]
    assert texts and not any(f"(:action {shown}" in text for text in texts)
