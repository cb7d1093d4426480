"""An apartment as triangles: rooms with doorways, furniture, containers shut or open, things and people.

Everything is a box or a cylinder, in the world's coordinates: metres, y is up. A triangle belongs to a thing
or a room by its id, to a person by `-1 - number`; a door's triangles are marked.
"""

import colorsys
import math
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme.core.errors import needs
from mneme.environments.household.episode import BoxedObject, Episode, Thing
from mneme.environments.household.layout import Box, Point, overlap
from mneme.environments.household.world import HAND_HEIGHT, World

with needs("The visual setting", "visual"):
    import trimesh

Extent = tuple[float, float, float]
Colour = tuple[float, float, float]

WALL_DEPTH, PANEL = 0.02, 0.04
DOOR, DOOR_HEIGHT = 0.93, 2.1
BESIDE_WALL = 0.8
"""Metres from a wall within which the centre of a door makes a doorway in it."""
SHADES = {
    "room": (0.25, 0.75),
    "surface": (0.35, 0.7),
    "container": (0.3, 0.8),
    "object": (0.75, 0.9),
    "person": (0.9, 0.6),
}
"""Saturation and value (HSV) of the colours of each kind."""
PERSON_RADIUS, TALL = 0.22, 1.75
"""Radius and height of a person."""
ARM = 0.35
THIN = 0.02
SHELF_HEIGHT = 1.0
"""Height of the shelf in high furniture."""
ROUND = (
    *("apple", "plum", "lime", "orange", "peach", "bananas", "wine", "milk", "juice", "mug", "cup", "glass"),
    *("bottle", "pot", "pan", "plate", "bowl", "candle"),
)
"""Classes drawn as a cylinder, by a part of their names."""
LOOKED_INTO = 1.4
"""Height below which the bottom of an open container hides nothing that is in it."""
LEGGED = ("table", "desk")


class Solid(NamedTuple):
    """A piece of something: whose it is, whether it is a shut door, its colour, and its triangles."""

    owner: int
    door: bool
    colour: Colour
    vertices: NDArray[np.float32]
    faces: NDArray[np.int32]


def person(number: int) -> int:
    """Return the id of a person's triangles."""
    return -1 - number


def still_life(episode: Episode) -> list[Solid]:
    """Return the static parts: floors, ceilings, walls with their doorways, and furniture without doors."""
    rooms = [solid for room in episode.rooms() for solid in _room(room, episode)]
    surfaces = [t for t in episode.things if t.category == "surface"]
    by_id = episode.by_id()
    furniture = (_surface(each, by_id[episode.room_of(each.id)]) for each in surfaces)
    return [*rooms, *(solid for piece in furniture for solid in piece)]


def movable(world: World) -> list[Solid]:
    """Return containers and visible objects as they are until the next change by a hand."""
    containers = [t for t in world.episode.things if t.category == "container"]
    return [
        *(solid for each in containers for solid in _container(each, world)),
        *(_object(world.things[thing], place) for thing, place in places_of(world).items()),
    ]


def people(world: World, watcher: int | None = None) -> list[Solid]:
    """Return people with what they hold, without the watcher."""
    others = [number for number in range(len(world.agents)) if number != watcher]
    solids = []
    for number in others:
        (x, z), hands = world.agents[number].position, world.agents[number].hands
        colour = colour_of(f"person {number}", "person")
        solids.append(_cylinder(person(number), (x, TALL / 2, z), PERSON_RADIUS, TALL, colour))
        for hand, thing in enumerate(world.things[held] for held in hands):
            at = x + (ARM if hand else -ARM)
            solids.append(_object(thing, Box((at, HAND_HEIGHT, z), thing.size)))
    return solids


def places_of(world: World) -> dict[int, Box]:
    """Return the box in which each visible object is drawn; no object is inside another."""
    held_by: dict[int, list[Thing]] = {}
    for thing in world.episode.things:
        if thing.category == "object" and thing.id in world.places and not world.hidden(thing.id):
            held_by.setdefault(world.places[thing.id][1], []).append(thing)
    places: dict[int, Box] = {}
    for holder, held in held_by.items():
        around = world.things[holder]
        if around.category == "container":
            places |= _in_rows(held, around, world.things[world.episode.room_of(holder)])
        else:
            piled: dict[int, Box] = {}  # the larger first: an object that overlaps another is put on it
            for thing in sorted(held, key=lambda each: -each.size[0] * each.size[2]):
                box = _place(thing, around, world)
                for other in piled.values():
                    if overlap(box, other):
                        box = _raised(box, _top(other))
                piled[thing.id] = box
            places |= piled
    return places


