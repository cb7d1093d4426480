"""A team with limited views: two agents look for objects in one home, day after day.

The home is one of the household world's: its rooms, containers and distances. An agent sees the content of a
container only after walking there and opening it. An object is in its usual place on four days of five;
sometimes the usual place changes, so that the lesson is outdated.
"""

import math
from collections.abc import Sequence
from functools import partial
from random import Random
from typing import NamedTuple

from mneme.environments.household import Episode
from mneme.environments.household.generator import generate
from mneme.environments.household.layout import Layout, Point, flat
from mneme.evals.compare.memory import Course, Event, Family, Outcome, Score, Situation, day, drawing, says

RESIDENTS = ("Ada", "Ben")
SOUGHT_OBJECTS = ("scissors", "torch", "stapler", "kettle", "camera", "map", "umbrella", "thermometer")
USUAL, CHANGES = 0.8, 0.02
MAX_CONTAINERS = 20
MAX_OPENED = 4
"""Maximum containers opened for one object before the search is given up."""
OPENING_STEPS = 1
"""Steps that it takes to open a container."""


class Container(NamedTuple):
    """A container that can be opened: its name and position."""

    name: str
    room: int
    at: Point


class House:
    """The containers of a home, and the steps from one to another."""

    def __init__(self, seed: int) -> None:
        episode: Episode = generate(seed, apartment=seed)
        rooms = {room.id: room.name for room in episode.rooms()}
        found = [each for each in episode.things if each.category == "container"][:MAX_CONTAINERS]
        self._layout = Layout(episode)
        self.containers = [
            Container(f"the {each.name} ({each.id}) in the {rooms[episode.room_of(each.id)]}",
                      episode.room_of(each.id), flat(each.center))
            for each in found
        ]  # fmt: skip

    def steps(self, one: Container, other: Container) -> int:
        """Return the steps of a walk: about a metre each."""
        metres, legs = self._layout.way(one.room, one.at, other.room)
        return math.ceil(metres + math.dist(legs[-1][1] if legs else one.at, other.at))


def home(seed: int, size: int) -> Course:
    """Look for that many objects, one a day, by turns."""
    chance, house = drawing(f"home {seed}"), House(seed)
    usual = {thing: chance.choice(house.containers) for thing in SOUGHT_OBJECTS}
    for number in range(size):
        for thing in SOUGHT_OBJECTS:
            if chance.random() < CHANGES:
                # Habits change without notice: the old lesson misleads.
                usual[thing] = chance.choice(house.containers)
        lying = {
            thing: usual[thing] if chance.random() < USUAL else chance.choice(house.containers)
            for thing in SOUGHT_OBJECTS
        }
        yield from _search(house, lying, chance, number)


def _search(house: House, lying: dict[str, Container], chance: Random, number: int) -> Course:
    """Open containers until the object is found. A wrong choice that is not the nearest counts as misled."""
    thing, who, today = chance.choice(SOUGHT_OBJECTS), RESIDENTS[number % 2], day(number)
    here, left, steps, misled = chance.choice(house.containers), list(house.containers), 0, 0
    task = f"{who} looks for the {thing}."
    for tried in range(1, MAX_OPENED + 1):
        left.sort(key=lambda each: (house.steps(here, each), each.name))
        names = [each.name for each in left]
        text = f"{task} Where is the {thing} most likely? It is {today}."
        answer = yield Situation(text, partial(looked_for, thing=thing, places=names), tuple(names))
        place = left.pop(names.index(answer) if answer in names else 0)
        steps, here = steps + house.steps(here, place) + OPENING_STEPS, place
        inside = [each for each, at in lying.items() if at == place]
        seen = ", ".join(f"the {each}" for each in inside) or "nothing that anybody looks for"
        yield Event(today, who, f"In {place.name} there is {seen}.")
        is_found = thing in inside
        misled += answer != names[0] and not is_found  # only a memory makes anybody pass by the nearest
        if is_found or tried == MAX_OPENED:
            lesson = f"The {thing} was in {place.name}." if is_found else ""
            yield Score(Outcome(task, is_found, lesson, today), steps, misled)
            return


def looked_for(lines: Sequence[str], thing: str, places: Sequence[str]) -> str:
    """Choose the place with the most sights of the object minus its absences; else the nearest."""
    seen = dict.fromkeys(places, 0)
    for line in lines:
        for place in (each for each in places if each in line):
            seen[place] += 1 if says(line, thing) else -1  # "nothing there" is knowledge as well
    best = max(places, key=lambda each: seen[each])
    return best if seen[best] > 0 else places[0]  # nothing seen there, or more absences: the nearest


HOME_FAMILY = Family("home", home, RESIDENTS)
