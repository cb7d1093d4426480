"""The chat's questions: every field of an answer is bounded, and every worked example is a valid answer."""

from typing import Any

import pytest
from pydantic import BaseModel

from mneme.prompts.chat import paper_versions as versions
from mneme.prompts.chat.memory_agent.comparing import Comparing, Fact, compare_memories
from mneme.prompts.chat.memory_agent.forgetting import Forgetting, choose_forgotten
from mneme.prompts.chat.memory_agent.reading import Incoming, read_message
from mneme.prompts.chat.memory_agent.rewriting import Pair, rewrite_memory
from mneme.prompts.chat.paper_versions import Composing, ToolGiven, Upsert
from mneme.prompts.prompt import Prompt
from tests.doubles.questions import assert_bounded, assert_examples_hold

COMPARING = Comparing(facts=[Fact(content="f", said="s")], memories=["k"])
PAIR = Pair(fact="f", message="m", memory="k")
ASKED: list[tuple[Prompt[Any, Any], BaseModel]] = [
    (read_message, Incoming(message="m")),
    (compare_memories, COMPARING),
    (rewrite_memory, PAIR),
    (versions.route_message, Incoming(message="m")),
    (versions.compose_memories, Composing(message="m")),
    (versions.check_conflict, PAIR),
    (versions.route_upsert, Upsert(fact="f", message="m", memories=[])),
    (versions.route_upsert, Upsert(fact="f", message="m", memories=["a", "b"])),
    (choose_forgotten, Forgetting(message="m", memories=[])),
    (choose_forgotten, Forgetting(message="m", memories=["a"])),
    (versions.choose_tools, ToolGiven(message="m")),
]


@pytest.mark.parametrize(("prompt", "given"), ASKED, ids=lambda each: getattr(each, "name", ""))
def test_no_field_can_run_on_for_ever(prompt: Prompt[Any, Any], given: BaseModel) -> None:
    assert_bounded(prompt, given)


IN_JSON = {each.name: each for each, _ in ASKED if each is not versions.choose_tools}
"""The questions that are answered in JSON, not by tool calls."""


@pytest.mark.parametrize("prompt", IN_JSON.values(), ids=lambda each: each.name)
def test_every_worked_example_is_a_valid_answer(prompt: Prompt[Any, Any]) -> None:
    assert_examples_hold(prompt)
