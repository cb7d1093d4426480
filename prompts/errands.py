"""What there is to do in a household, how far it is, and what it brings.

A place is worth what it is expected to show, the less the longer the way (`PATIENCE`), and what lies near it
counts too, so that a room with many containers draws more than a lonely cupboard. A thing that is known
counts as found for certain.
"""

from collections.abc import Sequence
from typing import NamedTuple

from prompts.household import Corner, Item, Knowledge, Need, Spot, Worker, steps_into, steps_to_act
from prompts.whereabouts import Whereabouts, home_of

HANDS = 2
PATIENCE = 0.94
"""What a thing is worth one step later."""
AHEAD = 2
"""How many further places a member thinks of."""
AFTER_ENTRY = 4
"""Steps from a room's door to what is in its containers."""
USELESS = 1e-6


class Aim(NamedTuple):
    """An action on a target."""

    kind: str
    target: int


class Errands:
    """What there is to do, and how far it is."""

    def __init__(self, knowledge: Knowledge, taken: Sequence[int] = ()) -> None:
        self.knowledge, self.taken = knowledge, frozenset(taken)
        self.rooms = frozenset(room.id for room in knowledge.rooms)
        self.spots = _spots(knowledge)
        self.targets = {need.thing: need.id for need in knowledge.needs if need.placed < need.wanted}
        self.wanted = [item for item in _wanted(knowledge) if item.id not in self.taken]
        self.gains = self._gains()
        self._ways: dict[tuple[Corner, int], int] = {}

    @property
    def is_all_found(self) -> bool:
        """Say whether nothing is left to look for, or nowhere to look."""
        return not any(gain > USELESS for gain in self.gains.values())

    def aims(self) -> list[Aim]:
        """List what may be fetched and where may be looked."""
        looking = [Aim("goexplore" if place in self.rooms else "gocheck", place) for place in self.gains]
        return [*(Aim("gograb", item.id) for item in self.wanted), *looking]

    def targets_of(self, worker: Worker) -> list[int]:
        """List where the things in a worker's hands belong, one entry for each."""
        names = {item.id: item.name for item in self.knowledge.items}
        some = next(iter(self.targets.values()), self.knowledge.needs[0].id)
        return [self.targets.get(names.get(held, ""), some) for held in worker.hands]

    def steps(self, start: Corner, target: int) -> int:
        """Return about how many steps a visit takes: the way, and acting or looking once."""
        key = (start, target)
        if key not in self._ways:
            measure = steps_into if target in self.rooms else steps_to_act
            self._ways[key] = measure(self.knowledge, start, self.spots[target])
        return self._ways[key]

    def _gains(self) -> dict[int, float]:
        """Return what each place, and each thing that may be fetched, brings."""
        where = Whereabouts(self.knowledge)
        found = {each.id: where.inside(each) for each in where.unopened}
        for room in where.unexplored:
            found[room.id] = where.lying_in(room) + PATIENCE**AFTER_ENTRY * where.hidden_in(room)
        return {place: gain for place, gain in found.items() if place not in self.taken}

    def worth(self, start: Corner, target: int) -> float:
        """Return what going there first brings, with the best that follows."""
        everything = self.gains | dict.fromkeys((item.id for item in self.wanted), 1.0)
        return self._chain(start, target, everything, AHEAD)

    def _chain(self, start: Corner, target: int, gains: dict[int, float], ahead: int) -> float:
        gain = gains.get(target, 0.0)
        if ahead:
            spot = self.spots[target]
            here, rest = spot.corner, [place for place in gains if place != target]
            after = max(rest, key=lambda place: gains[place] * self._later(here, place), default=None)
            if after is not None:
                left = {place: gains[place] for place in rest}
                gain += self._chain(here, after, left, ahead - 1)
        return gain * self._later(start, target)

    def _later(self, start: Corner, target: int) -> float:
        return PATIENCE ** self.steps(start, target)


def _wanted(knowledge: Knowledge) -> list[Item]:
    """List the loose things of classes of which some are missing."""
    missing = knowledge.missing()
    return [
        item
        for item in knowledge.items
        if missing.get(item.name, 0) > 0 and item.held_by is None and not item.placed
    ]


def _spots(knowledge: Knowledge) -> dict[int, Spot]:
    spots: list[Spot] = [*knowledge.rooms, *knowledge.containers, *knowledge.items]
    return {each.id: each for each in spots} | {need.id: _target(knowledge, need) for need in knowledge.needs}


def _target(knowledge: Knowledge, need: Need) -> Spot:
    """Return where a target is; one that nobody has seen, in the middle of the room where such a thing stands."""
    if need.room in {room.id for room in knowledge.rooms}:
        return need
    usual = home_of(need.name)
    rooms = sorted(knowledge.rooms, key=lambda room: (room.name != usual, room.seen is not None))
    return need.model_copy(update={"room": rooms[0].id, "x": rooms[0].x, "z": rooms[0].z})
