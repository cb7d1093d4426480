"""Registry of rules by prompt; used by `models/` (and evaluations) alone, where `rules` answers."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar, cast

from pydantic import BaseModel

from mneme.core.errors import BadInput
from mneme.prompts.prompt import Prompt

Given = TypeVar("Given", bound=BaseModel)
Answer = TypeVar("Answer", bound=BaseModel | str)
Rule = Callable[[Given], Answer]

_RULES: dict[tuple[str, str], Callable[[Any], Any]] = {}
"""Room and name of a prompt -> its rule."""


def rule(prompt: Prompt[Given, Answer]) -> Callable[[Rule[Given, Answer]], Rule[Given, Answer]]:
    """Register a function as the rule that answers a prompt; used as a decorator."""

    def register(answering: Rule[Given, Answer]) -> Rule[Given, Answer]:
        _RULES[prompt.room, prompt.name] = answering
        return answering

    return register


def answer(prompt: Prompt[Given, Answer], given: Given) -> Answer:
    """Return the answer of the prompt's rule; its room of rules is imported at the first question.

    Raises `BadInput` where no rule answers this prompt.
    """
    key = prompt.room, prompt.name
    if key not in _RULES and prompt.room:
        import_module(f"mneme.rules.{prompt.room}")
    if key not in _RULES:
        raise BadInput(f"No rule answers {prompt.name}.", "Give a model: ollama:<model>.")
    return cast(Answer, _RULES[key](given))  # `rule` takes only what has the prompt's types
