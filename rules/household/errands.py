"""Errands in a household: things to fetch, places to look at, and the distances to them."""

from collections.abc import Sequence
from typing import NamedTuple

from mneme.environments.household.walking import Corner, steps_to_visit
from mneme.prompts.household.household import Item, Knowledge, Worker, spots_of
from mneme.rules.household.whereabouts import Whereabouts


class Aim(NamedTuple):
    """An action on a target."""

    kind: str
    target: int


class Errands:
    """The errands of a household, and the distances to them; `taken` are targets that others go for."""

    def __init__(self, knowledge: Knowledge, taken: Sequence[int] = ()) -> None:
        self.knowledge, self.taken = knowledge, frozenset(taken)
        self.rooms = frozenset(room.id for room in knowledge.rooms)
        self.spots = spots_of(knowledge)
        self.targets = {need.thing: need.id for need in knowledge.needs if need.placed < need.wanted}
        # A place may have things of several targets: the first that lacks something stands for them all.
        self._home = next(iter(self.targets.values()), knowledge.needs[0].id)
        self._homes = {item.id: self.targets.get(item.name, self._home) for item in knowledge.items}
        self.whereabouts = Whereabouts(knowledge)
        gains = self.whereabouts.gains()
        self.gains = {place: gain for place, gain in gains.items() if place not in self.taken}
        self._ways: dict[tuple[Corner, int], int] = {}

    @property
    def is_all_found(self) -> bool:
        """Return whether nothing is left to look for, or nowhere to look."""
        return not self.gains

    def targets_of(self, worker: Worker) -> list[int]:
        """List where the things in a worker's hands belong, one entry for each."""
        return [self.home(held) for held in worker.hands]

    def steps(self, start: Corner, target: int) -> int:
        """Return the approximate steps of a visit: the way, and one action or look."""
        key = (start, target)
        if key not in self._ways:
            self._ways[key] = steps_to_visit(self.knowledge, start, self.spots[target])
        return self._ways[key]

    def aim(self, stop: int) -> Aim:
        """Return the action at a stop."""
        if stop in self.rooms:
            return Aim("goexplore", stop)
        return Aim("gocheck" if stop in self.gains else "gograb", stop)

    def home(self, stop: int) -> int:
        """Return the target of a thing, or of what a place may have."""
        return self._homes.get(stop, self._home)

    def needed(self, workers: Sequence[Worker]) -> list[Item]:
        """Choose as many things of each class as are missing, those that are fetched and brought soonest."""
        left, chosen = self.knowledge.missing(), list[Item]()
        loose = [item for item in self.knowledge.items if item.held_by is None and not item.placed]

        def trip(item: Item) -> int:
            nearest = min(self.steps(worker.corner, item.id) for worker in workers)
            return nearest + self.steps(item.corner, self.home(item.id))

        for item in sorted(loose, key=trip):
            if left.get(item.name, 0) > 0 and item.id not in self.taken:
                left[item.name] -= 1
                chosen.append(item)
        return chosen
