"""From segments and depth to what an agent sees: boxes around points, what stands on what, what is gone.

What the segments tell besides their shape (the number and the class of a thing, and whether a container's door
is shut) is the auxiliary observation, as in CoELA's setting. Places, sizes and what holds what are worked out.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from mneme.environments.household.acting import Seen
from mneme.environments.household.episode import Relation, Thing
from mneme.environments.household.layout import Box
from mneme.environments.household.visual.camera import View
from mneme.environments.household.visual.solids import person

PIXELS = 3
"""Pixels from which on something counts as seen."""
SLACK = 0.15
"""Metres by which boxes around points may be wrong."""
HANDS_REACH = 0.6
"""Metres from a person's middle within which a thing at hand height is held."""
HAND_HEIGHTS = (0.7, 1.4)
SECTORS = 12
"""Parts of the horizon, of 30 degrees each."""

Bounds = tuple[float, float, float, float, float, float]
"""The lowest x, y, z and the highest."""


class Memory(BaseModel):
    """What an agent's eyes keep: where it looks, boxes of what it saw, and how much of each room it has seen."""

    heading: float = Field(0.0, description="Degrees from x towards z.")
    boxes: dict[int, Bounds] = Field({}, description="Metres; of furniture all that was seen of it.")
    sectors: dict[int, int] = Field({}, description="By room, a bit for each sector that was looked at there.")

    def looked(self, room: int) -> bool:
        """Say whether the agent has looked all round in a room."""
        return self.sectors.get(room, 0) == (1 << SECTORS) - 1

    def look(self, room: int, field: float) -> None:
        """Note the sectors that are whole within the field of view."""
        width = 360 / SECTORS
        for sector in range(SECTORS):
            aside = abs((sector * width + width / 2 - self.heading + 180) % 360 - 180)
            if aside + width / 2 <= field / 2 + 1e-6:
                self.sectors[room] = self.sectors.get(room, 0) | 1 << sector


class Percept(BaseModel):
    """What one frame shows."""

    seen: list[Seen]
    people: dict[int, tuple[tuple[float, float], list[int]]] = Field(
        description="Of each agent in sight, where it stands and what it holds."
    )
    missing: list[int] = Field(description="Things that were remembered where now nothing is.")


def perceive(
    view: View, memory: Memory, things: Mapping[int, Thing], rooms: Sequence[Thing], agents: int
) -> Percept:
    """Work out what a frame shows, and keep the boxes in memory.

    Of `things` the number, class and kind are read, never the place; of `rooms` the outline of the floor.
    """
    points = {owner: cloud for owner, cloud in view.points().items() if len(cloud) >= PIXELS}
    present = [owner for owner in points if owner in things]
    for owner in present:
        memory.boxes[owner] = _remembered(things[owner], memory.boxes.get(owner), _bounds(points[owner]))
    people = {n: _standing(points[person(n)]) for n in range(agents) if person(n) in points}
    shut = {*np.unique(view.segments[view.doors]).tolist()}
    seen = [_seen(things[owner], shut, memory, things, people, rooms) for owner in present]
    held = {n: [each.id for each in seen if each.relation == "held by" and each.holder == n] for n in people}
    return Percept(
        seen=seen,
        people={n: (where, held[n]) for n, where in people.items()},
        missing=_missing(view, memory, things, present),
    )


def _bounds(points: NDArray[np.float32]) -> Bounds:
    low, high = points.min(axis=0), points.max(axis=0)
    a, b, c, d, e, f = (round(float(value), 2) for value in (*low, *high))
    return a, b, c, d, e, f


def _remembered(thing: Thing, before: Bounds | None, now: Bounds) -> Bounds:
    """Return all that was seen of furniture, and of what can be carried what is seen now."""
    if before is None or thing.category == "object":
        return now
    a, b, c = (min(x, y) for x, y in zip(before[:3], now[:3], strict=True))
    d, e, f = (max(x, y) for x, y in zip(before[3:], now[3:], strict=True))
    return a, b, c, d, e, f


def _standing(points: NDArray[np.float32]) -> tuple[float, float]:
    x, _, z = points.mean(axis=0)
    return float(x), float(z)


def _seen(
    thing: Thing,
    shut: Collection[int],
    memory: Memory,
    things: Mapping[int, Thing],
    people: Mapping[int, tuple[float, float]],
    rooms: Sequence[Thing],
) -> Seen:
    box = box_of(memory.boxes[thing.id])
    room = _room(box, rooms)
    holder, relation = _held(box, people) or _resting(box, memory, things) or (room, "inside")
    is_furniture = thing.category != "object"
    return Seen(
        id=thing.id,
        name=thing.name,
        category=thing.category,
        room=room,
        holder=room if is_furniture else holder,
        relation="inside" if is_furniture else relation,
        is_open=thing.id not in shut if thing.category == "container" else None,
        center=box.center,
        size=box.size,
    )


def box_of(bounds: Bounds) -> Box:
    """Return bounds as a box."""
    low, high = np.array(bounds[:3]), np.array(bounds[3:])
    x, y, z = (float(value) for value in (low + high) / 2)
    width, height, depth = (float(value) for value in high - low)
    return Box((x, y, z), (width, height, depth))


def _room(box: Box, rooms: Sequence[Thing]) -> int:
    """Return the room whose floor is below a thing, or the nearest."""

    def outside(room: Thing) -> float:
        return max(abs(box.center[axis] - room.center[axis]) - room.size[axis] / 2 for axis in (0, 2))

    return min(rooms, key=outside).id


def _held(box: Box, people: Mapping[int, tuple[float, float]]) -> tuple[int, str] | None:
    x, y, z = box.center
    if not HAND_HEIGHTS[0] <= y <= HAND_HEIGHTS[1]:
        return None
    near = {n: float(np.hypot(x - at[0], z - at[1])) for n, at in people.items()}
    bearer = min(near, key=lambda n: near[n], default=None)
    return None if bearer is None or near[bearer] > HANDS_REACH else (bearer, "held by")


def _resting(box: Box, memory: Memory, things: Mapping[int, Thing]) -> tuple[int, Relation] | None:
    """Return what a thing is inside of, or else what it stands on: the top nearest to its underside."""
    bottom = box.center[1] - box.size[1] / 2
    found: list[tuple[float, int, Relation]] = []
    for owner, bounds in memory.boxes.items():
        kind, (low, high) = things[owner].category, (bounds[1], bounds[4])
        if kind == "object" or not _over(box, bounds):
            continue
        if kind == "container" and low - SLACK <= box.center[1] <= high:
            found.append((-1.0, owner, "inside"))
        elif kind == "surface" and bottom >= low - SLACK:
            found.append((max(0.0, bottom - high), owner, "on"))
    best = min(found, default=None)
    return None if best is None or best[0] > 2 * SLACK else (best[1], best[2])


def _over(box: Box, bounds: Bounds) -> bool:
    x, _, z = box.center
    return bounds[0] - SLACK <= x <= bounds[3] + SLACK and bounds[2] - SLACK <= z <= bounds[5] + SLACK


def _missing(
    view: View, memory: Memory, things: Mapping[int, Thing], present: Iterable[int]
) -> list[int]:
    """Return what could be carried and is not where it was, though the ray to there goes on behind it."""
    here = {*present}
    gone = []
    for owner, bounds in memory.boxes.items():
        if things[owner].category != "object" or owner in here:
            continue
        pixel = view.pixel_of(box_of(bounds).center)
        if pixel is not None and view.depth[pixel[0], pixel[1]] > pixel[2] + 2 * SLACK:
            gone.append(owner)
    for owner in gone:
        del memory.boxes[owner]
    return gone
