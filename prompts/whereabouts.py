"""Where a thing may be: common sense about households, corrected by what was seen.

The weights are nobody's statistics: food is kept cold or in a cupboard, dishes in a cupboard or a machine,
and anything may have been left anywhere, so that no place has none. What the team opened in vain makes
other places of that class less likely, and what it found there more (a rule of succession).
"""

from collections import Counter
from collections.abc import Callable
from typing import Literal

from prompts.household import Container, Knowledge, Room

Sort = Literal["food", "dish", "other"]
Weight = Callable[[str], float]

FOOD = frozenset(
    ("apple", "banana", "bananas", "bellpepper", "bread", "breadslice", "candybar", "carrot", "cereal")
    + ("chicken", "chips", "chocolatesyrup", "coffee", "coffeepot", "condimentbottle", "condimentshaker")
    + ("creamybuns", "crackers", "cupcake", "cutlets", "juice", "lime", "milk", "milkshake", "mincedmeat")
    + ("pancake", "peach", "pear", "pie", "plum", "poundcake", "pudding", "salad", "salmon", "sundae", "tea")
    + ("whippedcream", "wine")
)
DISHES = frozenset(
    ("bowl", "coffeecup", "cookingpot", "cup", "cutleryfork", "cutleryknife", "cutleryspoon", "cuttingboard")
    + (
        "dishbowl",
        "fryingpan",
        "glass",
        "mug",
        "oventray",
        "pan",
        "plate",
        "spoon",
        "waterglass",
        "wineglass",
    )
)

ANYWHERE = 0.4
"""What every single place weighs, since anything may have been left anywhere."""
INSIDE: dict[Sort, dict[str, float]] = {
    "food": {"fridge": 6.0, "kitchencabinet": 0.4, "microwave": 1.0, "stove": 0.6, "cabinet": 0.6},
    "dish": {"dishwasher": 3.0, "kitchencabinet": 0.6, "cabinet": 0.6, "microwave": 0.6, "stove": 0.4},
    "other": {"cabinet": 2.0, "bathroomcabinet": 0.6, "kitchencabinet": 0.2},
}
LYING: dict[Sort, dict[str, float]] = {
    "food": {"kitchen": 4.0, "livingroom": 2.0, "bedroom": 0.6},
    "dish": {"kitchen": 4.0, "livingroom": 2.0, "bedroom": 0.6},
    "other": {"livingroom": 3.0, "bedroom": 3.0, "kitchen": 1.5, "bathroom": 1.0},
}
FURNISHED: dict[str, dict[str, int]] = {
    "kitchen": {"fridge": 1, "dishwasher": 1, "stove": 1, "microwave": 1, "kitchencabinet": 6},
    "bathroom": {"bathroomcabinet": 1},
    "bedroom": {"cabinet": 1},
    "livingroom": {"cabinet": 1},
}
"""The containers to be expected in a room that nobody has seen."""
STANDS: dict[str, str] = {
    "coffeetable": "livingroom",
    "sofa": "livingroom",
    "tvstand": "livingroom",
    "bookshelf": "livingroom",
    "bed": "bedroom",
    "nightstand": "bedroom",
    "desk": "bedroom",
    "cabinet": "bedroom",
    "bathroomcabinet": "bathroom",
    "bathroomcounter": "bathroom",
}
"""The room in which a piece of furniture stands as a rule, where that is not the kitchen."""
TRUST = 4.0
"""How many opened places common sense is worth."""


def sort_of(name: str) -> Sort:
    """Say what sort of thing a class is."""
    if name in FOOD:
        return "food"
    return "dish" if name in DISHES else "other"


def home_of(furniture: str) -> str:
    """Say in which room a piece of furniture stands as a rule."""
    return STANDS.get(furniture, "kitchen")


class Whereabouts:
    """Expect what may be found in unopened containers and unexplored rooms."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._lessons = _lessons(knowledge)
        self.unopened = [each for each in knowledge.containers if each.checked is None and not each.is_open]
        self.unexplored = [each for each in knowledge.rooms if each.seen is None]
        self.unfound = _unfound(knowledge)
        self._whole = {name: self._mass(name) for name in self.unfound}

    def inside(self, container: Container) -> float:
        """Return how many of the things still to be found are expected in an unopened container."""
        return self._expected(lambda name: self._inside(name, container.name))

    def lying_in(self, room: Room) -> float:
        """Return how many are expected to lie about in an unexplored room."""
        return self._expected(lambda name: self._lying(name, room.name))

    def hidden_in(self, room: Room) -> float:
        """Return how many are expected in the containers of an unexplored room."""
        return self._expected(lambda name: self._hidden(name, room))

    def _expected(self, weight: Weight) -> float:
        return sum(
            count * min(1.0, weight(name) / self._whole[name])
            for name, count in self.unfound.items()
            if self._whole[name]
        )

    def _mass(self, name: str) -> float:
        places = sum(self._inside(name, each.name) for each in self.unopened)
        rooms = sum(self._lying(name, each.name) + self._hidden(name, each) for each in self.unexplored)
        return places + rooms

    def _inside(self, name: str, place: str) -> float:
        usual = ANYWHERE + INSIDE[sort_of(name)].get(place, 0.0)
        return usual * self._lessons.get(place, 1.0) + self._remembered(name, place)

    def _lying(self, name: str, room: str) -> float:
        return ANYWHERE + LYING[sort_of(name)].get(room, 0.0) + self._remembered(name, room)

    def _remembered(self, name: str, place: str) -> float:
        return float(self._knowledge.found_before.get(name, []).count(place))

    def _hidden(self, name: str, room: Room) -> float:
        """Weigh the containers that a room of this name should have; known ones speak for themselves."""
        known = Counter(each.name for each in self._knowledge.containers if each.room == room.id)
        expected = FURNISHED.get(room.name, {}) if not known else {}
        return sum(count * self._inside(name, place) for place, count in expected.items())


def _unfound(knowledge: Knowledge) -> dict[str, int]:
    """Count the things of each class that are wanted beyond all that is known of."""
    free = Counter(each.name for each in knowledge.items if each.held_by is None and not each.placed)
    return {name: count - free[name] for name, count in knowledge.missing().items() if count > free[name]}


def _lessons(knowledge: Knowledge) -> dict[str, float]:
    """Return for each class of container what opening some taught: below 1 in vain, above 1 found."""
    opened = Counter(each.name for each in knowledge.containers if each.checked is not None)
    found = Counter(place for places in knowledge.found.values() for place in places)
    return {place: TRUST * (1 + found[place]) / (TRUST + count) for place, count in opened.items()}
