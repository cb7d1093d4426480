"""Every question that the product asks of a model, found in its packages."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from pydantic import BaseModel

from mneme import prompts
from mneme.prompts.discussion.document import Documenting, write_document_as
from mneme.prompts.discussion.intrinsic_memory import Remembering, update_memory_by
from mneme.prompts.prompt import Prompt

Question = Prompt[Any, Any]
Key = tuple[str, str]
"""The workflow of a question, and its name."""


@cache
def questions() -> Mapping[Key, Question]:
    """Return all questions by workflow and name, in this order."""
    modules = [import_module(each.name) for each in walk_packages(prompts.__path__, f"{prompts.__name__}.")]
    found = [each for module in modules for each in vars(module).values() if isinstance(each, Prompt)]
    return {_place(each): each for each in sorted(_once(found), key=_place)}


def _place(question: Question) -> Key:
    return question.room, question.name


def _once(found: list[Question]) -> list[Question]:
    """Return each question once, however many modules import it."""
    return list({id(each): each for each in found}.values())


def asked_as(question: Question, given: BaseModel) -> Question:
    """Return a question as its node asks it: the type of some answers follows from what is given."""
    if isinstance(given, Remembering):
        return update_memory_by(given.template.root)
    if isinstance(given, Documenting):
        return write_document_as(given.outline)
    return question
