"""The household world: one low-level action per agent and step, by the rules measured on VirtualHome.

Where nothing was measured:
- a walk to a room ends behind the last door, what is left of its last step leading on to the room's centre;
- hands reach only what is in the same room;
- putting into a container that is shut succeeds: an agent with both hands full cannot open it, and its
  recorded counterparts put without opening;
- a message reaches every other agent.
"""

from collections.abc import Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from mneme.core.errors import BadInput
from mneme.environments.household.acting import AGENT_NAMES, SUCCESS, Action, ActionResult, Observation, Seen
from mneme.environments.household.episode import BoxedObject, Episode, Relation, Thing
from mneme.environments.household.layout import Box, Layout, distance, towards
from mneme.environments.household.state import Body, Changes, read_changes

if TYPE_CHECKING:
    from mneme.environments.household.play import Frame

__all__ = ["CLOSE", "HANDS", "MAX_SPEECH_CHARS", "Action", "ActionResult", "Observation", "Seen", "World"]

CLOSE = 1.5
"""Horizontal bounding-box distance in metres within which hands reach."""
MAX_SPEECH_CHARS = 500
HANDS = 2
HAND_HEIGHT = 1.0
"""The height of a held thing in metres; no rule uses it."""


class World:
    """Play an episode; deterministic by seed, also when restored in the middle."""

    LIMIT = 250

    def __init__(self, episode: Episode, state: Mapping[str, Any] | None = None, seed: int = 0) -> None:
        self.episode, self.seed, self.steps = episode, seed, 0
        self.layout = Layout(episode)
        self.things: dict[int, Thing] = self.layout.things
        self.agents = [Body(start.room, start.position, []) for start in episode.starts]
        self.open = set(episode.open)
        self.places: dict[int, tuple[Relation, int]] = dict(episode.places)
        self._moved: set[int] = set()
        self._messages: list[tuple[int, str]] = []
        if state is not None:
            changes = read_changes(state, episode)
            self.steps, self.seed, self.agents = changes.steps, changes.seed, changes.agents
            self._messages = changes.messages
            self.open.update(changes.opened)
            self.places.update(changes.moved)
            held = {thing for body in self.agents for thing in body.hands}
            self._moved = {*changes.moved, *held}
            self.places = {thing: place for thing, place in self.places.items() if thing not in held}
        self._rooms = {room.id: room.name for room in episode.rooms()}
        self._furniture = {t.id: episode.room_of(t.id) for t in episode.things if t.category != "object"}
        targets, names = {goal.target for goal in episode.goals}, episode.goal_names()
        self._shown: dict[int, list[int]] = {room: [] for room in self._rooms}
        for thing in episode.things:
            if thing.category == "container" or thing.id in targets:
                self._shown[self._furniture[thing.id]].append(thing.id)
        self._wanted = [t.id for t in episode.things if t.category == "object" and t.name in names]
        self._views: dict[int, list[Seen]] = {}
        self._count()

    def state(self) -> dict[str, Any]:
        """Return all changes since the start as plain JSON values."""
        changes = Changes(
            steps=self.steps,
            seed=self.seed,
            agents=self.agents,
            moved={thing: self.places[thing] for thing in sorted(self._moved) if thing in self.places},
            opened=sorted(self.open.difference(self.episode.open)),
            messages=self._messages,
        )
        return changes.model_dump(mode="json")

    # -- progress ------------------------------------------------------------------------------------------

    @property
    def progress(self) -> dict[str, int]:
        """Return for each goal predicate how many objects satisfy it, up to its count."""
        return dict(self._progress)

    @property
    def done(self) -> bool:
        """Return whether every goal is met."""
        return self._done

    def _count(self) -> None:
        goals, things = self.episode.goals, self.things
        places = [(self.places.get(thing), things[thing].name) for thing in self._wanted]
        self._progress = {
            goal.key: min(goal.count, places.count(((goal.relation, goal.target), goal.name)))
            for goal in goals
        }
        self._done = all(self._progress[goal.key] >= goal.count for goal in goals)

    # -- acting --------------------------------------------------------------------------------------------

    def step(self, actions: Sequence[Action]) -> list[ActionResult]:
        """Let every agent act once, agent 0 first; of two that touch one thing, a random one acts."""
        if len(actions) != len(self.agents):
            raise BadInput(f"actions: {len(actions)} for {len(self.agents)} agents.", "Give one action each.")
        self.steps += 1
        self._messages = []
        results = self._conflicts(actions)  # before anybody acts, since agent 0 would always be first
        results |= self._act_all({n: action for n, action in enumerate(actions) if n not in results})
        return [results[agent] for agent in range(len(actions))]

    def _act_all(self, actions: Mapping[int, Action]) -> dict[int, ActionResult]:
        return {agent: self._act(agent, action) for agent, action in actions.items()}

    def _conflicts(self, actions: Sequence[Action]) -> dict[int, ActionResult]:
        """Draw who acts if several agents touch the same thing; the others lose their step."""
        claims: dict[int, list[int]] = {}
        for agent, action in enumerate(actions):
            if action.kind not in ("walk", "send", "wait") and action.first is not None:
                claims.setdefault(action.first, []).append(agent)
        lost: dict[int, ActionResult] = {}
        for thing, agents in claims.items():
            if len(agents) > 1:
                # Drawn by seed and step, so that a restored world draws the same.
                lucky = Random(f"{self.seed}:{self.steps}:{thing}").choice(agents)  # noqa: S311
                too_late = ActionResult(ok=False, why=f"{AGENT_NAMES[lucky]} was first", forestalled=True)
                lost |= {each: too_late for each in agents if each != lucky}
                for each in agents:
                    self.agents[each].sent = False
        return lost

    def _act(self, agent: int, action: Action) -> ActionResult:
        body = self.agents[agent]
        sent, body.sent = body.sent, False  # an agent of CoELA writes no message right after another
        if action.kind == "wait":
            return SUCCESS
        if action.kind == "walk":
            why = self._walk(body, action.target)
        elif action.kind == "send":
            why = "a message was sent just now" if sent else ""
            if not sent:
                self._messages.append((agent, action.text[:MAX_SPEECH_CHARS]))
                body.sent = True
        else:
            why = self._forbidden(body, action)
            if not why:
                self._handle(body, action)
        return ActionResult(ok=False, why=why) if why else SUCCESS

    def _walk(self, body: Body, target: int | None) -> str:
        room = None if target is None else self.room_of(target)
        if room is None or target is None:
            return "there is no such place"
        if room != body.room:
            body.room, body.position = self.layout.towards_room(body.room, body.position, room)
        elif target != room:
            body.position = towards(body.position, self.solid(target))
        return ""

    def _forbidden(self, body: Body, action: Action) -> str:
        """Return the reason why something cannot be touched; empty if it can."""
        kind, puts = action.kind, action.kind in ("put_on", "put_in")
        thing, needed = (action.object, "object") if kind == "grab" else (action.target, "container")
        needed = "surface" if kind == "put_on" else needed
        if puts and action.object not in body.hands:
            return "it is not in hand"
        if thing not in self.things or self.things[thing].category != needed:
            return "that cannot be taken" if kind == "grab" else f"that is no {needed}"
        reasons = {
            "it is open already": kind == "open" and thing in self.open,
            "it is in somebody's hands": kind == "grab" and thing not in self.places,
            "no hand is free": not puts and len(body.hands) >= HANDS,
            "it is in a container that is not open": kind == "grab" and self.hidden(thing),
            "it is too far away": not self.is_close(body, thing),
        }
        return next((why for why, holds in reasons.items() if holds), "")

    def _handle(self, body: Body, action: Action) -> None:
        thing, target = action.object, action.target
        if action.kind == "open" and target is not None:
            self.open.add(target)
        elif action.kind == "grab" and thing is not None:
            self.places.pop(thing, None)
            self._moved.add(thing)
            body.hands.append(thing)
        elif thing is not None and target is not None:
            body.hands = [held for held in body.hands if held != thing]
            self.places[thing] = ("on" if action.kind == "put_on" else "inside", target)
        self._views.pop(body.room, None)  # hands change only what is seen in their room
        self._count()

    def follow(self, frame: "Frame") -> None:
        """Apply a step that was played elsewhere: its positions, and the results of handling things."""
        self.steps = frame.step
        for agent, (action, outcome) in enumerate(zip(frame.actions, frame.outcomes, strict=True)):
            body = self.agents[agent]
            body.room, body.position = frame.rooms[agent], frame.positions[agent]
            if outcome.ok and action.kind in ("open", "grab", "put_on", "put_in"):
                self._handle(body, action)
            body.hands = list(frame.hands[agent])

    # -- where things are ----------------------------------------------------------------------------------

    def holder(self, thing: int) -> int | None:
        """Return the agent that holds a thing; None if nobody does."""
        return next((agent for agent, body in enumerate(self.agents) if thing in body.hands), None)

    def room_of(self, thing: int) -> int | None:
        """Return the room of a thing; None if there is no such thing."""
        if thing in self._furniture:
            return self._furniture[thing]
        if thing in self.places:
            return self._furniture[self.places[thing][1]]
        agent = self.holder(thing)
        return None if agent is None else self.agents[agent].room

    def solid(self, thing: int) -> BoxedObject:
        """Return the box that stands for a thing: its own, its new holder's, or one at its bearer's place."""
        if thing not in self._moved:
            return self.things[thing]
        if thing in self.places:  # where on its holder it was put is not known
            return self.things[self.places[thing][1]]
        agent = self.holder(thing)
        assert agent is not None, "what is nowhere is in somebody's hands"
        x, z = self.agents[agent].position
        return Box((x, HAND_HEIGHT, z), self.things[thing].size)

    def hidden(self, thing: int) -> bool:
        """Return whether a thing is inside a container that is not open."""
        place = self.places.get(thing)
        if place is None or place[0] == "on":
            return False
        return place[1] not in self.open and place[1] not in self._rooms  # a room hides nothing

    def is_close(self, body: Body, thing: int) -> bool:
        """Return whether hands reach a thing: it is within CLOSE, or in a container that is."""
        if self.room_of(thing) != body.room:
            return False
        if distance(body.position, self.solid(thing)) <= CLOSE:
            return True
        relation, holder = self.places.get(thing, ("on", thing))
        # What stands in a room is "inside" it, too, and that is no container whose reach would count.
        return relation == "inside" and holder not in self._rooms and self.is_close(body, holder)

    # -- seeing --------------------------------------------------------------------------------------------

    def observe(self, agent: int) -> Observation:
        """Return what an agent sees in its room (containers, goal things, agents) and the messages it got."""
        body = self.agents[agent]
        here = [number for number, each in enumerate(self.agents) if each.room == body.room]
        held = [self._see(thing, body.room) for each in here for thing in self.agents[each].hands]
        view = self._view(body.room)
        others = [(each, body.room, list(self.agents[each].hands)) for each in here if each != agent]
        return Observation(**self._situation(agent), seen=view + held, others=others)

    def _situation(self, agent: int) -> dict[str, Any]:
        """Return what an agent knows without looking: its place, its hands, and its messages."""
        body = self.agents[agent]
        return {
            "step": self.steps,
            "agent": agent,
            "room": body.room,
            "position": body.position,
            "hands": list(body.hands),
            "messages": [message for message in self._messages if message[0] != agent],
            "rooms": self._rooms,
            "may_send": not body.sent,
        }

    def _view(self, room: int) -> list[Seen]:
        """Return what is visible in a room, computed again after a hand has changed it."""
        if room not in self._views:
            loose = [thing for thing in self._wanted if thing in self.places and self.room_of(thing) == room]
            self._views[room] = [
                self._see(thing, room) for thing in (*self._shown[room], *loose) if not self.hidden(thing)
            ]
        return self._views[room]

    def _see(self, thing: int, room: int) -> Seen:
        it, box = self.things[thing], self.solid(thing)
        place = self.places.get(thing)
        return Seen(
            id=thing,
            name=it.name,
            category=it.category,
            room=room,
            holder=place[1] if place else self.holder(thing),
            relation=place[0] if place else "held by",
            is_open=thing in self.open if it.category == "container" else None,
            center=box.center,
            size=box.size,
        )
