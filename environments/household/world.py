"""The household world: one low-level action per agent and step, by the rules measured on VirtualHome.

Where the measured rules are silent:
- a walk to a room ends behind the last door, what is left of its last step leading on to the room's centre;
- putting into a container that is shut succeeds: an agent with both hands full cannot open it, and its
  recorded counterparts put without opening;
- a message reaches every other agent.
"""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from environments.household.episode import Episode, Relation, Thing
from environments.household.layout import Layout, Point, beside, distance, towards
from mneme.errors import BadInput

CLOSE = 1.5
"""Horizontal bounding-box distance in metres within which hands reach."""
LONGEST_MESSAGE = 500
HANDS = 2


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


class Outcome(BaseModel):
    """What became of an action; `why` says what stood against it."""

    model_config = ConfigDict(frozen=True)

    ok: bool
    why: str = ""


class Seen(BaseModel):
    """A container, a goal object or a goal's target, as an agent sees it."""

    model_config = ConfigDict(frozen=True)

    id: int
    name: str
    category: Literal["container", "surface", "object"]
    room: int
    holder: int | None
    relation: Literal["", "on", "inside", "held by"]
    is_open: bool | None
    center: tuple[float, float, float]


class Observation(BaseModel):
    """What one agent perceives after a step."""

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
    near: list[int] = []
    """What of `seen` is CLOSE."""


class Body:
    """Where an agent is and what it holds."""

    __slots__ = ("hands", "position", "room", "sent")

    def __init__(self, room: int, position: Point, hands: list[int], sent: bool) -> None:
        self.room, self.position, self.hands, self.sent = room, position, hands, sent


DONE = Outcome(ok=True)


