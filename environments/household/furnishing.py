"""Furniture and objects of generated apartments; sizes in metres."""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from mneme.environments.household.episode import Kind
from mneme.environments.household.floorplan import Door, Room

DOORWAY = 0.8
"""Metres kept free around a door where there is room to."""
TRIES = 80


class Piece(NamedTuple):
    """A kind of furniture: width along its wall, height, depth, the height it hangs at, and how many."""

    name: str
    category: Kind
    size: tuple[float, float, float]
    fewest: int = 1
    most: int = 1
    hangs: float = 0.0
    free: bool = False
    """Stands free in the room."""


class Box(NamedTuple):
    """A piece in its place: centre and extent, in metres."""

    piece: Piece
    center: tuple[float, float, float]
    size: tuple[float, float, float]


FURNITURE: dict[str, tuple[Piece, ...]] = {
    "kitchen": (
        Piece("kitchentable", "surface", (1.6, 0.8, 1.0), free=True),
        Piece("fridge", "container", (0.89, 2.13, 0.71)),
        Piece("dishwasher", "container", (0.97, 1.02, 0.79)),
        Piece("stove", "container", (1.0, 1.08, 0.83)),
        Piece("kitchencounter", "surface", (1.5, 0.9, 0.7), 1, 2),
        Piece("sink", "surface", (0.8, 0.9, 0.6)),
        Piece("microwave", "container", (0.61, 0.31, 0.52), hangs=1.2),
        Piece("kitchencabinet", "container", (0.76, 0.7, 0.4), 4, 8, 1.75),
    ),
    "livingroom": (
        Piece("coffeetable", "surface", (1.3, 0.45, 0.7), free=True),
        Piece("sofa", "surface", (2.2, 0.9, 0.95), 1, 2),
        Piece("tvstand", "surface", (1.8, 0.5, 0.45)),
        Piece("bookshelf", "surface", (1.0, 1.9, 0.35), 1, 2),
        Piece("cabinet", "container", (1.18, 1.05, 0.38), 0, 1),
    ),
    "bedroom": (
        Piece("bed", "surface", (2.4, 0.65, 2.0)),
        Piece("nightstand", "surface", (0.75, 0.48, 0.75), 1, 2),
        Piece("desk", "surface", (1.4, 0.75, 0.7)),
        Piece("cabinet", "container", (1.18, 1.05, 0.38)),
    ),
    "bathroom": (
        Piece("bathroomcounter", "surface", (1.4, 0.85, 0.55)),
        Piece("washingmachine", "surface", (0.65, 0.9, 0.6)),
        Piece("bathroomcabinet", "container", (1.4, 0.76, 0.2), hangs=1.5),
    ),
    "homeoffice": (
        Piece("desk", "surface", (1.6, 0.75, 0.8)),
        Piece("bookshelf", "surface", (1.0, 1.9, 0.35), 1, 3),
        Piece("cabinet", "container", (1.18, 1.05, 0.38)),
    ),
    "diningroom": (
        Piece("diningtable", "surface", (2.0, 0.75, 1.1), free=True),
        Piece("sideboard", "surface", (1.6, 0.9, 0.45)),
        Piece("cabinet", "container", (1.18, 1.05, 0.38), 0, 1),
    ),
}

