"""Furniture and objects of generated apartments; sizes in metres."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple

import yaml
from pydantic import BaseModel

from mneme.environments.household.episode import BoxedObject, Kind, Relation
from mneme.environments.household.floorplan import Door, Room
from mneme.environments.household.layout import Box, overlap

DOORWAY = 0.8
"""Metres kept free around a door where there is room to."""
PLACING_TRIES = 80


class Piece(BaseModel):
    """A kind of furniture: width along its wall, height, depth, the height it hangs at, and how many."""

    name: str
    category: Kind
    size: tuple[float, float, float]
    fewest: int = 1
    most: int = 1
    hangs: float = 0.0
    free: bool = False
    """Stands free in the room."""


APARTMENTS_FILE = Path(__file__).with_name("apartments.yaml")
Extent = tuple[float, float, float]


class PlacedPiece(NamedTuple):
    """A piece in its place: centre and extent, in metres."""

    piece: Piece
    center: Extent
    size: Extent


class GoalTemplate(BaseModel):
    """The goals of a category: a number of things of some classes, and their target."""

    relation: Relation
    target: str
    classes: tuple[str, ...]
    things: int


class Apartments(BaseModel):
    """Content of `apartments.yaml`: sizes by class, in metres, and the distribution of goal objects."""

    furniture: dict[str, tuple[Piece, ...]]
    clutter: dict[str, dict[str, Extent]]
    food: dict[str, Extent]
    tableware: dict[str, Extent]
    hiding: dict[str, int]
    showing: dict[str, int]
    goals: dict[str, GoalTemplate]


@cache
def apartments() -> Apartments:
    """Return the furnishing of apartments."""
    return Apartments.model_validate(yaml.safe_load(APARTMENTS_FILE.read_text(encoding="utf-8")))


def furnish(room: Room, doors: Sequence[Door], chance: Random) -> list[PlacedPiece]:
    """Place a room's furniture along its walls, or free in it, without overlap where possible.

    Places are drawn until one is free; in a crowded room the last one is used.
    """
    placed: list[PlacedPiece] = []
    for piece in apartments().furniture[room.name]:
        for _ in range(chance.randint(piece.fewest, piece.most)):
            for _ in range(PLACING_TRIES + 1):
                box = _draw(piece, room, chance)
                # At the piece's own height: a door's way is free up to the ceiling.
                ways = [Box((x, box.center[1], z), (2 * DOORWAY,) * 3) for *_, (x, z) in doors]
                taken: list[BoxedObject] = [*placed, *ways]
                if not any(overlap(box, other) for other in taken):
                    break
            placed.append(box)
    return placed


def _draw(piece: Piece, room: Room, chance: Random) -> PlacedPiece:
    width, height, depth = piece.size
    y = round(piece.hangs + height / 2, 2)
    if piece.free:
        x, z = (middle + chance.uniform(-1.0, 1.0) for middle in room.center)
        return PlacedPiece(piece, (round(x, 2), y, round(z, 2)), piece.size)
    if chance.random() < 0.5:
        x = chance.uniform(room.x + width / 2, room.x + room.width - width / 2)
        z = chance.choice((room.z + depth / 2, room.z + room.depth - depth / 2))
        return PlacedPiece(piece, (round(x, 2), y, round(z, 2)), (width, height, depth))
    x = chance.choice((room.x + depth / 2, room.x + room.width - depth / 2))
    z = chance.uniform(room.z + width / 2, room.z + room.depth - width / 2)
    return PlacedPiece(piece, (round(x, 2), y, round(z, 2)), (depth, height, width))
