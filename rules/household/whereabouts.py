"""Probable places of a thing: common sense about households, corrected by what was seen.

The weights are graded common sense, not statistics: there are places where one would look first (food
is kept cold or in a cupboard, dishes in a cupboard or a machine) and places where one would look too, since
anything may have been left anywhere. What was opened and had nothing makes other places of that kind less
likely, and what was found there more (a rule of succession).

`LIKELY` is little more than `POSSIBLE`: who leaves a container at hand unopened, since another seems
likelier, comes back for it, which costs twice. Of 3, 2 and 1.5 it was chosen on 97 episodes by C-WAH's rules
(seeds 20000 to 20119), and `UNLIKELY` of 0.3 and 0.1, so that other episodes are the fair test. No place is
ruled out for good, and what is seen overrules what was expected.
"""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel

from mneme.prompts.household.household import STANDS, Knowledge, Need, Room

Sort = Literal["food", "dish", "other"]

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


class CommonSense(BaseModel):
    """The contents of `common_sense.yaml`."""

    food: str
    dish: str
    seldom: frozenset[str]
    first: dict[Sort, frozenset[str]]
    furnished: dict[str, dict[str, int]]

    @cached_property
    def sorts(self) -> dict[str, Sort]:
        """Return the sort of each class that has one."""
        return {**dict.fromkeys(self.food.split(), "food"), **dict.fromkeys(self.dish.split(), "dish")}

    def weight(self, name: str, place: str) -> float:
        """Return the weight of a class of thing at a kind of place by common sense."""
        sort = sort_of(name)
        if place in self.first[sort]:
            return LIKELY
        return UNLIKELY if sort != "other" and place in self.seldom else POSSIBLE


_FILE = Path(__file__).with_name("common_sense.yaml")
SENSE = CommonSense.model_validate(yaml.safe_load(_FILE.read_text(encoding="utf-8")))


def sort_of(name: str) -> Sort:
    """Return the sort of thing to which a class belongs."""
    return SENSE.sorts.get(name, "other")


class Usual:
    """Correct common sense by what earlier episodes taught of a kind of place.

    What is known of a class of thing counts before that of its sort, and this before that of all things: each
    level is a rate (found of so many chances), to which the next wider one is added as `PRIOR` chances.
    """

    def __init__(self, experience: Experience) -> None:
        self._counts: Counter[tuple[str, str, int]] = Counter()
        for name, places in experience.items():
            for place, counted in places.items():
                for level in (name, f"sort {sort_of(name)}", "all"):
                    for which, count in enumerate(counted):
                        self._counts[level, place, which] += count

    def weight(self, name: str, place: str, expected: float) -> float:
        """Return the weight of a single place; by common sense if nothing was learned."""
        rate = expected / ALL_PLACES
        for level in ("all", f"sort {sort_of(name)}", name):
            found, chances = self._counts[level, place, 0], self._counts[level, place, 1]
            rate = (found + PRIOR * rate) / (chances + PRIOR)
        return rate * ALL_PLACES


class Whereabouts:
    """Expect what may be found in unopened containers and unexplored rooms.

    One thinks of kinds of places first: what a kind weighs is shared by all of that kind in a room, so that
    each of a kitchen's eight cabinets is less likely than its one fridge.
    """

    def __init__(self, knowledge: Knowledge) -> None:
        self._lessons = _lessons(knowledge)
        self._usual = Usual(knowledge.experience)
        self._hidden_places = {room.id: _expected_in(room, knowledge) for room in knowledge.rooms}
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
            if need.room not in self._hidden_places and self._unexplored:
                self.unfound[need.label], self.shares[need.label] = 1, self._shares_of_target(need)

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
        """Return the chances of all places to have one thing of a class; together 1."""
        weights = {  # what lies in the target already would have been counted as placed
            each.id: 0.0 if (name, each.id) in self._targets else self._inside(name, each.name, each.room)
            for each in self._unopened
        }
        for room in self._unexplored:
            hidden = self._hidden_places[room.id].items()
            lying = self._usual.weight(name, room.name, SENSE.weight(name, room.name))
            weights[room.id] = lying + sum(n * self._inside(name, place, room.id) for place, n in hidden)
        whole = sum(weights.values())
        return {place: weight / whole for place, weight in weights.items() if weight}

    def _shares_of_target(self, need: Need) -> dict[int, float]:
        """Return the chances of the unexplored rooms to be where a target stands that nobody has seen."""
        usual = STANDS.get(need.name, "kitchen")
        weights = {each.id: LIKELY if each.name == usual else POSSIBLE for each in self._unexplored}
        return {room: weight / sum(weights.values()) for room, weight in weights.items()}

    def _inside(self, name: str, place: str, room: int) -> float:
        expected = SENSE.weight(name, place) / max(1, self._many[room, place])
        return self._usual.weight(name, place, expected) * self._lessons.get(place, 1.0)


def _longest_unseen(knowledge: Knowledge) -> list[Room]:
    """Return the rooms seen longest ago: a search of all rooms would go to and fro between two for ever."""
    ages = {room.id: knowledge.step - (room.seen or 0) for room in knowledge.rooms}
    return [room for room in knowledge.rooms if 2 * ages[room.id] >= max(ages.values())]


def _expected_in(room: Room, knowledge: Knowledge) -> dict[str, int]:
    """Return the containers expected in a room of this name, unless it was seen or some of them are known."""
    if room.seen is not None or any(each.room == room.id for each in knowledge.containers):
        return {}
    return SENSE.furnished.get(room.name, {})


def _lessons(knowledge: Knowledge) -> dict[str, float]:
    """Return a weight for each class of opened containers: below 1 if they had nothing."""
    opened = Counter(each.name for each in knowledge.containers if each.checked is not None)
    found = Counter(place for places in knowledge.found.values() for place in places)
    return {place: TRUST * (1 + found[place]) / (TRUST + count) for place, count in opened.items()}
