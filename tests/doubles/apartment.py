"""A small apartment for tests of the household: three rooms in a row, and plain values to change."""

from typing import Any

from mneme.environments.household import Episode, parse_episode

KITCHEN, HALL, STUDY = 1, 2, 3
TABLE, FRIDGE, CUPBOARD, DESK = 10, 11, 12, 13
APPLE, PEAR, WINE, BOOK = 20, 21, 22, 23


def values(**changes: Any) -> dict[str, Any]:
    """Give an episode as plain values: kitchen 0..6, hall 6..12, study 12..18 along x, doors at z = 3."""
    plain: dict[str, Any] = {
        "id": "row",
        "source": "test",
        "apartment": "row",
        "category": "Prepare a Meal",
        "goals": [
            {"relation": "on", "name": "apple", "target": TABLE, "count": 1, "target_name": "kitchentable"},
            {"relation": "on", "name": "wine", "target": TABLE, "count": 1, "target_name": "kitchentable"},
        ],
        "starts": [
            {"room": KITCHEN, "position": (3.0, 3.0), "placed": "recorded"},
            {"room": STUDY, "position": (15.0, 3.0), "placed": "recorded"},
        ],
        "things": [
            [KITCHEN, "kitchen", "room", [3, 1.25, 3], [6, 2.5, 6]],
            [HALL, "livingroom", "room", [9, 1.25, 3], [6, 2.5, 6]],
            [STUDY, "bedroom", "room", [15, 1.25, 3], [6, 2.5, 6]],
            [TABLE, "kitchentable", "surface", [1, 0.4, 1], [1, 0.8, 1]],
            [FRIDGE, "fridge", "container", [5.5, 1, 5.5], [1, 2, 1]],
            [CUPBOARD, "cabinet", "container", [17.5, 0.5, 5.5], [1, 1, 1]],
            [DESK, "desk", "surface", [17.5, 0.4, 0.5], [1, 0.8, 1]],
            [APPLE, "apple", "object", [5.5, 1, 5.5], [0.1, 0.1, 0.1]],
            [PEAR, "apple", "object", [17.5, 0.8, 0.5], [0.1, 0.1, 0.1]],
            [WINE, "wine", "object", [17.5, 0.5, 5.5], [0.1, 0.3, 0.1]],
            [BOOK, "book", "object", [17.4, 0.8, 0.6], [0.2, 0.1, 0.2]],
        ],
        "places": {
            **{TABLE: ("inside", KITCHEN), FRIDGE: ("inside", KITCHEN)},
            **{CUPBOARD: ("inside", STUDY), DESK: ("inside", STUDY)},
            **{APPLE: ("inside", FRIDGE), PEAR: ("on", DESK)},
            **{WINE: ("inside", CUPBOARD), BOOK: ("on", DESK)},
        },
        "doors": [(KITCHEN, HALL, (6.0, 3.0)), (HALL, STUDY, (12.0, 3.0))],
        "open": [],
        "seed": 0,
    }
    return plain | changes


def standing(*places: tuple[int, float, float], **changes: Any) -> Episode:
    """Give an episode whose agents start at (room, x, z)."""
    starts = [{"room": room, "position": (x, z), "placed": "recorded"} for room, x, z in places]
    return parse_episode(values(starts=starts, **changes))
