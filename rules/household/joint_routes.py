"""Joint routes of a team, held against samples of where the missing things may be.

`search_routes` weighs a plan by a formula that knows nothing of hands: it lets whoever finds something bring
it home at once and yet look on. Here a plan is followed in samples of what the places may have: who finds
something takes it, brings home what two hands hold before it looks on, and with the last find everybody turns
home. What counts is when the last member is home, on average over the samples.

The samples are the same for all plans of a decision, so that their differences are not chance; each thing's
places are drawn evenly along its chances (stratified sampling). The plan of least cost by the formula is
improved by moving single stops, by exchanging the rest of two routes, and by bringing home first what is in
hand.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme.prompts.household.household import Worker
from mneme.rules.household.errands import HANDS, Aim, Errands
from mneme.rules.household.search_routes import (
    AFTER_ENTRY,
    HEEDING,
    KEEPING,
    NEVER,
    Route,
    Routes,
    insertions,
    without,
)

SAMPLES = 32
PASSES = 2
"""How often every change of the routes is tried."""
SOON = 0.1
"""What the mean step of a find counts against the end: what is known early, plans better."""

Numbers = NDArray[np.float64]
"""One for each sample."""
Counts = NDArray[np.int64]


class Trail(NamedTuple):
    """A route followed in every sample: a row for its start and for each stop.

    `reached` is when a stop is seen, `done` when the member goes on from there, `held` what is in hand then,
    and `away` how far home it is. `found` is when the last find was made, `known` when what was fetched, and
    what the hands could not hold, is home, and `soon` the sum of the steps of all finds.
    """

    reached: Numbers
    done: Numbers
    held: Counts
    away: Numbers
    found: Numbers
    known: Numbers
    soon: float


class _Walk:
    """A member on its route, in every sample at once."""

    def __init__(self, time: float, held: int, away: float, ways: Sequence[int]) -> None:
        self.time: Numbers = np.full(SAMPLES, float(time))
        self.held: Counts = np.full(SAMPLES, held)
        self.away: Numbers = np.full(SAMPLES, float(away))
        self._ways = self._ways_from_home = ways
        self._is_home = np.zeros(SAMPLES, dtype=bool)

    def deliver(self, ways: Sequence[int]) -> None:
        """Bring home what is in hand; `ways` lead on from there."""
        self.time = self.time + self.away
        self.held, self.away = np.zeros_like(self.held), np.zeros_like(self.away)
        self._ways = ways

    def go(self, stop: int) -> None:
        self.time = self.time + np.where(self._is_home, self._ways_from_home[stop], self._ways[stop])

    def take(self, loads: Counts, home: int, ways: Sequence[int], ways_from_home: Sequence[int]) -> Counts:
        """Take what two hands hold, and bring it home once they are full; return what is left here."""
        held = np.minimum(self.held + loads, HANDS)
        left: Counts = self.held + loads - held
        self._is_home = held == HANDS
        self.time = self.time + np.where(self._is_home, home + HANDS - 1, 0)
        self.held = np.where(self._is_home, 0, held)
        self.away = np.where(self._is_home, 0.0, float(home))
        self._ways, self._ways_from_home = ways, ways_from_home
        return left


class JointRoutes(Routes):
    """Plan the routes of a whole team."""

    def __init__(
        self, errands: Errands, workers: Sequence[Worker], proposed: Sequence[int | None] = ()
    ) -> None:
        """Plan; `proposed` are the targets that the workers themselves would go to first."""
        self._workers = list(workers)
        self._wishes = list(proposed or [None] * len(workers))
        self._delivers = [False] * len(self._workers)
        self._trails: dict[tuple[int, bool, tuple[int, ...]], Trail] = {}
        super().__init__(errands, workers, proposed)

    def first(self, number: int) -> Aim | None:
        """Return what a member does first, if anything."""
        if self._delivers[number]:
            return Aim("goput", self.errands.targets_of(self._workers[number])[0])
        return super().first(number)

    def _build(self) -> None:
        super()._build()
        self._away = [self.errands.steps(self.errands.spots[s].corner, h) for s, h in self._stops_and_homes()]
        self._finds, self._loads = self._samples()
        best = self._end(self._routes, self._delivers)
        for _ in range(PASSES):
            before = best
            for routes, delivers in self._changes():
                end = self._end(routes, delivers)
                if end < best - 1e-9:
                    self._routes, self._delivers, best = routes, delivers, end
            if best >= before:
                return

    def _stops_and_homes(self) -> Iterator[tuple[int, int]]:
        return zip(self.stops, self._homes, strict=True)

    def _samples(self) -> tuple[Counts, Counts]:
        """Draw for each place and sample how many finds, and how many things to take, it has."""
        chance = np.random.default_rng(SAMPLES)
        finds: Counts = np.zeros((len(self.stops), SAMPLES), dtype=np.int64)
        loads = finds.copy()
        loads[: self._fetched] = 1
        places = {stop: number for number, stop in enumerate(self.stops)}
        where = self.errands.whereabouts
        for name, count in where.unfound.items():
            chances = {places[stop]: share for stop, share in where.shares[name].items() if stop in places}
            for _ in range(count if chances else 0):
                drawn = _drawn(chances, chance)
                np.add.at(finds, (drawn, np.arange(SAMPLES)), 1)
                if name in self.errands.targets:  # else it is a target that nobody has seen
                    np.add.at(loads, (drawn, np.arange(SAMPLES)), 1)
        return finds, loads

    def _changes(self) -> Iterator[tuple[list[Route], list[bool]]]:
        """Yield changes of the routes as they are by then."""
        for stop in sorted(
            range(len(self.stops)), key=lambda stop: (stop >= self._fetched, -self._press(stop))
        ):
            for routes in insertions(without(self._routes, stop), stop):
                yield routes, self._delivers
        for number, worker in enumerate(self._workers):
            if 0 < len(worker.hands) < HANDS:
                turned = [each != (n == number) for n, each in enumerate(self._delivers)]
                yield self._routes, turned
        for routes in _exchanges(self._routes):
            yield routes, self._delivers

    def _end(self, routes: Sequence[Route], delivers: Sequence[bool]) -> float:
        """Return when the last member is home, on average, and a little of when finds are made."""
        trails = [self._trail(*each) for each in zip(range(len(routes)), delivers, routes, strict=True)]
        last = np.maximum.reduce([trail.found for trail in trails])
        ends = np.maximum.reduce([last, *(_home_at(last, trail) for trail in trails)])
        finds = max(1, sum(self.errands.whereabouts.unfound.values()))
        soon = SOON * sum(trail.soon for trail in trails) / SAMPLES / finds
        return float(ends.mean()) + soon - self._bonus(routes, delivers)

    def _bonus(self, routes: Sequence[Route], delivers: Sequence[bool]) -> float:
        """Return what a plan is worth for going on as before, and for doing as was proposed."""
        bonus = 0.0
        for number, (route, puts) in enumerate(zip(routes, delivers, strict=True)):
            worker = self._workers[number]
            if puts:
                targets = self.errands.targets_of(worker)
                bonus += KEEPING * (worker.promised in targets) + HEEDING * (self._wishes[number] in targets)
            elif route:
                bonus += KEEPING * (route[0] == self._promised[number])
                bonus += HEEDING * (route[0] == self._proposed[number])
        return bonus

    def _trail(self, number: int, delivers: bool, route: Route) -> Trail:
        key = (number, delivers, tuple(route))
        if key not in self._trails:
            self._trails[key] = self._followed_by(number, delivers, route)
        return self._trails[key]

    def _followed_by(self, number: int, delivers: bool, route: Route) -> Trail:
        """Follow a route in every sample."""
        start = self._starts[number]
        walk = _Walk(start.time, start.load, self._ways_home[number], self._from_starts[number])
        if delivers:
            walk.deliver(self._ways_from(self.errands.targets_of(self._workers[number])[0]))
        rows = [(walk.time, walk.time, walk.held, walk.away)]
        found = known = np.zeros(SAMPLES)
        soon = 0.0
        for stop in route:
            walk.go(stop)
            reached, finds = walk.time, self._finds[stop]
            found = np.where(finds > 0, reached, found)
            soon += float((reached * finds).sum())
            left = self._taken(walk, stop)
            if stop < self._fetched:
                known = np.maximum(known, walk.time + np.where(walk.held > 0, walk.away, 0.0))
            known = np.maximum(known, self._brought_later(number, stop, walk, reached, left))
            rows.append((reached, walk.time, walk.held, walk.away))
        reached, done, held, away = (np.array(each) for each in zip(*rows, strict=True))
        return Trail(reached, done, held, away, found, known, soon)

    def _taken(self, walk: _Walk, stop: int) -> Counts:
        """Take what there is at a stop; return how much is left there."""
        loads = self._loads[stop]
        if stop >= self._fetched:
            walk.time = walk.time + loads * self._taking(stop) + self._stays[stop]
        return walk.take(loads, self._away[stop], self._between[stop], self._ways_from(self._homes[stop]))

    def _brought_later(self, number: int, stop: int, walk: _Walk, reached: Numbers, left: Counts) -> Numbers:
        """Return when what is left is home: a teammate comes for it, or the member itself, who is sooner."""
        home = self._away[stop]
        helps = min((ways[stop] for n, ways in enumerate(self._from_starts) if n != number), default=NEVER)
        fetched = np.minimum(np.maximum(reached, helps), walk.time + home)
        later: Numbers = np.where(left > 0, fetched + left + home, 0.0)
        return later

    def _taking(self, stop: int) -> int:
        return AFTER_ENTRY if self.stops[stop] in self.errands.rooms else 1

    def _ways_from(self, home: int) -> list[int]:
        if home not in self._from_homes:
            self._from_homes[home] = self._row(self.errands.spots[home].corner)
        return self._from_homes[home]


def _drawn(chances: dict[int, float], chance: np.random.Generator) -> Counts:
    """Draw a place for each sample, evenly along the chances."""
    sums = np.cumsum([*chances.values()])
    even = (chance.permutation(SAMPLES) + chance.random(SAMPLES)) / SAMPLES
    number = np.minimum(np.searchsorted(sums / sums[-1], even), len(sums) - 1)
    places: Counts = np.array([*chances], dtype=np.int64)[number]
    return places


def _home_at(last: Numbers, trail: Trail) -> Numbers:
    """Return when a member is done that turns home, with what it holds, at the last find."""
    stop = np.maximum((trail.reached <= last).sum(axis=0) - 1, 0)
    each = np.arange(SAMPLES)
    done, held = trail.done[stop, each], trail.held[stop, each]
    home = np.maximum(done, last) + trail.away[stop, each] + held - 1
    ends: Numbers = np.maximum(np.where(held > 0, home, done), trail.known)
    return ends


def _exchanges(routes: Sequence[Route]) -> Iterator[list[Route]]:
    """Yield the routes with the rests of two of them exchanged."""
    for one in range(len(routes)):
        for other in range(one + 1, len(routes)):
            for first in range(len(routes[one]) + 1):
                for second in range(len(routes[other]) + 1):
                    changed = list(routes)
                    changed[one] = [*routes[one][:first], *routes[other][second:]]
                    changed[other] = [*routes[other][:second], *routes[one][first:]]
                    yield changed
