"""Estimates of the number of steps of a walk, from rooms, doors and positions alone.

They follow the world's walking rules, in steps of one metre.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

from mneme.environments.household.layout import REACH_METRES, STRAIGHT, Doors, Point, between_doors

Corner = tuple[int, float, float]
"""A room's id, and a position in it in metres (x, z)."""

REACH_TOLERANCE = 0.2
"""Metres beyond the reach of a walk from which one can act without walking."""


class Place(Protocol):
    """Something that stands or lies somewhere: its centre and its extent on the floor, in metres."""

    id: int
    room: int
    x: float
    z: float
    width: float
    depth: float

    @property
    def corner(self) -> Corner: ...


class KnownApartment(Protocol):
    """What is known of an apartment: its doors, and its rooms."""

    @property
    def plan(self) -> Doors: ...

    @property
    def rooms(self) -> Sequence[Place]: ...


def steps_to_act(known: KnownApartment, start: Corner, place: Place) -> int:
    """Estimate the steps to come within reach of a place and act on it once."""
    last, before = _last_leg(known.plan, start, place.corner)
    x = max(0.0, abs(last[0] - place.x) - place.width / 2)
    z = max(0.0, abs(last[1] - place.z) - place.depth / 2)
    rest = math.hypot(x, z)
    if before == 0 and rest <= REACH_METRES + REACH_TOLERANCE:
        return 1
    return 1 + math.ceil(STRAIGHT * before) + max(0, math.ceil(rest - REACH_METRES))


def steps_into(known: KnownApartment, start: Corner, room: Place) -> int:
    """Estimate the steps until an agent is inside a room."""
    if start[0] == room.id:
        return 1
    return max(1, math.ceil(STRAIGHT * _last_leg(known.plan, start, (room.id, room.x, room.z))[1]))


def steps_to_visit(known: KnownApartment, start: Corner, place: Place) -> int:
    """Estimate the steps of a visit: the way, and acting or looking once."""
    into = place.id in {room.id for room in known.rooms}
    return steps_into(known, start, place) if into else steps_to_act(known, start, place)


def steps_if_known(known: KnownApartment, start: Corner, place: Place) -> int:
    """Estimate the steps to act on a place; 0 if its room is not known."""
    return steps_to_act(known, start, place) if place.room in {room.id for room in known.rooms} else 0


def _last_leg(plan: Doors, start: Corner, end: Corner) -> tuple[Point, float]:
    """Return where the last straight leg begins, and the metres before it; infinity where no way leads."""
    if start[0] == end[0]:
        return start[1:], 0.0
    between = between_doors(plan)
    found = ((0.0, 0.0), math.inf, math.inf)
    for last in _doors_of(plan, end[0]):  # each pair of a first and a last door, joined by the shortest way
        rest = math.dist(plan[last][2:], end[1:])
        for first in _doors_of(plan, start[0]):
            before = math.dist(start[1:], plan[first][2:]) + between[first][last]
            if before + rest < found[2]:
                found = (plan[last][2:], before, before + rest)
    return found[0], found[1]


@lru_cache(maxsize=4096)
def _doors_of(plan: Doors, room: int) -> list[int]:
    return [number for number, door in enumerate(plan) if room in door[:2]]
