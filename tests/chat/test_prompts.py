"""The chat's questions where nothing is similar to a message."""

from typing import Any

import pytest
from pydantic import BaseModel

from mneme.prompts.chat.memory_agent.forgetting import Forgetting, choose_forgotten
from mneme.prompts.chat.paper_versions import Upsert, route_upsert
from mneme.prompts.prompt import Prompt
from tests.doubles.questions import assert_bounded


@pytest.mark.parametrize(
    ("prompt", "given"),
    [
        (route_upsert, Upsert(fact="f", message="m", memories=[])),
        (choose_forgotten, Forgetting(message="m", memories=[])),
    ],
)
def test_no_field_can_run_on_for_ever(prompt: Prompt[Any, Any], given: BaseModel) -> None:
    assert_bounded(prompt, given)
