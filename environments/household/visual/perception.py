"""From segments and depth to an observation: boxes around points, supports and holders, missing objects.

What the segments tell besides their shape (the number and the class of a thing, and whether a container's
door is shut) is the auxiliary observation, as in CoELA's visual setting. Places, sizes and what holds what
are worked out.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, Field

from mneme.environments.household.acting import Seen
from mneme.environments.household.episode import Kind, Thing
from mneme.environments.household.layout import Box, Point
from mneme.environments.household.visual.camera import View
from mneme.environments.household.visual.solids import person

PIXELS = 3
"""Minimum number of pixels of an object that counts as seen."""
SLACK = 0.15
"""Tolerance in metres of boxes around points."""
PILE = 1.2
"""Maximum metres above furniture at which an object still rests on others there."""
HANDS_REACH = 0.6
"""Maximum metres from a person's centre at which an object at hand height is held."""
HAND_HEIGHTS = (0.7, 1.4)
SECTORS = 12
"""Parts of the horizon, of 30 degrees each."""

Bounds = tuple[float, float, float, float, float, float]
"""The lowest x, y, z and the highest."""
Held = tuple[str, int]
"""How an object is held, and by which object or person."""


class RecognisedBox(BaseModel):
    """A recognised box of a picture: class, whether open, how it is held; `holder` is the holder's box."""

    what: str
    is_open: bool | None = None
    relation: Literal["", "on", "inside", "held by"] = ""
    holder: int | None = None


class Percept(BaseModel):
    """Content of one frame."""

    seen: list[Seen]
    people: dict[int, list[int]] = Field(description="Of each agent in sight, what it holds.")
    missing: list[int] = Field(description="Things that were remembered where now nothing is.")
    blind: bool = Field(False, description="Whether who was to recognise it gave no usable answer.")


class Memory(BaseModel):
    """Visual memory of an agent: its direction, the objects it saw, and how much of each room."""

    heading: float = Field(0.0, description="Degrees from x towards z.")
    boxes: dict[int, Bounds] = Field({}, description="Metres; of furniture all that was seen of it.")
    sectors: dict[int, int] = Field({}, description="By room, a bit for each sector looked at there.")
    names: dict[int, str] = Field({}, description="What things were taken for by whoever recognises.")
    felt: list[int] = Field([], description="What hands have touched: what it is, is known from then on.")
    frame: str = Field("", description="The digest of the picture that was recognised last.")
    said: list[RecognisedBox] = Field([], description="What was recognised in it, by box.")
    at: int = Field(-1, description="The step at which the percept was perceived.")
    percept: Percept | None = Field(None, description="What was perceived last.")

    def looked(self, room: int) -> bool:
        """Return whether the agent has looked all round in a room."""
        return self.sectors.get(room, 0) == (1 << SECTORS) - 1

    def look(self, room: int, field: float) -> None:
        """Note the sectors that are whole within the field of view, in degrees."""
        width = 360 / SECTORS
        for sector in range(SECTORS):
            aside = abs((sector * width + width / 2 - self.heading + 180) % 360 - 180)
            if aside + width / 2 <= field / 2 + 1e-6:  # the sector's farther edge is in view, too
                self.sectors[room] = self.sectors.get(room, 0) | 1 << sector

    def touch(self, thing: int, name: str) -> str:
        """Identify an object by touch; return what it was taken for, if that was wrong."""
        if thing not in self.felt:
            self.felt.append(thing)
        taken = self.names.get(thing, name)
        return "" if taken == name else taken

    def undone(self) -> list[int]:
        """Return, once, the objects that touch has identified as something else."""
        wrong = [thing for thing in self.felt if thing in self.names]
        for thing in wrong:
            del self.names[thing]
        return wrong


