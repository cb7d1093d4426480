"""The household for agents with eyes: the same rules, but an agent sees what is in its field of view.

Besides the actions of the symbolic setting an agent can turn by 30 degrees to its left, which takes a step,
as in CoELA's visual setting. An agent looks where it walks, and at what it handles. A walk to the room that
it is in leads to the middle of the room, where it can look round.

Frames are perceived from segments and depth, or by a vision model, which may be wrong: what hands touch is
then identified, so that a wrong answer does not last.
"""

import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from mneme.environments.household.acting import Action, ActionResult, Observation
from mneme.environments.household.episode import BoxedObject, Episode
from mneme.environments.household.layout import Point, along, flat
from mneme.environments.household.play import Frame
from mneme.environments.household.state import Body
from mneme.environments.household.visual.camera import FIELD, Pose, View, render
from mneme.environments.household.visual.perception import Memory, Percept, Perception, RecognisedBox
from mneme.environments.household.visual.recognition import (
    PICTURE,
    Picture,
    Recognise,
    Recognition,
    classes_of,
    picture_of,
)
from mneme.environments.household.visual.solids import Solid, movable, people, places_of, still_life
from mneme.environments.household.world import World

TURN_DEGREES = 30.0
"""Degrees of a turn."""
SIZE = 128
"""Pixels of a frame, each way."""
ARRIVAL_METRES = 0.05
"""Metres from the middle of a room that count as being there."""


