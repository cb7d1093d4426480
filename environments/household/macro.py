"""High-level actions: when they are possible, and the low-level steps that they take."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from mneme.environments.household.acting import AGENT_NAMES, TURN, WAIT, Action, Observation, walk
from mneme.environments.household.beliefs import Beliefs, Sighting, satisfies
from mneme.environments.household.episode import Goal
from mneme.environments.household.layout import Layout, distance
from mneme.environments.household.world import CLOSE, HANDS

MAX_REPEATS = 20
"""After this many repetitions of an action without effect, an agent plans again."""
MAX_WAIT_STEPS = 5
"""Steps after which a waiting agent plans again."""


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
        if self.kind == "send_message":
            return f'send_message "{self.text}"'
        return f"{self.kind} <{self.name}> ({self.target})"


class MacroEnd(BaseModel):
    """The end of a macro action; `why` says why it failed."""

    model_config = ConfigDict(frozen=True)

    ok: bool
    why: str = ""
    forestalled: bool = False
    """Whether another agent had taken or moved the object."""


def possible(observation: Observation, beliefs: Beliefs, goals: Sequence[Goal]) -> list[Macro]:
    """Return an agent's options by its beliefs; putting is forced when it holds two objects.

    `send_message` is offered without its text, and not to an agent that has just sent one.
    """
    putting = [
        Macro(kind="goput", target=goal.target, name=goal.target_name)
        for goal in _targets(goals, observation.hands, beliefs)
    ]
    if len(observation.hands) >= HANDS and putting:  # as in CoELA, whose model is not asked then
        return putting
    free_handed: list[Macro] = []
    if len(observation.hands) < HANDS:
        free_handed = [
            Macro(kind="gograb", target=each.id, name=each.name) for each in wanted(beliefs, goals)
        ]
        closed = (each for each in beliefs.containers() if each.is_open is False)
        free_handed += [Macro(kind="gocheck", target=each.id, name=each.name) for each in closed]
    exploring = [
        Macro(kind="goexplore", target=room, name=name)
        for room, name in observation.rooms.items()
        if room != observation.room or not observation.looked
    ]
    sending = [Macro(kind="send_message")] if observation.may_send else []
    return [*putting, *free_handed, *exploring, *sending, Macro(kind="wait")]


def wanted(beliefs: Beliefs, goals: Sequence[Goal]) -> list[Sighting]:
    """List the known loose things that a goal lacks: of a class not yet in hands or in place."""
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
    """Return a goal for each target of something in hand; only unmet goals, if there are any."""
    held = {beliefs.things[thing].name for thing in hands if thing in beliefs.things}
    fitting = [goal for goal in goals if goal.name in held]
    placed = beliefs.placed(fitting)
    lacking = [goal for goal in fitting if placed[goal.key] < goal.count]
    firsts: dict[int, Goal] = {}
    for goal in lacking or fitting:
        firsts.setdefault(goal.target, goal)
    return list(firsts.values())


class Plan(BaseModel):
    """A macro action under way; plain JSON by `model_dump`, and back by `model_validate`."""

    macro: Macro
    belonging: list[str] = []
    """The classes that a `goput` puts down."""
    relation: Literal["on", "inside"] = "on"
    found: tuple[str, int | None] | None = None
    """Place from which a `gograb` was to take its object."""
    steps: int = 0
    repeats: int = 0
    last: Action | None = None
    position: tuple[float, float] | None = None

    @classmethod
    def of(cls, macro: Macro, goals: Sequence[Goal]) -> "Plan":
        """Start a macro action."""
        here = [goal for goal in goals if goal.target == macro.target]
        relation = here[0].relation if here else "on"
        return cls(macro=macro, belonging=sorted({goal.name for goal in here}), relation=relation)

    def next(self, observation: Observation, beliefs: Beliefs, layout: Layout) -> Action | MacroEnd:
        """Return the next low-level action by sights and beliefs, or the end of the plan.

        The counts change only when `took` is called with the action.
        """
        if self.repeats >= MAX_REPEATS:
            return _failed("stuck")
        if self.macro.kind == "goput":
            return self._put(observation, beliefs, layout)
        return _NEXT[self.macro.kind](self, observation, beliefs)

    def took(self, action: Action, observation: Observation, beliefs: Beliefs) -> None:
        """Record an action that is about to be taken, and the position of the agent before it."""
        stays = action == self.last and self.position == observation.position
        stays = stays and action.kind not in ("wait", "turn")  # those stay on purpose
        self.repeats = self.repeats + 1 if stays else 0
        self.last, self.position = action, observation.position
        self.steps += 1
        # Its place when the plan began: if it is elsewhere later, another agent has moved it.
        if self.macro.kind == "gograb" and self.found is None and self.macro.target in beliefs.things:
            self.found = _whereabouts(beliefs.things[self.macro.target])

    def _known(self, beliefs: Beliefs) -> Sighting | None:
        return None if self.macro.target is None else beliefs.things.get(self.macro.target)

    def _explore(self, observation: Observation, _: Beliefs) -> Action | MacroEnd:
        if self.macro.target not in observation.rooms:
            return _failed("there is no such room")
        if observation.room != self.macro.target:
            return walk(self.macro.target)
        return MacroEnd(ok=True) if observation.looked else self._look_round(observation)

    def _look_round(self, observation: Observation) -> Action:
        """Go to the middle of the room, and turn there until the whole room was in view."""
        to_the_middle = walk(observation.room)
        has_arrived = self.last == to_the_middle and self.position == observation.position
        return TURN if has_arrived or self.last == TURN else to_the_middle

    def _check(self, observation: Observation, beliefs: Beliefs) -> Action | MacroEnd:
        container = self._known(beliefs)
        if container is None or container.category != "container":
            return _failed("no such container is known")
        if container.is_open:  # an agent that only heard of it has not searched it
            return MacroEnd(ok=True) if container.room == observation.room else _gone("another has opened it")
        if len(observation.hands) >= HANDS:
            return _failed("no hand is free")
        return _go(observation, container, beliefs) or Action(kind="open", target=container.id)

    def _grab(self, observation: Observation, beliefs: Beliefs) -> Action | MacroEnd:
        if self.macro.target in observation.hands:
            return MacroEnd(ok=True)
        thing = self._known(beliefs)
        if thing is None or thing.category != "object":
            # On the way, its place was seen without it.
            return _gone("it is not where it was") if self.steps else _failed("no such thing is known")
        if thing.relation == "held by":
            return _gone(f"{AGENT_NAMES[thing.holder or 0]} holds it")
        if self.found is not None and self.found != _whereabouts(thing):
            return _gone("it was moved")
        if len(observation.hands) >= HANDS:
            return _failed("no hand is free")
        return _go(observation, thing, beliefs) or Action(kind="grab", object=thing.id)

    def _put(self, observation: Observation, beliefs: Beliefs, layout: Layout) -> Action | MacroEnd:
        known = (beliefs.things.get(thing) for thing in observation.hands)
        load = [each.id for each in known if each is not None and each.name in self.belonging]
        if not load:
            return MacroEnd(ok=True) if self.steps else _failed("nothing in hand belongs there")
        target = self._known(beliefs)
        if target is None and not observation.looked:
            return self._look_round(observation)
        if target is None:
            return _search(observation, beliefs, layout)
        way = _go(observation, target, beliefs)
        if way is not None:
            return way
        # With both hands full nothing can be opened; C-WAH's recorded agents put into it all the same.
        if target.is_open is False and len(observation.hands) < HANDS:
            return Action(kind="open", target=target.id)
        kind: Literal["put_on", "put_in"] = "put_on" if self.relation == "on" else "put_in"
        return Action(kind=kind, target=target.id, object=load[0])

    def _send(self, observation: Observation, _: Beliefs) -> Action | MacroEnd:
        if self.steps:
            return MacroEnd(ok=True)
        if not observation.may_send:
            return _failed("a message was sent just now")
        return Action(kind="send", text=self.macro.text)

    def _wait(self, observation: Observation, _: Beliefs) -> Action | MacroEnd:
        return MacroEnd(ok=True) if self.steps >= MAX_WAIT_STEPS else WAIT


def _failed(why: str) -> MacroEnd:
    return MacroEnd(ok=False, why=why)


def _gone(why: str) -> MacroEnd:
    return MacroEnd(ok=False, why=why, forestalled=True)


_NEXT: Mapping[str, Callable[[Plan, Observation, Beliefs], Action | MacroEnd]] = {
    "goexplore": Plan._explore,
    "gocheck": Plan._check,
    "gograb": Plan._grab,
    "send_message": Plan._send,
    "wait": Plan._wait,
}


def _go(observation: Observation, known: Sighting, beliefs: Beliefs) -> Action | None:
    """Walk to the room and then to the thing, until it is CLOSE."""
    if observation.room != known.room:
        return walk(known.room)
    if known.id in observation.within_reach:
        return None
    if observation.reach_told:
        return walk(known.id)
    # What lies in a container that is CLOSE is CLOSE, too.
    around = beliefs.things.get(known.holder or -1) if known.relation == "inside" else None
    boxes = (known, around) if around else (known,)
    return None if any(distance(observation.position, each) <= CLOSE for each in boxes) else walk(known.id)


def _search(observation: Observation, beliefs: Beliefs, layout: Layout) -> Action | MacroEnd:
    """Search for a target that was never seen, in the nearest unvisited room."""
    unseen = [room for room in observation.rooms if room not in beliefs.room_seen]
    if not unseen:
        return _failed("the target is nowhere")
    return walk(min(unseen, key=lambda room: layout.way(observation.room, observation.position, room)[0]))


def _whereabouts(known: Sighting) -> tuple[str, int | None]:
    return known.relation, known.holder