class Perception:
    """One processed frame; the boxes of visible objects are kept in memory.

    Of `things` the number, class and kind are read, never the place; of `rooms` the outline of the floor.
    """

    def __init__(
        self, view: View, memory: Memory, things: Mapping[int, Thing], rooms: Sequence[Thing]
    ) -> None:
        self._view, self._memory, self._things, self._rooms = view, memory, things, rooms
        points = view.points()
        self._present = points.keys()
        self._points = {owner: each for owner, each in points.items() if len(each) >= PIXELS}
        self._shut = {*np.unique(view.segments[view.doors]).tolist()}

    def of(self, agents: int) -> Percept:
        """Return the percept of a frame in which so many agents may be visible."""
        standing: dict[int, Point] = {}
        for number in range(agents):
            if (points := self._points.get(person(number))) is not None:
                x, _, z = points.mean(axis=0)
                standing[number] = float(x), float(z)
        present = [owner for owner in self._points if owner in self._things]
        for owner in present:
            self._remember(owner)
        seen = []
        for thing in (self._things[owner] for owner in present):
            box, is_container = box_of(self._memory.boxes[thing.id]), thing.category == "container"
            held = _in_hand(box, standing) or self._resting(box) if thing.category == "object" else None
            is_open = thing.id not in self._shut if is_container else None
            seen.append(self._as_seen(thing.id, thing.name, thing.category, held, is_open))
        people: dict[int, list[int]] = {number: [] for number in standing}
        for each in seen:
            if each.relation == "held by" and each.holder is not None:
                people[each.holder].append(each.id)
        return Percept(seen=seen, people=people, missing=self._missing())

    def _remember(self, owner: int) -> None:
        """Keep all that was seen so far of furniture, but of a portable object what is visible now."""
        low, high = self._points[owner].min(axis=0), self._points[owner].max(axis=0)
        before = self._memory.boxes.get(owner)
        # A part of a table is seen from each side; a cup may have moved since.
        if before is not None and self._things[owner].category != "object":
            low, high = np.minimum(low, before[:3]), np.maximum(high, before[3:])
        a, b, c, d, e, f = (round(float(value), 2) for value in (*low, *high))
        self._memory.boxes[owner] = (a, b, c, d, e, f)

    def _as_seen(
        self, thing: int, name: str, category: Kind, held: Held | None, is_open: bool | None
    ) -> Seen:
        """Return an object with its place; without a holder, it is inside its room."""
        box = box_of(self._memory.boxes[thing])
        room = self._room(box)
        relation, holder = held or ("inside", room)
        return Seen.model_validate(
            {
                "id": thing,
                "name": name,
                "category": category,
                "room": room,
                "relation": relation,
                "holder": holder,
                "is_open": is_open,
                "center": box.center,
                "size": box.size,
            }
        )

    def _room(self, box: Box) -> int:
        """Return the room whose floor is below an object, or the nearest."""

        def outside(room: Thing) -> float:
            return max(abs(box.center[axis] - room.center[axis]) - room.size[axis] / 2 for axis in (0, 2))

        return min(self._rooms, key=outside).id

    def _resting(self, box: Box) -> Held | None:
        """Return the container of an object, or else its support, also with others in between."""
        bottom = box.center[1] - box.size[1] / 2
        found: list[tuple[float, str, int]] = []
        for owner, bounds in self._memory.boxes.items():
            kind, (low, high) = self._things[owner].category, (bounds[1], bounds[4])
            x_over, z_over = (
                bounds[axis] - SLACK <= box.center[axis] <= bounds[axis + 3] + SLACK for axis in (0, 2)
            )
            if kind == "object" or not (x_over and z_over):
                continue
            if kind == "container" and low - SLACK <= box.center[1] <= high:
                found.append((-1.0, "inside", owner))  # before any surface
            elif kind == "surface" and bottom >= low - SLACK:
                found.append((max(0.0, bottom - high), "on", owner))
        apart, relation, holder = min(found, default=(float("inf"), "", 0))
        return None if apart > PILE else (relation, holder)

    def _missing(self) -> list[int]:
        """Return the portable objects that are not where they were, though nothing hides that place."""
        gone = []
        for owner, bounds in self._memory.boxes.items():
            if self._things[owner].category != "object" or owner in self._present:
                continue
            box = box_of(bounds)
            # Outside of the frame it is infinitely far, so that nothing there is missed.
            row, column, metres = self._view.pixel_of(box.center) or (0, 0, math.inf)
            # Seen edgeways, too, it would fill enough pixels.
            pixels = len(self._view.depth) / (2 * metres) if metres else math.inf  # for each metre there
            is_large = max(box.size) * min(box.size) * pixels**2 >= 2 * PIXELS
            if self._view.depth[row, column] > metres and is_large:
                gone.append(owner)
        for owner in gone:
            del self._memory.boxes[owner]
        return gone


def box_of(bounds: Bounds) -> Box:
    """Return bounds as a box."""
    x, y, z = ((low + high) / 2 for low, high in zip(bounds[:3], bounds[3:], strict=True))
    width, height, depth = (high - low for low, high in zip(bounds[:3], bounds[3:], strict=True))
    return Box((x, y, z), (width, height, depth))


def _in_hand(box: Box, standing: Mapping[int, Point]) -> Held | None:
    """Return the holder of an object at hand height: the nearest person, if near enough."""
    x, y, z = box.center
    if not HAND_HEIGHTS[0] <= y <= HAND_HEIGHTS[1]:
        return None
    near = [(math.dist((x, z), at), n) for n, at in standing.items()]
    apart, bearer = min(near, default=(math.inf, 0))
    return ("held by", bearer) if apart <= HANDS_REACH else None
