"""Questions as their nodes ask them, and those that only evaluations ask."""

from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel

from mneme.prompts.discussion.document import Documenting, write_document_as
from mneme.prompts.discussion.memory_update import Remembering, update_memory_by
from mneme.prompts.every import Key, Question, questions, questions_in

OF_EVALUATIONS = ("mneme.evals.discussion.judges",)


@cache
def all_questions() -> Mapping[Key, Question]:
    """Return the questions of the product and of evaluations, by workflow and name, in this order."""
    return dict(sorted({**questions(), **questions_in(OF_EVALUATIONS)}.items()))


def asked_as(question: Question, given: BaseModel) -> Question:
    """Return a question as its node asks it: the type of some answers follows from what is given."""
    if isinstance(given, Remembering):
        return update_memory_by(given.template.root)
    if isinstance(given, Documenting):
        return write_document_as(given.outline)
    return question
