"""Floor plans for generated apartments: rectangles that share walls, with doors in them."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from mneme.environments.household.layout import Point

LARGE = (6.5, 8.5)
SMALL = (4.5, 6.0)
"""Sides in metres; C-WAH's kitchen and living room measure 8, its bedroom and bathroom 5.5."""
SIDES = {"kitchen": LARGE, "livingroom": LARGE}
ROOM_NAMES = ("kitchen", "livingroom", "bedroom", "bathroom", "homeoffice", "diningroom")
MIN_ROOMS, MAX_ROOMS = 4, len(ROOM_NAMES)
DOOR = 0.93
MIN_SHARED_WALL = 1.6
"""Metres of wall that two rooms must share for a door between them."""
PLAN_TRIES = 200


class Room(NamedTuple):
    """A rectangle on the floor, in metres."""

    name: str
    x: float
    z: float
    width: float
    depth: float

    @property
    def center(self) -> Point:
        """Return the centre."""
        return self.x + self.width / 2, self.z + self.depth / 2


class Door(NamedTuple):
    """A door between two rooms, named by their numbers."""

    first: int
    second: int
    center: Point


def draw_plan(rooms: int, chance: Random) -> tuple[list[Room], list[Door]]:
    """Place rooms that do not overlap; each has one door to an earlier room, as in C-WAH (a tree)."""
    # The first four are in each apartment: the goals' targets stand in two of them.
    names = [*ROOM_NAMES[:MIN_ROOMS], *chance.sample(ROOM_NAMES[MIN_ROOMS:], rooms - MIN_ROOMS)]
    chance.shuffle(names)
    plan: list[Room] = []
    doors: list[Door] = []
    for name in names:
        if plan:
            against, room = _attach(name, plan, chance)
            wall = _shared(plan[against], room)
            assert wall is not None, "rooms are attached along a wall"
            (x, z), (to_x, to_z) = wall
            length = max(to_x - x, to_z - z)
            share = chance.uniform(DOOR / 2, length - DOOR / 2) / length
            doors.append(
                Door(against, len(plan), (round(x + share * (to_x - x), 2), round(z + share * (to_z - z), 2)))
            )
            plan.append(room)
        else:
            plan.append(Room(name, 0.0, 0.0, *_sides(name, chance)))
    return plan, doors


def _sides(name: str, chance: Random) -> tuple[float, float]:
    low, high = SIDES.get(name, SMALL)
    return round(chance.uniform(low, high), 2), round(chance.uniform(low, high), 2)


def _attach(name: str, plan: Sequence[Room], chance: Random) -> tuple[int, Room]:
    """Place a room against a wall of an earlier one, where it fits."""
    for _ in range(PLAN_TRIES):
        against = chance.randrange(len(plan))
        room = _beside(name, plan[against], chance)
        common = (_common(room, other) for other in plan)
        # Walls that touch share no floor; 1e-6 is for their rounding.
        if not any(right - left > 1e-6 and high - low > 1e-6 for left, right, low, high in common):
            return against, room
    # East of the easternmost wall there is always room.
    outermost = max(range(len(plan)), key=lambda number: plan[number].x + plan[number].width)
    wall = plan[outermost]
    return outermost, Room(name, wall.x + wall.width, wall.z, *_sides(name, chance))


def _beside(name: str, wall: Room, chance: Random) -> Room:
    width, depth = _sides(name, chance)
    side = chance.choice("nesw")
    if side in "ns":
        x = round(chance.uniform(wall.x - width + MIN_SHARED_WALL, wall.x + wall.width - MIN_SHARED_WALL), 2)
        return Room(name, x, wall.z + wall.depth if side == "n" else wall.z - depth, width, depth)
    z = round(chance.uniform(wall.z - depth + MIN_SHARED_WALL, wall.z + wall.depth - MIN_SHARED_WALL), 2)
    return Room(name, wall.x + wall.width if side == "e" else wall.x - width, z, width, depth)


def _common(one: Room, other: Room) -> tuple[float, float, float, float]:
    """Return the bounds (x, x, z, z) of two rooms' overlap; if they are apart, a higher one comes first."""
    left, right = max(one.x, other.x), min(one.x + one.width, other.x + other.width)
    return left, right, max(one.z, other.z), min(one.z + one.depth, other.z + other.depth)


def _shared(one: Room, other: Room) -> tuple[Point, Point] | None:
    """Return the ends of the wall that two rooms share, if it is long enough for a door."""
    left, right, low, high = _common(one, other)
    if abs(right - left) < 1e-6 and high - low >= MIN_SHARED_WALL - 1e-6:
        return (left, low), (left, high)
    if abs(high - low) < 1e-6 and right - left >= MIN_SHARED_WALL - 1e-6:
        return (left, low), (right, low)
    return None
