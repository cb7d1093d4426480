"""Every question that the product asks of a model, found in this package."""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from mneme import prompts
from mneme.prompts.prompt import Prompt

Question = Prompt[Any, Any]
Key = tuple[str, str]
"""The workflow of a question, and its name."""


@cache
def questions() -> Mapping[Key, Question]:
    """Return all questions by workflow and name, in this order."""
    return questions_in(each.name for each in walk_packages(prompts.__path__, f"{prompts.__name__}."))


def questions_in(names: Iterable[str]) -> Mapping[Key, Question]:
    """Return the questions in the modules with these names, by workflow and name, in this order."""
    modules = map(import_module, names)
    found = [each for module in modules for each in vars(module).values() if isinstance(each, Prompt)]
    once = {id(each): each for each in found}.values()  # several modules may import one
    return {(each.room, each.name): each for each in sorted(once, key=lambda each: (each.room, each.name))}
