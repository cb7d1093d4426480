"""Questions as their nodes ask them."""

from pydantic import BaseModel

from mneme.prompts.discussion.document import Documenting, write_document_as
from mneme.prompts.discussion.memory_update import Remembering, update_memory_by
from mneme.prompts.every import Question


def asked_as(question: Question, given: BaseModel) -> Question:
    """Return a question as its node asks it: the type of some answers follows from what is given."""
    if isinstance(given, Remembering):
        return update_memory_by(given.template.root)
    if isinstance(given, Documenting):
        return write_document_as(given.outline)
    return question