Extent = tuple[float, float, float]
CLUTTER: dict[str, dict[str, Extent]] = {
    "kitchen": {
        "dishbowl": (0.18, 0.08, 0.18),
        "cutleryknife": (0.24, 0.02, 0.03),
        "mug": (0.13, 0.1, 0.09),
        "condimentbottle": (0.07, 0.21, 0.07),
        "condimentshaker": (0.05, 0.1, 0.05),
        "breadslice": (0.12, 0.02, 0.11),
        "bananas": (0.24, 0.14, 0.22),
        "chips": (0.28, 0.4, 0.31),
        "crackers": (0.16, 0.07, 0.31),
        "cereal": (0.2, 0.3, 0.08),
        "cookingpot": (0.35, 0.18, 0.25),
        "fryingpan": (0.45, 0.07, 0.3),
        "oventray": (0.5, 0.04, 0.4),
        "plum": (0.06, 0.06, 0.06),
        "lime": (0.07, 0.06, 0.06),
        "milk": (0.09, 0.25, 0.09),
        "washingsponge": (0.1, 0.04, 0.07),
        "dishwashingliquid": (0.09, 0.24, 0.06),
        "chair": (0.5, 0.95, 0.5),
    },
    "livingroom": {
        "book": (0.16, 0.03, 0.22),
        "pillow": (0.5, 0.2, 0.4),
        "wallpictureframe": (0.6, 0.5, 0.04),
        "remotecontrol": (0.05, 0.03, 0.18),
        "candle": (0.08, 0.12, 0.08),
        "magazine": (0.21, 0.01, 0.28),
        "rug": (2.0, 0.02, 1.4),
        "box": (0.39, 0.17, 0.29),
        "cellphone": (0.08, 0.01, 0.15),
        "radio": (0.3, 0.2, 0.12),
    },
    "bedroom": {
        "pillow": (0.5, 0.2, 0.4),
        "hanger": (0.42, 0.22, 0.03),
        "clothespile": (0.4, 0.15, 0.35),
        "book": (0.16, 0.03, 0.22),
        "folder": (0.08, 0.31, 0.26),
        "facecream": (0.07, 0.06, 0.07),
        "slippers": (0.25, 0.1, 0.28),
        "wallpictureframe": (0.6, 0.5, 0.04),
        "box": (0.39, 0.17, 0.29),
    },
    "bathroom": {
        "hairproduct": (0.07, 0.2, 0.05),
        "toothbrush": (0.02, 0.02, 0.18),
        "toothpaste": (0.05, 0.04, 0.17),
        "barsoap": (0.1, 0.04, 0.07),
        "towel": (0.6, 0.06, 0.35),
        "toiletpaper": (0.12, 0.1, 0.12),
        "facecream": (0.07, 0.06, 0.07),
    },
    "homeoffice": {
        "book": (0.16, 0.03, 0.22),
        "folder": (0.08, 0.31, 0.26),
        "notes": (0.1, 0.01, 0.1),
        "keyboard": (0.45, 0.03, 0.16),
        "mouse": (0.07, 0.04, 0.11),
        "mug": (0.13, 0.1, 0.09),
    },
    "diningroom": {
        "chair": (0.5, 0.95, 0.5),
        "candle": (0.08, 0.12, 0.08),
        "napkin": (0.2, 0.01, 0.2),
        "vase": (0.18, 0.35, 0.18),
        "wallpictureframe": (0.6, 0.5, 0.04),
    },
}


def furnish(room: Room, doors: Sequence[Door], chance: Random) -> list[Box]:
    """Set a room's furniture along its walls, or free in it, apart from each other where it fits."""
    placed: list[Box] = []
    for piece in FURNITURE[room.name]:
        for _ in range(chance.randint(piece.fewest, piece.most)):
            placed.append(_place(piece, room, placed, doors, chance))
    return placed


def _place(piece: Piece, room: Room, placed: Sequence[Box], doors: Sequence[Door], chance: Random) -> Box:
    """Draw places until one is free; in a crowded room the last one is used."""
    box = _draw(piece, room, chance)
    for _ in range(TRIES):
        if not any(_touch(box, other) for other in placed) and not any(_bars(box, door) for door in doors):
            return box
        box = _draw(piece, room, chance)
    return box


def _draw(piece: Piece, room: Room, chance: Random) -> Box:
    width, height, depth = piece.size
    y = round(piece.hangs + height / 2, 2)
    if piece.free:
        x, z = (middle + chance.uniform(-1.0, 1.0) for middle in room.center)
        return Box(piece, (round(x, 2), y, round(z, 2)), piece.size)
    if chance.random() < 0.5:
        x = chance.uniform(room.x + width / 2, room.x + room.width - width / 2)
        z = chance.choice((room.z + depth / 2, room.z + room.depth - depth / 2))
        return Box(piece, (round(x, 2), y, round(z, 2)), (width, height, depth))
    x = chance.choice((room.x + depth / 2, room.x + room.width - depth / 2))
    z = chance.uniform(room.z + width / 2, room.z + room.depth - width / 2)
    return Box(piece, (round(x, 2), y, round(z, 2)), (depth, height, width))


def _touch(one: Box, other: Box) -> bool:
    return all(
        abs(one.center[axis] - other.center[axis]) < (one.size[axis] + other.size[axis]) / 2
        for axis in range(3)
    )


def _bars(box: Box, door: Door) -> bool:
    return (
        abs(box.center[0] - door.center[0]) < box.size[0] / 2 + DOORWAY
        and abs(box.center[2] - door.center[1]) < box.size[2] / 2 + DOORWAY
    )
