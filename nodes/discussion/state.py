"""State of a discussion's graph between its steps: names and numbers, no words of the conversation."""

from operator import add
from typing import Annotated, Any

from langgraph.channels import EphemeralValue
from pydantic import Field
from typing_extensions import TypedDict

from mneme.environments.fields import described
from mneme.library.teams.team import shipped
from mneme.models.asking.counting import Asked, sum_counts
from mneme.nodes.discussion.context import DiscussionRuntime
from mneme.nodes.messages import ChatMessages
from mneme.nodes.workflow import Update
from mneme.stores.discussions.discussions import Ending, Turn


class Given(TypedDict, total=False):
    """The task, the team (a shipped one's name, or a whole team), and an id for one that may be resumed."""

    task: Annotated[
        str,
        described("What the team is to discuss.", "Design a data pipeline for weather stations."),
        EphemeralValue,
    ]
    team: Annotated[
        Any,
        Field(
            "data_pipeline",
            description="A shipped team's name, or a whole team of your own.",
            examples=shipped(),
            json_schema_extra={"anyOf": [{"type": "string", "enum": shipped()}, {"type": "object"}]},
        ),
        EphemeralValue,
    ]
    discussion_id: Annotated[
        str, described("The id of a new discussion, or of one to go on with.", "pipeline-1")
    ]
    messages: Annotated[ChatMessages, EphemeralValue]


class Result(TypedDict, total=False):
    """How a discussion ended, and what it produced. Turns and memories are in the ledger, by its id."""

    discussion_id: str
    ended: Ending
    lacks: str
    turn: int
    document: dict[str, Any]
    report: dict[str, str]
    tokens: int
    answered_by: dict[str, str]
    complaints: Annotated[list[str], add]
    asked: Annotated[Asked, sum_counts]


class State(Given, Result, total=False):
    """Names and numbers: who has the floor, who has accepted, how far the discussion is."""

    speaker: str
    worker_counter: int
    accepted: dict[str, bool]
    finalize: bool
    approved: bool
    bound: int
    person: str
    approve: bool


def heard(turn: Turn, state: State, runtime: DiscussionRuntime) -> Update:
    """Count a turn with its acceptance, and end the acceptances of the roles that its issues concern."""
    revoked = turn.revokes(state["accepted"])
    kept = {name: accepts for name, accepts in state["accepted"].items() if name not in revoked}
    runtime.stream_writer({"step": "turn", **turn.model_dump()})
    return {
        "turn": turn.number,
        "accepted": {**kept, turn.speaker: turn.accept},
        "finalize": turn.finalize,
        "answered_by": {**state["answered_by"], turn.speaker: turn.answered_by},
    }
