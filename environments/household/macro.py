"""What an agent decides: high-level actions, when they are possible, and the low-level steps they take."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from environments.household.beliefs import Beliefs, Known, satisfies
from environments.household.episode import Goal
from environments.household.world import HANDS, Action, Observation

MOST_REPEATS = 20
"""An agent that repeats one action in one room so often is stuck and plans again."""
LONGEST_WAIT = 5
"""Steps after which a waiting agent plans again."""
WAIT = Action(kind="wait")


class Macro(BaseModel):
    """A high-level action; prints as C-WAH writes it, `gograb <wine> (72)`."""

    model_config = ConfigDict(frozen=True)

    kind: Literal["goexplore", "gocheck", "gograb", "goput", "send_message", "wait"]
    target: int | None = None
    name: str = ""
    text: str = ""

    def __str__(self) -> str:
        if self.kind == "wait":
            return "wait"
        return (
            f'send_message "{self.text}"'
            if self.kind == "send_message"
            else f"{self.kind} <{self.name}> ({self.target})"
        )


class Ended(BaseModel):
    """A macro action is over; `why` says what stood against it where it failed."""

    model_config = ConfigDict(frozen=True)

    ok: bool
    why: str = ""


def possible(observation: Observation, beliefs: Beliefs, goals: Sequence[Goal]) -> list[Macro]:
    """List what an agent may decide now, by what it believes; putting is forced when two things are held."""
    putting = [_put(goal, beliefs) for goal in _targets(goals, observation.hands, beliefs)]
    if len(observation.hands) >= HANDS:
        return putting
    messages = [Macro(kind="send_message")] if observation.may_send else []
    exploring = [
        Macro(kind="goexplore", target=room, name=name)
        for room, name in observation.rooms.items()
        if room != observation.room
    ]
    checking = [
        Macro(kind="gocheck", target=c.id, name=c.name) for c in beliefs.containers() if c.is_open is False
    ]
    grabbing = [Macro(kind="gograb", target=o.id, name=o.name) for o in wanted(beliefs, goals)]
    return [*putting, *grabbing, *checking, *exploring, *messages, Macro(kind="wait")]


def wanted(beliefs: Beliefs, goals: Sequence[Goal]) -> list[Known]:
    """List the known things that would bring a goal forward: loose, and of a class not yet in hand or place."""
    placed = beliefs.placed(goals)
    lacking = Counter[str]()
    for goal in goals:
        lacking[goal.name] += goal.count - placed[goal.key]
    lacking.subtract(beliefs.things[thing].name for thing in beliefs.hands if thing in beliefs.things)
    return [
        known
        for known in beliefs.objects()
        if lacking[known.name] > 0
        and known.relation != "held by"
        and not any(satisfies(known, goal) for goal in goals)
    ]


def _targets(goals: Sequence[Goal], hands: Iterable[int], beliefs: Beliefs) -> list[Goal]:
    """Pick one goal per target that something in hand belongs to, or else per target."""
    held = {beliefs.things[thing].name for thing in hands if thing in beliefs.things}
    if not held:
        return []
    fitting = [goal for goal in goals if goal.name in held] or list(goals)
    return list({goal.target: goal for goal in reversed(fitting)}.values())[::-1]


def _put(goal: Goal, beliefs: Beliefs) -> Macro:
    target = beliefs.things.get(goal.target)
    return Macro(kind="goput", target=goal.target, name=target.name if target else "target")


class Plan(BaseModel):
    """A macro action under way; plain JSON by `model_dump`, and back by `model_validate`."""

    macro: Macro
    relation: Literal["on", "inside"] = "on"
    """How a `goput` puts."""
    steps: int = 0
    repeats: int = 0
    last: str = ""
    walking: bool = False

    @classmethod
    def of(cls, macro: Macro, goals: Sequence[Goal]) -> "Plan":
        """Start a macro action."""
        relation = next((goal.relation for goal in goals if goal.target == macro.target), "on")
        return cls(macro=macro, relation=relation)

    def next(self, observation: Observation, beliefs: Beliefs) -> Action | Ended:
        """Give the next low-level action, by what the agent sees and believes, or say how the plan ended."""
        action = _NEXT[self.macro.kind](self, observation, beliefs)
        if isinstance(action, Ended):
            return action
        mark = f"{action.kind} {action.target} {action.object} {observation.room}"
        self.repeats = self.repeats + 1 if mark == self.last else 0
        self.last, self.steps = mark, self.steps + 1
        return (
            Ended(ok=False, why="stuck") if self.repeats >= MOST_REPEATS and action.kind != "wait" else action
        )

    def _explore(self, observation: Observation, _: Beliefs) -> Action | Ended:
        return Ended(ok=True) if observation.room == self.macro.target else _walk(self.macro.target)

    def _check(self, observation: Observation, beliefs: Beliefs) -> Action | Ended:
        container = beliefs.things.get(self.macro.target or -1)
        if container is None:
            return Ended(ok=False, why="it is not known where that is")
        if container.is_open:
            return Ended(ok=True)
        if len(observation.hands) >= HANDS:
            return Ended(ok=False, why="no hand is free")
        return self._go(observation, container) or Action(kind="open", target=container.id)

    def _grab(self, observation: Observation, beliefs: Beliefs) -> Action | Ended:
        thing = beliefs.things.get(self.macro.target or -1)
        if self.macro.target in observation.hands:
            return Ended(ok=True)
        if thing is None or thing.relation == "held by":
            return Ended(ok=False, why="it is gone" if thing is None else "somebody holds it")
        if len(observation.hands) >= HANDS:
            return Ended(ok=False, why="no hand is free")
        return self._go(observation, thing) or Action(kind="grab", object=thing.id)

    def _put(self, observation: Observation, beliefs: Beliefs) -> Action | Ended:
        if not observation.hands:
            return Ended(ok=self.steps > 0, why="" if self.steps else "nothing is in hand")
        target = beliefs.things.get(self.macro.target or -1)
        if target is None:
            return self._search(observation, beliefs)
        walk = self._go(observation, target)
        if walk is not None:
            return walk
        if target.is_open is False and len(observation.hands) < HANDS:
            return Action(kind="open", target=target.id)
        put: Literal["put_on", "put_in"] = "put_on" if self.relation == "on" else "put_in"
        return Action(kind=put, target=target.id, object=observation.hands[0])

    def _search(self, observation: Observation, beliefs: Beliefs) -> Action | Ended:
        """Look for a target that was never seen, room by room."""
        unseen = [room for room in observation.rooms if room not in beliefs.room_seen]
        return _walk(unseen[0]) if unseen else Ended(ok=False, why="the target is nowhere")

    def _send(self, observation: Observation, _: Beliefs) -> Action | Ended:
        if self.steps:
            return Ended(ok=True)
        if not observation.may_send:
            return Ended(ok=False, why="a message was sent just now")
        return Action(kind="send", text=self.macro.text)

    def _wait(self, observation: Observation, _: Beliefs) -> Action | Ended:
        return Ended(ok=True) if self.steps >= LONGEST_WAIT or (self.steps and observation.messages) else WAIT

    def _go(self, observation: Observation, known: Known) -> Action | None:
        """Walk to the room and then to the thing, until it is CLOSE."""
        if observation.room != known.room:
            return _walk(known.room)
        return None if known.id in observation.near else _walk(known.id)


_NEXT: Mapping[str, Callable[[Plan, Observation, Beliefs], Action | Ended]] = {
    "goexplore": Plan._explore,
    "gocheck": Plan._check,
    "gograb": Plan._grab,
    "goput": Plan._put,
    "send_message": Plan._send,
    "wait": Plan._wait,
}


def _walk(target: int | None) -> Action:
    return Action(kind="walk", target=target)
