"""What a person is asked in a discussion, and what the answers may look like.

Questions are worded so that Studio, the command line, agent-inbox and agent-chat-ui can each show them; an
answer that says nothing is asked for again, with the reason.
"""

from typing import Any, TypeVar

from pydantic import BaseModel, Field

from mneme.core.errors import BadInput
from mneme.nodes import answers
from mneme.nodes.answers import Decided, decided, validated

FORMS = {
    "PersonTurn": 'Say something, like {"message": "…", "accept": false}.',
    "Approval": 'Approve, like {"approve": true}, or say what is missing, in `remarks`.',
}


class PersonTurn(BaseModel):
    """What a person says in the role that the person has taken."""

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
        """Return what is missing in the answer."""
        return "" if self.message.strip() else "message: say something."

    @classmethod
    def of(cls, given: Decided) -> "PersonTurn":
        """Read a client's answer: words are what is said; who ignores the turn passes it."""
        if given.kind == "edit":
            return validated(cls, given.args, FORMS[cls.__name__])
        passed = "I have nothing to add." if given.kind == "ignore" else ""
        return cls(message=given.text or passed, changes=False if passed else None)


class Approval(BaseModel):
    """A person's word on the document."""

    approve: bool | None = Field(None, description="Whether the document is final.")
    remarks: str = Field("", description="Where it is not: what the team has to discuss.")

    @property
    def lacks(self) -> str:
        """Return what is missing in the answer."""
        return "approve: yes or no?" if self.approve is None else ""

    @classmethod
    def of(cls, given: Decided) -> "Approval":
        """Read a client's answer: words are remarks; to ignore the document decides nothing."""
        if given.kind == "edit":
            return validated(cls, given.args, FORMS[cls.__name__])
        if given.kind == "ignore":
            return cls()
        return cls(approve=given.kind == "accept", remarks=given.text)


Answer = TypeVar("Answer", PersonTurn, Approval)


def action(name: str, about: str, proposed: BaseModel) -> dict[str, Any]:
    """Return the part of a question that clients show: what may be done, with what arguments."""
    allowed = ("edit",) if name == "speak" else ("approve", "reject")
    return answers.action(name, about, proposed, allowed)


def read_answer(question: dict[str, Any], kind: type[Answer]) -> Answer:
    """Wait for an answer of this kind; ask again for one that says nothing."""

    def read(said: Any) -> Answer:
        given = decided(said)
        found = kind.of(given) if given else validated(kind, said, FORMS[kind.__name__])
        if found.lacks:
            raise BadInput(found.lacks, FORMS[kind.__name__])
        return found

    return answers.ask_person(question, kind, read)
