"""Questions to a person in a discussion, and the forms of the answers.

Studio, the command line, agent-inbox and agent-chat-ui can show the questions. After an empty answer the
question is asked again, with the reason.
"""

from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, Field

from mneme.core.errors import BadInput
from mneme.nodes import answers
from mneme.nodes.answers import PersonAnswer


class PersonTurn(BaseModel):
    """What a person says in the role that the person has taken."""

    form: ClassVar[str] = 'Say something, like {"message": "…", "accept": false}.'

    message: str = Field("", description="What to say to the team; not empty.")
    accept: bool = Field(False, description="ACCEPT: whether you accept the solution as it stands.")
    changes: bool | None = Field(
        None,
        description="Whether you propose something new or object: all then accept anew. Left open: yes for a "
        "worker or evaluator who does not accept, else no.",
    )
    raises: list[str] | None = Field(None, description="Issues that somebody must answer; all accept anew.")
    answers: list[int] | None = Field(None, description="Numbers of the issues that this answers.")
    finalize: bool = Field(False, description="FINALIZE, for the delegate: whether to write the document.")

    @property
    def lacks(self) -> str:
        """Return what the answer lacks."""
        return "" if self.message.strip() else "message: say something."

    @staticmethod
    def fields_of(given: PersonAnswer) -> dict[str, Any]:
        """Return a client's answer as fields: words are the message; to ignore the turn passes it."""
        if given.kind == "ignore" and not given.text:
            return {"message": "I have nothing to add.", "changes": False}
        return given.args or {"message": given.text}


class Approval(BaseModel):
    """A person's word on the document."""

    form: ClassVar[str] = 'Approve, like {"approve": true}, or say what is missing, in `remarks`.'

    approve: bool | None = Field(None, description="Whether the document is final.")
    remarks: str = Field("", description="Where it is not: what the team has to discuss.")

    @property
    def lacks(self) -> str:
        """Return what the answer lacks."""
        return "approve: yes or no?" if self.approve is None else ""

    @staticmethod
    def fields_of(given: PersonAnswer) -> dict[str, Any]:
        """Return a client's answer as fields: words are remarks; to ignore the document decides nothing."""
        if given.kind in {"edit", "ignore"}:
            return given.args  # empty for `ignore`: the question is asked again
        return {"approve": given.kind == "accept", "remarks": given.text}


Answer = TypeVar("Answer", PersonTurn, Approval)


def ask_person(question: dict[str, Any], kind: type[Answer]) -> Answer:
    """Wait for an answer of this kind; ask again for one that says nothing."""

    def read(said: Any) -> Answer:
        found = answers.read_answer(kind, said, kind.form, kind.fields_of)
        if found.lacks:
            raise BadInput(found.lacks, kind.form)
        return found

    return answers.ask_person(question, kind, read)
