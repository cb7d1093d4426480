"""An agent's possible actions in one step, their results, and its observation afterwards."""

from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict

from mneme.environments.household.episode import Kind

AGENT_NAMES = ("Alice", "Bob", "Charlie", "Dana")
"""Names of the agents, in order."""


class Action(BaseModel):
    """One low-level action; `target` is the goal of walking, opening or putting, `object` is taken or put."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["walk", "turn", "open", "grab", "put_on", "put_in", "send", "wait"]
    target: int | None = None
    object: int | None = None
    text: str = ""

    @property
    def first(self) -> int | None:
        """Return the first thing that the action touches; two agents cannot touch it in one step."""
        return self.target if self.kind == "open" else self.object  # a put names its object before its target


WAIT = Action(kind="wait")
TURN = Action(kind="turn")


@lru_cache(maxsize=4096)  # most actions are walks; to validate a new one takes as long as its step
def walk(target: int) -> Action:
    """Walk a step towards a room or a thing."""
    return Action(kind="walk", target=target)


class ActionResult(BaseModel):
    """The result of an action; `why` says why it failed."""

    model_config = ConfigDict(frozen=True)

    ok: bool
    why: str = ""
    forestalled: bool = False
    """Whether another agent was faster in the same step and touched the object first."""


SUCCESS = ActionResult(ok=True)


class Seen(BaseModel):
    """A container, a goal object or a goal's target, as an agent sees it; metres."""

    id: int
    name: str
    category: Kind
    room: int
    holder: int | None
    relation: Literal["", "on", "inside", "held by"]
    is_open: bool | None
    center: tuple[float, float, float]
    size: tuple[float, float, float]


class Observation(BaseModel):
    """What one agent perceives after a step: `others` are (agent, room, hands), in its room only."""

    model_config = ConfigDict(frozen=True)

    step: int
    agent: int
    room: int
    position: tuple[float, float]
    hands: list[int]
    seen: list[Seen]
    others: list[tuple[int, int, list[int]]]
    messages: list[tuple[int, str]]
    rooms: dict[int, str]
    may_send: bool = True
    looked: bool = True
    """Whether the whole room has been in view; without eyes, an agent sees all of its room."""
    within_reach: list[int] = []
    """With eyes, what hands reach: estimated boxes do not tell it to the decimetre."""
    reach_told: bool = False
    """Whether hands reach exactly the objects above, however near others seem."""
    missing: list[int] | None = None
    """With eyes, objects no longer where they were seen; without, known objects here out of view are gone."""
