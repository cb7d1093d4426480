"""The questions of planning problems: their example gives no action away."""

import json
from pathlib import Path
from typing import Any

import pytest

from mneme.prompts.pddl.pddl_team import choose_action, choose_otherwise
from mneme.prompts.prompt import Prompt

DOMAINS = Path(__file__).parents[2] / "environments" / "pddl" / "domains"


@pytest.mark.parametrize("prompt", [choose_action, choose_otherwise], ids=lambda each: each.name)
def test_the_example_gives_no_action_of_a_domain_away(prompt: Prompt[Any, Any]) -> None:
    shown = json.loads(prompt.example_texts[0])["action"].split()[0]
    texts = [path.read_text(encoding="utf-8") for path in DOMAINS.glob("*.pddl")]
    assert texts and not any(f"(:action {shown}" in text for text in texts)
