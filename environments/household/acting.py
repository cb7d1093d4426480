"""What an agent can do in one step, what becomes of it, and what the agent then sees."""

from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict

from environments.household.episode import Kind


class Action(BaseModel):
    """One low-level action; `target` is walked to, opened, or put upon, `object` is taken or put."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["walk", "open", "grab", "put_on", "put_in", "send", "wait"]
    target: int | None = None
    object: int | None = None
    text: str = ""

    @property
    def first(self) -> int | None:
        """Name the first thing that hands are laid on: two agents cannot do so at once."""
        return self.target if self.kind == "open" else self.object


WAIT = Action(kind="wait")


@lru_cache(maxsize=4096)
def walk(target: int) -> Action:
    """Walk a step towards a room or a thing."""
    return Action(kind="walk", target=target)


class Outcome(BaseModel):
    """What became of an action; `why` says what stood against it."""

    model_config = ConfigDict(frozen=True)

    ok: bool
    why: str = ""
    forestalled: bool = False
    """Whether another agent laid hands on the thing at this very step and was first."""


DONE = Outcome(ok=True)


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
