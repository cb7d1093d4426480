"""The chat's questions: every field of an answer is bounded, and every worked example is a valid answer."""

from typing import Any

import pytest
from pydantic import BaseModel

from mneme.prompts.chat import memory_agent as questions
from mneme.prompts.chat.memory_agent import Forgetting, Incoming, Pair, ToolGiven, Upsert
from mneme.prompts.prompt import Prompt
from tests.doubles.questions import assert_bounded, assert_examples_hold

PAIR = Pair(fact="f", message="m", memory="k")
ASKED: list[tuple[Prompt[Any, Any], BaseModel]] = [
    (questions.route_message, Incoming(message="m")),
    (questions.compose_memories, Incoming(message="m")),
    (questions.check_conflict, PAIR),
    (questions.rewrite_memory, PAIR),
    (questions.route_upsert, Upsert(fact="f", message="m", memories=[])),
    (questions.route_upsert, Upsert(fact="f", message="m", memories=["a", "b"])),
    (questions.choose_forgotten, Forgetting(message="m", memories=[])),
    (questions.choose_forgotten, Forgetting(message="m", memories=["a"])),
    (questions.manage_memory, ToolGiven(message="m")),
]


@pytest.mark.parametrize(("prompt", "given"), ASKED, ids=lambda each: getattr(each, "name", ""))
def test_no_field_can_run_on_for_ever(prompt: Prompt[Any, Any], given: BaseModel) -> None:
    assert_bounded(prompt, given)


IN_JSON = {each.name: each for each, _ in ASKED if each is not questions.manage_memory}
"""The questions that are answered in JSON; `manage_memory` is by tool calls."""


@pytest.mark.parametrize("prompt", IN_JSON.values(), ids=lambda each: each.name)
def test_every_worked_example_is_a_valid_answer(prompt: Prompt[Any, Any]) -> None:
    assert_examples_hold(prompt)