def _in_rows(held: Sequence[Thing], around: Thing, room: Thing) -> dict[int, Box]:
    """Spread what is in a container over its open front, each thing as large as there is room for."""
    columns = math.ceil(math.sqrt(len(held)))
    across = 2 - _depth_axis(around, room)
    cell = [0.8 * each for each in around.size]
    cell[across] /= columns
    cell[1] /= columns
    places = {}
    for number, thing in enumerate(held):
        share = min(1.0, *(wide / size for wide, size in zip(cell, thing.size, strict=True) if size > 0))
        center = [*around.center]
        center[across] += (number % columns - (columns - 1) / 2) * cell[across]
        center[1] += (number // columns - (columns - 1) / 2) * cell[1]
        places[thing.id] = Box(_triple(center), _triple([share * each for each in thing.size]))
    return places


def _place(thing: Thing, around: Thing, world: World) -> Box:
    """Return where a thing lies: where the world only knows what holds it, a fixed spot there."""
    box = Box(thing.center, thing.size)
    if around.category == "room":
        return box
    if world.solid(thing.id) is not thing:
        return _spot(thing, around)
    if thing.center[1] < _top(around) - THIN and not _has_shelves(around):
        return _raised(box, _top(around))
    return box


def _raised(box: Box, bottom: float) -> Box:
    x, _, z = box.center
    return Box((x, bottom + box.size[1] / 2, z), box.size)


def _spot(thing: Thing, around: Thing) -> Box:
    """Pick a spot on furniture by the thing's number: spread evenly, always the same."""
    x, y, z = around.center
    # Multiples of 1 / the golden ratio, and of 1 / the plastic number, leave no gap and no heap.
    across, along = (thing.id * 0.618034) % 1 - 0.5, (thing.id * 0.754878) % 1 - 0.5
    bottom = y - around.size[1] / 2 + SHELF_HEIGHT if _has_shelves(around) else _top(around)
    width, depth = (0.7 * max(0.0, around.size[axis] - thing.size[axis]) for axis in (0, 2))
    return Box((x + across * width, bottom + thing.size[1] / 2, z + along * depth), thing.size)


def _has_shelves(thing: BoxedObject) -> bool:
    """Return whether furniture is too high to look onto its top: it is drawn open, with a shelf."""
    return thing.size[1] > SHELF_HEIGHT + 0.3


def _top(thing: BoxedObject) -> float:
    return thing.center[1] + thing.size[1] / 2


# -- pieces ------------------------------------------------------------------------------------------------


def _room(room: Thing, episode: Episode) -> Iterator[Solid]:
    (x, y, z), (width, height, depth) = room.center, room.size
    low, high = y - height / 2, y + height / 2
    floor = colour_of(room.name, "room")
    yield _box(room.id, (x, low - WALL_DEPTH / 2, z), (width, WALL_DEPTH, depth), floor)
    yield _box(room.id, (x, high + WALL_DEPTH / 2, z), (width, WALL_DEPTH, depth), (0.95, 0.95, 0.93))
    doors = [center for *_, center in episode.doors]
    for axis, side in ((0, -1), (0, 1), (2, -1), (2, 1)):
        yield from _wall(room, axis, side, doors)


def _wall(room: Thing, axis: int, side: int, doors: Sequence[Point]) -> Iterator[Solid]:
    """Build one wall of a room, with a doorway for each door that is on it."""
    other = 2 - axis
    # Inside the room: in one plane with the neighbour's wall, pixels would show now one and now the other.
    at = room.center[axis] + side * (room.size[axis] - WALL_DEPTH) / 2
    start, end = (room.center[other] + sign * room.size[other] / 2 for sign in (-1, 1))
    gaps = sorted(
        door[other // 2]
        for door in doors
        if abs(door[axis // 2] - at) <= BESIDE_WALL and start < door[other // 2] < end
    )
    bottom, top = room.center[1] - room.size[1] / 2, _top(room)
    spans = [(start, end, bottom)]
    for middle in gaps:  # from the left: each cuts the last span into wall, lintel and wall
        (start, _, _) = spans.pop()
        left, right = middle - DOOR / 2, middle + DOOR / 2
        spans += [(start, left, bottom), (left, right, bottom + DOOR_HEIGHT), (right, end, bottom)]
    for start, end, low in spans:
        if end - start > THIN and top - low > THIN:
            center, size = [at, (low + top) / 2, at], [WALL_DEPTH, top - low, WALL_DEPTH]
            center[other], size[other] = (start + end) / 2, end - start
            yield _box(room.id, _triple(center), _triple(size), (0.93, 0.91, 0.86))


def _surface(thing: Thing, room: Thing) -> Iterator[Solid]:
    """Build furniture without doors: a slab on legs, shelves with a back where it is high, or a block."""
    colour = colour_of(thing.name, "surface")
    (x, _, z), (width, height, depth) = thing.center, thing.size
    if _has_shelves(thing):
        low = thing.center[1] - height / 2
        for board in (low + PANEL / 2, low + SHELF_HEIGHT - PANEL / 2, _top(thing) - PANEL / 2):
            yield _box(thing.id, (x, board, z), (width, PANEL, depth), colour)
        yield _box(thing.id, *_back(thing, room), colour)
        return
    if not any(word in thing.name for word in LEGGED) or height < 4 * PANEL:
        yield _box(thing.id, thing.center, thing.size, colour)
        return
    yield _box(thing.id, (x, _top(thing) - PANEL, z), (width, 2 * PANEL, depth), colour)
    leg, middle = 2 * PANEL, thing.center[1] - PANEL
    for left, near in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        corner = (x + left * (width - leg) / 2, middle, z + near * (depth - leg) / 2)
        yield _box(thing.id, corner, (leg, height - 2 * PANEL, leg), colour)


def _container(thing: Thing, world: World) -> Iterator[Solid]:
    """Build a container.

    Closed, all of it but the top is its door. Open, it shows its back, and top and bottom only where they do
    not hide the inside from a person's eyes.
    """
    colour = colour_of(thing.name, "container")
    (x, y, z), (width, height, depth) = thing.center, thing.size
    board, is_open = (width, PANEL, depth), thing.id in world.open
    if not is_open:
        yield _box(thing.id, (x, y - PANEL / 2, z), (width, height - PANEL, depth), colour, door=True)
    if not is_open or _top(thing) > TALL:
        yield _box(thing.id, (x, _top(thing) - PANEL / 2, z), board, colour)
    if is_open:
        yield _box(thing.id, *_back(thing, world.things[world.episode.room_of(thing.id)]), colour)
    if is_open and y - height / 2 < LOOKED_INTO:
        yield _box(thing.id, (x, y - (height - PANEL) / 2, z), board, colour)


def _back(thing: Thing, room: Thing) -> tuple[Extent, Extent]:
    """Return the panel on the side that is farthest from the middle of the room."""
    axis = _depth_axis(thing, room)
    center, size = [*thing.center], [*thing.size]
    center[axis] += math.copysign((thing.size[axis] - PANEL) / 2, thing.center[axis] - room.center[axis])
    size[axis] = PANEL
    return _triple(center), _triple(size)


def _depth_axis(thing: Thing, room: Thing) -> int:
    """Return the axis, x or z, along which one looks into furniture from the middle of the room."""
    # By shares of the room: furniture stands along the wall that it is relatively nearest to.
    aside = {axis: abs(thing.center[axis] - room.center[axis]) / room.size[axis] for axis in (0, 2)}
    return max(aside, key=lambda axis: aside[axis])


def is_round(name: str) -> bool:
    """Return whether a class of things is drawn as a cylinder."""
    return any(word in name for word in ROUND)


@lru_cache(4096)  # most pieces are the same from frame to frame
def _object(thing: Thing, place: Box) -> Solid:
    size = _triple([max(each, THIN) for each in place.size])
    colour = colour_of(thing.name, "object")
    if is_round(thing.name):
        return _cylinder(thing.id, place.center, min(size[0], size[2]) / 2, size[1], colour)
    return _box(thing.id, place.center, size, colour)


@lru_cache(4096)
def _box(owner: int, center: Extent, size: Extent, colour: Colour, *, door: bool = False) -> Solid:
    vertices, faces = _unit("box")
    return Solid(
        owner, door, colour, vertices * np.array(size, np.float32) + np.array(center, np.float32), faces
    )


def _cylinder(owner: int, center: Extent, radius: float, height: float, colour: Colour) -> Solid:
    vertices, faces = _unit("cylinder")
    scale = np.array((radius, height, radius), np.float32)
    return Solid(owner, False, colour, vertices * scale + np.array(center, np.float32), faces)


@lru_cache(2)
def _unit(shape: Literal["box", "cylinder"]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Build a box with sides of 1, or a cylinder along y, of radius and height 1."""
    if shape == "box":
        box = trimesh.creation.box()
        return np.array(box.vertices, np.float32), np.array(box.faces, np.int32)
    made = trimesh.creation.cylinder(radius=1.0, height=1.0, sections=12)
    # trimesh's stands along z; swapping two axes mirrors it, so that faces are turned round again.
    return np.array(made.vertices[:, [0, 2, 1]], np.float32), np.array(made.faces[:, ::-1], np.int32)


@lru_cache(256)
def colour_of(name: str, kind: str) -> Colour:
    """Return the colour of a class: the hue by its name, saturation and value by its kind."""
    # CRC-32, since Python's `hash` of a text differs from process to process.
    return colorsys.hsv_to_rgb(zlib.crc32(name.encode()) % 997 / 997, *SHADES[kind])


def _triple(values: Sequence[float]) -> Extent:
    x, y, z = values
    return x, y, z