class SeeingWorld(World):
    """Play an episode with eyes; deterministic by seed, also when restored in the middle."""

    def __init__(
        self,
        episode: Episode,
        state: Mapping[str, Any] | None = None,
        seed: int = 0,
        *,
        size: int = 0,
        recognise: Recognise | None = None,
    ) -> None:
        given = dict(state) if state is not None else None
        eyes = given.pop("eyes", []) if given is not None else []
        super().__init__(episode, given, seed)
        self.size = size or (PICTURE if recognise else SIZE)
        self._recognise = recognise
        self._classes = classes_of(episode)
        self.eyes = [Memory.model_validate(each) for each in eyes] or [
            Memory(heading=_bearing(body.position, self.layout.centers[body.room]) or 0.0)
            for body in self.agents
        ]
        self._still = still_life(episode)
        self._furnished = {t.id: t for t in episode.things if t.category not in ("room", "door")}
        self._furnishing = (self._furnished, episode.rooms())
        self._told_of = {*self.shown(), *self.wanted()}
        self._movable: list[Solid] | None = None

    def state(self) -> dict[str, Any]:
        """Return all changes since the start as plain JSON values."""
        return {**super().state(), "eyes": [each.model_dump(mode="json") for each in self.eyes]}

    # -- acting --------------------------------------------------------------------------------------------

    def step(self, actions: Sequence[Action]) -> list[ActionResult]:
        """Let every agent act once; each then looks where it went, or at what it has handled."""
        before = [body.position for body in self.agents]
        results = super().step(actions)
        for agent, action in enumerate(actions):
            self._face(agent, action, before[agent])
        return results

    def follow(self, frame: Frame) -> None:
        """Apply a step that was played elsewhere, and turn the eyes accordingly."""
        before = [body.position for body in self.agents]
        super().follow(frame)
        for agent, action in enumerate(frame.actions):
            self._face(agent, action, before[agent])

    def _act(self, agent: int, action: Action) -> ActionResult:
        if action.kind == "turn":
            self.agents[agent].sent = False
            return ActionResult(ok=True)
        thing = action.target if action.kind == "open" else action.object
        touches = action.kind in ("open", "grab") and thing in self.things
        if touches and thing is not None and self.is_close(self.agents[agent], thing):
            name = self.things[thing].name  # what the vision model mistook is known by touch
            if taken := self.eyes[agent].touch(thing, name):
                return ActionResult(ok=False, why=f"it is a {name}, not a {taken}")
        return super()._act(agent, action)

    def _handle(self, body: Body, action: Action) -> None:
        super()._handle(body, action)
        self._movable = None

    def _walk(self, body: Body, target: int | None) -> str:
        if target != body.room or target is None:
            return super()._walk(body, target)
        body.position = along(body.position, self.layout.centers[body.room], 1.0)
        return ""

    def _face(self, agent: int, action: Action, before: Point) -> None:
        """Turn the eyes to the thing of the action if it is in the room, else in walking direction."""
        eyes, body = self.eyes[agent], self.agents[agent]
        if action.kind == "turn":
            eyes.heading = (eyes.heading + TURN_DEGREES) % 360
        if action.kind in ("turn", "send", "wait"):
            return
        thing = action.object if action.kind == "grab" else action.target
        is_here = thing is not None and thing not in self._rooms and self.room_of(thing) == body.room
        there = _bearing(body.position, flat(self.solid(thing).center)) if is_here and thing else None
        there = _bearing(before, body.position) if there is None else there
        # At the same point there is no direction, and the eyes stay as they are.
        eyes.heading = eyes.heading if there is None else there

    # -- seeing --------------------------------------------------------------------------------------------

    def look(self, agent: int) -> View:
        """Render the view of an agent."""
        if self._movable is None:
            self._movable = movable(self)
        return render([*self._still, *self._movable, *people(self, agent)], self.pose(agent), self.size)

    def picture(self, view: View) -> Picture:
        """Return a view as a picture for the vision model."""
        return picture_of(view, self._furnished, len(self.agents), self._classes)

    def pose(self, agent: int) -> Pose:
        """Return the position and the direction of an agent's eyes."""
        body = self.agents[agent]
        floor = self.things[body.room]
        return Pose(body.position, self.eyes[agent].heading, floor.center[1] - floor.size[1] / 2)

    def observe(self, agent: int) -> Observation:
        """Return what an agent perceives in its frame, what it holds, and the messages that it got."""
        body, eyes, percept = self.agents[agent], self.eyes[agent], self._perceived(agent)
        return Observation(
            **self._situation(agent),
            seen=percept.seen + [self._see(thing, body.room) for thing in body.hands],
            others=[(other, self.agents[other].room, hands) for other, hands in percept.people.items()],
            looked=eyes.looked(body.room),
            within_reach=[thing for thing in eyes.boxes if self.is_close(body, thing)],
            missing=percept.missing,
        )

    def shown(self) -> list[int]:
        """List the containers and targets, which agents are told of when they see them."""
        return [thing for things in self._shown.values() for thing in things]

    def wanted(self) -> list[int]:
        """List the things of the goals' classes."""
        return list(self._wanted)

    def drawn(self, thing: int) -> BoxedObject:
        """Return the box in which an object that nobody holds is drawn."""
        return places_of(self).get(thing, self.things[thing])

    def _perceived(self, agent: int) -> Percept:
        """Perceive once a step: another look at the same frame changes nothing."""
        eyes = self.eyes[agent]
        if eyes.at != self.steps or eyes.percept is None:
            if self._recognise is None:
                percept = Perception(self._view_of(agent), eyes, *self._furnishing).of(len(self.agents))
                percept.seen = [each for each in percept.seen if each.id in self._told_of]
                eyes.percept, eyes.at = percept, self.steps
            else:
                self._recognise_all(self._recognise)
        assert eyes.percept is not None, "everybody perceives at each step"
        return eyes.percept

    def _view_of(self, agent: int) -> View:
        self.eyes[agent].look(self.agents[agent].room, FIELD)
        return self.look(agent)

    def _recognise_all(self, recognise: Recognise) -> None:
        """Have the new frames of all agents recognised together; an unchanged picture keeps its answer."""
        agents = range(len(self.agents))
        views = [self._view_of(agent) for agent in agents]
        pictures = [self.picture(view) for view in views]
        # An agent that waits sees the same frame, which is not paid for again.
        marks = [sha256(picture.png).hexdigest()[:16] for picture in pictures]
        new = [n for n in agents if pictures[n].boxes and self.eyes[n].frame != marks[n]]
        said: dict[int, Sequence[RecognisedBox] | None]
        said = {n: [] if not pictures[n].boxes else self.eyes[n].said for n in agents if n not in new}
        said |= zip(new, recognise([pictures[n] for n in new]) if new else (), strict=True)
        for n in agents:
            eyes, known = self.eyes[n], said[n]
            # Without a usable answer the frame is shown again at the next step.
            eyes.frame, eyes.said = ("", []) if known is None else (marks[n], list(known))
            recognition = Recognition(views[n], eyes, *self._furnishing)
            eyes.percept = recognition.of_picture(pictures[n], known, len(self.agents))
            eyes.at = self.steps


def _bearing(start: Point, end: Point) -> float | None:
    """Return the direction from one point to another in degrees from x towards z; none for the same point."""
    if math.dist(start, end) < ARRIVAL_METRES:
        return None
    return math.degrees(math.atan2(end[1] - start[1], end[0] - start[0])) % 360
