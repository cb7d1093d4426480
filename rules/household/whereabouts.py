"""Probable places of a thing: common sense about households, corrected by what was seen.

The weights are graded common sense, not statistics: there are places where one would look first (food
is kept cold or in a cupboard, dishes in a cupboard or a machine) and places where one would look too, since
anything may have been left anywhere. What was opened and had nothing makes other places of that kind less
likely, and what was found there more.

`LIKELY` is little more than `POSSIBLE`: who leaves a container at hand unopened, since another seems
likelier, comes back for it, which costs twice. Of 3, 2 and 1.5 it was chosen on 97 episodes by C-WAH's rules
(seeds 20000 to 20119), and `UNLIKELY` of 0.3 and 0.1, so that other episodes are the fair test. No place is
ruled out for good, and what is seen overrules what was expected.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from mneme.prompts.household.household import STANDS, Knowledge, Room

LIKELY, POSSIBLE, UNLIKELY = 1.5, 1.0, 0.1
"""Weight of a kind of place where one would look first, would look too, or would look last."""
TRUST = 4.0
"""The weight of common sense, in opened places."""
ALL_PLACES = 12.0
"""Approximate sum of the common-sense weights of all places in an apartment."""
PRIOR = 12.0
"""Chances that a wider kind of experience counts for."""
Experience = Mapping[str, Mapping[str, tuple[int, int]]]
"""By class of thing and of place: number of finds there, and number of chances for one."""

SENSE: Any = yaml.safe_load(Path(__file__).with_name("common_sense.yaml").read_text(encoding="utf-8"))
SORTS: dict[str, str] = {name: sort for sort, names in SENSE["sorts"].items() for name in names.split()}
"""The sort, food or dish, of each class that has one."""


def by_common_sense(name: str, place: str) -> float:
    """Return the weight of a class of thing at a kind of place by common sense."""
    sort = SORTS.get(name, "other")
    if place in SENSE["first"][sort]:
        return LIKELY
    return UNLIKELY if sort != "other" and place in SENSE["seldom"] else POSSIBLE


class Usual:
    """Correct common sense by what earlier episodes taught of a kind of place.

    What is known of a class of thing counts before that of its sort, and this before that of all things: each
    level is a rate (found of so many chances), to which the next wider one is added as `PRIOR` chances.
    """

    def __init__(self, experience: Experience) -> None:
        self._found, self._chances = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for name, places in experience.items():
            for place, (found, chances) in places.items():
                for level in ("all", f"sort {SORTS.get(name)}", name):
                    self._found[level, place] += found
                    self._chances[level, place] += chances

    def weight(self, name: str, place: str, expected: float) -> float:
        """Return the weight of a single place; by common sense if nothing was learned."""
        rate = expected / ALL_PLACES
        for level in ("all", f"sort {SORTS.get(name)}", name):
            # A level with few chances stays near the wider one before it; with none it is the same.
            rate = (self._found[level, place] + PRIOR * rate) / (self._chances[level, place] + PRIOR)
        return rate * ALL_PLACES


class Whereabouts:
    """Expect what may be found in unopened containers and unexplored rooms.

    One thinks of kinds of places first: what a kind weighs is shared by all of that kind in a room, so that
    each of a kitchen's eight cabinets is less likely than its one fridge.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self._usual = Usual(knowledge.experience)
        opened = Counter(each.name for each in knowledge.containers if each.checked is not None)
        found = Counter(place for places in knowledge.found.values() for place in places)
        # The rule of succession: below 1 for a class of opened containers that had nothing.
        self._lessons = {place: TRUST * (1 + found[place]) / (TRUST + n) for place, n in opened.items()}
        rooms, known = {each.id for each in knowledge.rooms}, {each.room for each in knowledge.containers}
        self._hidden_places: dict[int, dict[str, int]] = {
            room.id: SENSE["furnished"].get(room.name, {})
            for room in knowledge.rooms
            if room.seen is None and room.id not in known
        }
        self._many = Counter((each.room, each.name) for each in knowledge.containers)  # and those expected
        for number, expected in self._hidden_places.items():
            self._many.update({(number, place): count for place, count in expected.items()})
        self._targets = {(need.thing, need.id) for need in knowledge.needs}
        self._unopened = [each for each in knowledge.containers if each.checked is None and not each.is_open]
        self._unexplored = [each for each in knowledge.rooms if each.seen is None]
        if not self._unexplored and not self._unopened:  # something was overlooked, or has been moved
            self._unexplored = _longest_unseen(knowledge)
        free = Counter(each.name for each in knowledge.items if each.held_by is None and not each.placed)
        missing = knowledge.missing()  # neither placed nor in hands
        self.unfound = {name: n - free[name] for name, n in missing.items() if n > free[name]}
        self.shares = {name: self._shares(name) for name in self.unfound}
        for need in knowledge.needs:
            if need.room not in rooms and self._unexplored:  # nobody has seen the target
                usual = STANDS.get(need.name, "kitchen")
                weights = {each.id: LIKELY if each.name == usual else POSSIBLE for each in self._unexplored}
                self.unfound[need.label], self.shares[need.label] = 1, _chances(weights)

    def gains(self) -> dict[int, float]:
        """Return the expected number of missing things at each place."""
        gains: dict[int, float] = {}
        for name, shares in self.shares.items():
            for place, share in shares.items():
                gains[place] = gains.get(place, 0.0) + self.unfound[name] * share
        return gains

    def crowd(self, place: int) -> int:
        """Return how many containers a place is expected to have beyond those that are known."""
        return sum(self._hidden_places.get(place, {}).values())

    def _shares(self, name: str) -> dict[int, float]:
        """Return the chances of all places to have one thing of a class."""
        weights = {  # what lies in the target already would have been counted as placed
            each.id: 0.0 if (name, each.id) in self._targets else self._inside(name, each.name, each.room)
            for each in self._unopened
        }
        for room in self._unexplored:
            hidden = self._hidden_places.get(room.id, {}).items()
            lying = self._usual.weight(name, room.name, by_common_sense(name, room.name))
            weights[room.id] = lying + sum(n * self._inside(name, place, room.id) for place, n in hidden)
        return _chances(weights)

    def _inside(self, name: str, place: str, room: int) -> float:
        expected = by_common_sense(name, place) / max(1, self._many[room, place])
        return self._usual.weight(name, place, expected) * self._lessons.get(place, 1.0)


def _longest_unseen(knowledge: Knowledge) -> list[Room]:
    """Return the rooms seen longest ago."""
    # Of all rooms, the two that lie nearest to each other would be searched in turn for ever.
    ages = {room.id: knowledge.step - (room.seen or 0) for room in knowledge.rooms}
    return [room for room in knowledge.rooms if 2 * ages[room.id] >= max(ages.values())]


def _chances(weights: Mapping[int, float]) -> dict[int, float]:
    """Return the chances of places by their weights: together 1."""
    whole = sum(weights.values())
    return {place: weight / whole for place, weight in weights.items() if weight}
