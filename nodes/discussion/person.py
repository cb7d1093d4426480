"""What a person is asked in a discussion, and what the answers may look like.

Questions are worded so that Studio, the command line and agent-chat-ui can each show them; an answer that
says nothing is asked for again, with the reason.
"""

from typing import Any, TypeVar

from langgraph.types import interrupt
from pydantic import BaseModel, Field, ValidationError


class PersonTurn(BaseModel):
    """What a person says in the role that the person has taken: plainly, or as agent-chat-ui sends it."""

    message: str = Field("", description="What to say to the team; not empty.")
    accept: bool = Field(False, description="ACCEPT: whether you accept the solution as it stands.")
    changes: bool | None = Field(
        None,
        description="Whether you propose something new or object: all then accept anew. Left open: yes for a "
        "worker or evaluator who does not accept, else no.",
    )
    finalize: bool = Field(False, description="FINALIZE, for the delegate: whether to write the document.")
    decisions: list[dict[str, Any]] = []

    @property
    def lacks(self) -> str:
        """Return what is missing in the answer."""
        return "" if self.message.strip() else "message: say something."


class Approval(BaseModel):
    """A person's word on the document: plainly, or as agent-chat-ui sends it."""

    approve: bool | None = Field(None, description="Whether the document is final.")
    remarks: str = Field("", description="Where it is not: what the team has to discuss.")
    decisions: list[dict[str, Any]] = []

    @property
    def lacks(self) -> str:
        """Return what is missing in the answer."""
        return "approve: yes or no?" if self.approve is None else ""


Answer = TypeVar("Answer", PersonTurn, Approval)


def action(name: str, about: str, proposed: BaseModel) -> dict[str, Any]:
    """Return the part of a question that agent-chat-ui shows: what may be done, with what arguments."""
    allowed = ["edit"] if name == "speak" else ["approve", "reject"]
    schema = type(proposed).model_json_schema()
    return {
        "action_requests": [{"name": name, "args": proposed.model_dump(), "description": about}],
        "review_configs": [{"action_name": name, "allowed_decisions": allowed, "args_schema": schema}],
    }


def read_answer(question: dict[str, Any], kind: type[Answer]) -> Answer:
    """Wait for an answer of this kind, plainly or as agent-chat-ui sends it; ask again for any other."""
    wrong = ""
    while True:
        answer = interrupt({**question, "wrong": wrong}, response_schema=kind)
        try:
            read = kind.model_validate(_plain(kind.model_validate(answer)))
        except ValidationError as error:
            first = error.errors()[0]
            wrong = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            continue
        if not read.lacks:
            return read
        wrong = read.lacks


def _plain(answer: PersonTurn | Approval) -> Any:
    """Return what a decision of agent-chat-ui says in the words of our own answers."""
    if not answer.decisions:
        return answer.model_dump()
    decided = answer.decisions[0]
    if decided.get("type") == "edit":
        return (decided.get("edited_action") or {}).get("args", {})
    return {"approve": decided.get("type") == "approve", "remarks": decided.get("message", "")}