class World:
    """Play an episode; deterministic by seed, also when restored in the middle."""

    LIMIT = 250

    def __init__(self, episode: Episode, state: Mapping[str, Any] | None = None, seed: int = 0) -> None:
        self.episode, self.seed = episode, seed
        self.layout = Layout(episode)
        self.things: dict[int, Thing] = self.layout.things
        self.steps = 0
        self.agents = [Body(start.room, start.position, [], False) for start in episode.starts]
        self.open = set(episode.open)
        self.places: dict[int, tuple[Relation, int]] = dict(episode.places)
        self._moved: set[int] = set()
        self._messages: list[tuple[int, str]] = []
        if state is not None:
            self._restore(state)
        self._room_names = {room.id: room.name for room in episode.rooms()}
        self._furniture = {
            thing.id: episode.room_of(thing.id) for thing in episode.things if thing.category != "object"
        }
        self._watch()

    # ---------------------------------------------------------------- state

    def state(self) -> dict[str, Any]:
        """Give all that changed since the start as plain JSON values."""
        return {
            "steps": self.steps,
            "seed": self.seed,
            "agents": [
                {
                    "room": body.room,
                    "position": list(body.position),
                    "hands": list(body.hands),
                    "sent": body.sent,
                }
                for body in self.agents
            ],
            "moved": {
                str(thing): list(self.places[thing]) for thing in sorted(self._moved) if thing in self.places
            },
            "opened": sorted(self.open - set(self.episode.open)),
            "messages": [list(message) for message in self._messages],
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        try:
            self.steps, self.seed = state["steps"], state["seed"]
            self.agents = [
                Body(
                    each["room"],
                    (each["position"][0], each["position"][1]),
                    list(each["hands"]),
                    each["sent"],
                )
                for each in state["agents"]
            ]
            for thing, (relation, holder) in state["moved"].items():
                self.places[int(thing)] = (relation, holder)
                self._moved.add(int(thing))
            self.open |= set(state["opened"])
            self._messages = [(sender, text) for sender, text in state["messages"]]
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise BadInput(
                f"state: not what a world gave ({error!r}).", "Give back what state() returned."
            ) from error
        if len(self.agents) != len(self.episode.starts):
            raise BadInput("state.agents: another team than the episode's.", "Restore with the same episode.")
        for body in self.agents:
            for held in body.hands:
                self.places.pop(held, None)
                self._moved.add(held)

    # ---------------------------------------------------------------- progress

    @property
    def progress(self) -> dict[str, int]:
        """Count how much of each goal predicate holds."""
        return dict(self._progress)

    @property
    def done(self) -> bool:
        """Say whether every count is met."""
        return self._done

    def _count(self) -> None:
        placed: dict[tuple[str, str, int], int] = {}
        for thing in self._wanted:
            place = self.places.get(thing)
            if place is not None:
                key = (place[0], self.things[thing].name, place[1])
                placed[key] = placed.get(key, 0) + 1
        self._progress = {
            goal.key: min(goal.count, placed.get((goal.relation, goal.name, goal.target), 0))
            for goal in self.episode.goals
        }
        self._done = all(self._progress[goal.key] >= goal.count for goal in self.episode.goals)

    # ---------------------------------------------------------------- acting

    def step(self, actions: Sequence[Action]) -> list[Outcome]:
        """Let every agent act once, agent 0 first; of two that want the same thing, one acts, at random."""
        if len(actions) != len(self.agents):
            raise BadInput(f"actions: {len(actions)} for {len(self.agents)} agents.", "Give one action each.")
        self.steps += 1
        self._messages = []
        losers = self._conflicts(actions)
        return [
            Outcome(ok=False, why=losers[agent]) if agent in losers else self._act(agent, action)
            for agent, action in enumerate(actions)
        ]

    def _conflicts(self, actions: Sequence[Action]) -> dict[int, str]:
        claims: dict[int, list[int]] = {}
        for agent, action in enumerate(actions):
            if action.kind not in ("walk", "send", "wait") and action.first is not None:
                claims.setdefault(action.first, []).append(agent)
        losers: dict[int, str] = {}
        for thing, agents in claims.items():
            if len(agents) > 1:
                lucky = random.Random(f"{self.seed}:{self.steps}:{thing}").choice(agents)  # noqa: S311
                losers |= {agent: f"agent {lucky} was first" for agent in agents if agent != lucky}
        return losers

    def _act(self, agent: int, action: Action) -> Outcome:
        body = self.agents[agent]
        sent, body.sent = body.sent, action.kind == "send"
        if action.kind == "walk":
            return self._walk(body, action.target)
        if action.kind == "wait":
            return DONE
        if action.kind == "send":
            return self._send(agent, action.text, sent)
        why = self._against(body, action)
        if why:
            return Outcome(ok=False, why=why)
        self._handle(body, action)
        return DONE

    def _walk(self, body: Body, target: int | None) -> Outcome:
        room = None if target is None else self.room_of(target)
        if room is None or target is None:
            return Outcome(ok=False, why="there is no such place")
        if room != body.room:
            body.room, body.position = self.layout.towards_room(body.room, body.position, room)
            self._carry(body)
        elif target != room:
            body.position = towards(body.position, self.solid(target))
        return DONE

    def _send(self, agent: int, text: str, sent: bool) -> Outcome:
        if sent:
            return Outcome(ok=False, why="a message was sent just now")
        self._messages.append((agent, text[:LONGEST_MESSAGE]))
        return DONE

    def _against(self, body: Body, action: Action) -> str:
        """Say what forbids handling, or nothing."""
        if action.kind == "open":
            return self._against_opening(body, action.target)
        if action.kind == "grab":
            return self._against_grabbing(body, action.object)
        return self._against_putting(body, action)

    def _against_opening(self, body: Body, target: int | None) -> str:
        if target not in self.things or self.things[target].category != "container":
            return "that is no container"
        if target in self.open:
            return "it is open already"
        if len(body.hands) >= HANDS:
            return "no hand is free"
        return "" if self.is_close(body, target) else "it is too far away"

    def _against_grabbing(self, body: Body, wanted: int | None) -> str:
        if wanted not in self.things or self.things[wanted].category != "object":
            return "that cannot be taken"
        if wanted not in self.places:
            return "somebody holds it"
        if len(body.hands) >= HANDS:
            return "no hand is free"
        if self.hidden(wanted):
            return "it is in a container that is not open"
        return "" if self.is_close(body, wanted) else "it is too far away"

    def _against_putting(self, body: Body, action: Action) -> str:
        if action.object not in body.hands:
            return "it is not in hand"
        needed = "surface" if action.kind == "put_on" else "container"
        if action.target not in self.things or self.things[action.target].category != needed:
            return f"that is no {needed}"
        return "" if self.is_close(body, action.target) else "it is too far away"

    def _handle(self, body: Body, action: Action) -> None:
        thing = action.object
        if action.kind == "open" and action.target is not None:
            self.open.add(action.target)
        elif action.kind == "grab" and thing is not None:
            del self.places[thing]
            self._moved.add(thing)
            body.hands.append(thing)
        elif thing is not None and action.target is not None:
            body.hands.remove(thing)
            self.places[thing] = ("on" if action.kind == "put_on" else "inside", action.target)
        self._changed(body.room)

    # ---------------------------------------------------------------- where things are

    def holder(self, thing: int) -> int | None:
        """Name the agent that holds a thing."""
        if thing in self.places:
            return None
        return next((agent for agent, body in enumerate(self.agents) if thing in body.hands), None)

    def room_of(self, thing: int) -> int | None:
        """Name the room that a thing is in, or nothing where there is no such thing."""
        if thing in self._furniture:
            return self._furniture[thing]
        place = self.places.get(thing)
        if place is not None:
            return self._furniture[place[1]]
        agent = self.holder(thing)
        return None if agent is None else self.agents[agent].room

    def solid(self, thing: int) -> Thing:
        """Give the box that stands for a thing: its own, its new holder's, or its bearer's."""
        if thing not in self._moved:
            return self.things[thing]
        if thing in self.places:
            return self.things[self.places[thing][1]]
        x, z = self.agents[self.holder(thing) or 0].position
        return self.things[thing].model_copy(update={"center": (x, 1.0, z)})

    def hidden(self, thing: int) -> bool:
        """Say whether a thing lies inside what is not open."""
        place = self.places.get(thing)
        if place is None or place[0] == "on":
            return False
        return place[1] not in self.open and place[1] not in self.layout.centers

    def is_close(self, body: Body, thing: int) -> bool:
        """Say whether hands reach: CLOSE itself, or in a container that is CLOSE."""
        if self.room_of(thing) != body.room:
            return False
        if distance(body.position, self.solid(thing)) <= CLOSE:
            return True
        place = self.places.get(thing)
        if place is None or place[0] != "inside" or place[1] in self.layout.centers:
            return False
        return distance(body.position, self.things[place[1]]) <= CLOSE

    def walking_steps(self, agent: int, target: int) -> int:
        """Count the steps from where an agent is to a room, or to a thing's side (0 where it is CLOSE)."""
        body = self.agents[agent]
        room = self.room_of(target)
        if room is None:
            raise BadInput(f"target: there is no thing {target}.", "Name a thing of this episode.")
        steps, position = self.layout.arrival(body.room, body.position, room)
        if target == room or self.is_close(Body(room, position, [], False), target):
            return steps
        return steps + beside(position, self.solid(target))[0]

    # ---------------------------------------------------------------- seeing

    def observe(self, agent: int) -> Observation:
        """Show an agent its room: containers, goal things, who is there, and what it was told."""
        body = self.agents[agent]
        seen = self._view(body.room)
        return Observation.model_construct(
            step=self.steps,
            agent=agent,
            room=body.room,
            position=body.position,
            hands=list(body.hands),
            seen=seen,
            others=[
                (other, it.room, list(it.hands))
                for other, it in enumerate(self.agents)
                if it.room == body.room and other != agent
            ],
            messages=[message for message in self._messages if message[0] != agent],
            rooms=self._room_names,
            may_send=not body.sent,
            near=[each.id for each in seen if self.is_close(body, each.id)],
        )

    def _watch(self) -> None:
        names, targets = self.episode.goal_names(), {goal.target for goal in self.episode.goals}
        self._wanted = [t.id for t in self.episode.things if t.category == "object" and t.name in names]
        self._shown: dict[int, list[int]] = {room: [] for room in self.layout.centers}
        for thing in self.episode.things:
            if thing.category == "container" or thing.id in targets:
                self._shown[self._furniture[thing.id]].append(thing.id)
        self._views: dict[int, list[Seen]] = {}
        self._count()

    def _changed(self, room: int) -> None:
        self._views.pop(room, None)
        self._count()

    def _carry(self, body: Body) -> None:
        if body.hands:
            self._views.clear()

    def _view(self, room: int) -> list[Seen]:
        if room not in self._views:
            things = [*self._shown[room], *(t for t in self._wanted if self.room_of(t) == room)]
            self._views[room] = [self._see(thing, room) for thing in things if not self.hidden(thing)]
        return self._views[room]

    def _see(self, thing: int, room: int) -> Seen:
        it, place = self.things[thing], self.places.get(thing)
        relation, holder = place or ("held by", self.holder(thing))
        return Seen(
            id=thing,
            name=it.name,
            category=it.category,
            room=room,
            holder=holder,
            relation=relation,
            is_open=thing in self.open if it.category == "container" else None,
            center=self.solid(thing).center,
        )


def metres_between(first: Point, second: Point) -> float:
    """Measure a straight line."""
    return math.dist(first, second)
