"""Joint routes of a team, evaluated on samples of where the missing things may be.

`search_routes` weighs a plan by a formula that knows nothing of hands: it lets whoever finds something bring
it home at once and yet look on. Here a plan is followed in samples of what the places may have: who finds
something takes it, brings home what two hands hold before it looks on, and with the last find everybody turns
home. What counts is when the last member is home, on average over the samples.

The samples are the same for all plans of a decision, so that their differences are not chance; each thing's
places are drawn evenly along its chances (stratified sampling). The plan of least cost by the formula is
improved by moving single stops, by exchanging the rest of two routes, and by bringing home first what is in
hand.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme.prompts.household.household import Worker
from mneme.rules.household.errands import HANDS, Aim, Errands
from mneme.rules.household.search_routes import NEVER, Route, Routes, insertions, without

SAMPLES = 32
SAMPLE_IDS = np.arange(SAMPLES)
ROUTE_PASSES = 2
"""Number of passes over all changes of the routes."""
SOON = 0.1
"""Weight of the mean step of a find beside the end: early finds improve later plans."""
MIN_STEPS_TO_REDIRECT = 0.5
"""Minimum steps saved for which the manager redirects a member."""

Numbers = NDArray[np.float64]
"""One number for each sample."""
Counts = NDArray[np.int64]
Stops = tuple[int, ...]
JointPlan = tuple[tuple[Stops, ...], tuple[bool, ...]]
"""A route for each member, and whether it first brings home what it has in hand."""


class Trail(NamedTuple):
    """A route followed in every sample; routes share the trail of their common beginning.

    `rows` has, for the start and for each stop, when it is reached, when the member goes on from there, and
    how much later it is home if it turns home there: the way, and putting down what is in hand.
    `held` is what is in hand at the end, `is_home` where the last finds have been brought home; `ways` lead
    on from the last stop, `ways_from_home` from home. `found` is when the last find was made, `known` when
    what was fetched, and what the hands could not hold, is home, `soon` the sum of the steps of all finds.
    """

    rows: Numbers
    held: Counts
    is_home: NDArray[np.bool_]
    ways: Sequence[int]
    ways_from_home: Sequence[int]
    found: Numbers
    known: Numbers
    soon: float


class JointRoutes(Routes):
    """Plan the routes of a whole team."""

    def __init__(
        self, errands: Errands, workers: Sequence[Worker], proposed: Sequence[tuple[int | None, float]] = ()
    ) -> None:
        """Plan; `proposed` are the targets that workers would go to first, and what steps that may cost."""
        self._workers = list(workers)
        self._wishes = list(proposed or [(None, 0.0)] * len(workers))
        self._delivers = [False] * len(self._workers)
        self._trails: dict[tuple[int, bool, Stops], Trail] = {}
        super().__init__(errands, workers)

    def first(self, number: int) -> Aim | None:
        """Return a member's first action, if any."""
        if self._delivers[number]:
            return Aim("goput", self.errands.targets_of(self._workers[number])[0])
        return super().first(number)

    def _build(self) -> None:
        super()._build()
        self._finds, self._loads = self._samples()
        self._helps: list[list[int]] = []  # how far the nearest teammate of each member is from each stop
        for number in range(len(self._workers)):
            others = [ways for n, ways in enumerate(self._from_starts) if n != number]
            nearest = [min((ways[stop] for ways in others), default=NEVER) for stop in range(len(self.stops))]
            self._helps.append(nearest)
        plan = _plan(self._routes, self._delivers)
        best, tried = self._end(plan), {plan}
        for _ in range(ROUTE_PASSES):
            before = best
            for routes, delivers in self._changes():
                plan = _plan(routes, delivers)
                if plan in tried:
                    continue
                tried.add(plan)
                end = self._end(plan, best)
                if end < best - 1e-9:
                    self._routes, self._delivers, best = routes, delivers, end
            if best >= before:
                return

    def _weighed(self, routes: Sequence[Route]) -> float:
        """Return a plan's cost by the formula, less the worth of each proposal that it follows."""
        cost = super()._weighed(routes)
        for route, (wish, worth) in zip(routes, self._wishes, strict=True):
            cost -= worth * (bool(route) and self.stops[route[0]] == wish)
        return cost

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
                np.add.at(finds, (drawn, SAMPLE_IDS), 1)
                if name in self.errands.targets:  # else it is a target that nobody has seen
                    np.add.at(loads, (drawn, SAMPLE_IDS), 1)
        return finds, loads

    def _changes(self) -> Iterator[tuple[list[Route], list[bool]]]:
        """Yield changes of the routes as they are by then."""
        for stop in self._pressing():
            for routes in insertions(without(self._routes, stop), stop):
                yield routes, self._delivers
        for number, worker in enumerate(self._workers):
            if 0 < len(worker.hands) < HANDS:
                turned = [each != (n == number) for n, each in enumerate(self._delivers)]
                yield self._routes, turned
        for routes in _exchanges(self._routes):
            yield routes, self._delivers

    def _end(self, plan: JointPlan, best: float = math.inf) -> float:
        """Return the mean time at which the last member is home, plus a small share of the times of finds.

        Once that cannot be less than `best`, a lower bound is returned.
        """
        trails = [self._trail(number, *each) for number, each in enumerate(zip(*plan, strict=True))]
        finds = max(1, sum(self.errands.whereabouts.unfound.values()))
        soon = SOON * sum(trail.soon for trail in trails) / SAMPLES / finds
        bonus = self._bonus(*plan)
        last = np.maximum.reduce([trail.found for trail in trails])
        ends = np.maximum.reduce([last, *(trail.known for trail in trails)])
        least = float(ends.sum()) / SAMPLES + soon - bonus
        if least >= best:
            return least
        for reached, done, homeward in (trail.rows for trail in trails):
            stop = np.maximum((reached <= last).sum(axis=0) - 1, 0)  # where the last find turns it home
            turns = np.where(stop < len(reached) - 1, last, 0.0)  # from the end of its route it goes at once
            ends = np.maximum(ends, np.maximum(done[stop, SAMPLE_IDS], turns) + homeward[stop, SAMPLE_IDS])
        return float(ends.sum()) / SAMPLES + soon - bonus

    def _bonus(self, routes: Sequence[Stops], delivers: Sequence[bool]) -> float:
        """Return a plan's bonus for keeping promised actions and for following proposals."""
        bonus = 0.0
        for worker, (wish, worth), route, puts in zip(
            self._workers, self._wishes, routes, delivers, strict=True
        ):
            first = self.errands.targets_of(worker) if puts else [self.stops[each] for each in route[:1]]
            bonus += MIN_STEPS_TO_REDIRECT * (worker.promised in first) + worth * (wish in first)
        return bonus

    def _trail(self, number: int, route: Stops, delivers: bool) -> Trail:
        key = (number, delivers, route)
        if key not in self._trails:
            self._trails[key] = (
                self._followed(number, self._trail(number, route[:-1], delivers), route[-1])
                if route
                else self._begun(number, delivers)
            )
        return self._trails[key]

    def _begun(self, number: int, delivers: bool) -> Trail:
        """Return the trail at the start of a member's route; `delivers`: at home, with empty hands."""
        _, time, load = self._starts[number]
        away, ways = self._ways_home[number], self._from_starts[number]
        if delivers:
            home = self.errands.targets_of(self._workers[number])[0]
            ways = self._row(self.errands.spots[home].corner)
            time, load = time + away, 0
        nothing = np.zeros(SAMPLES)
        start = [[time], [time], [away + load - 1 if load else 0]]
        rows: Numbers = np.repeat(np.array(start, dtype=float)[:, :, None], SAMPLES, axis=2)
        return Trail(rows, np.full(SAMPLES, load), nothing > 0, ways, ways, nothing, nothing, 0.0)

    def _followed(self, number: int, trail: Trail, stop: int) -> Trail:
        """Extend a trail to a stop in every sample: take what two hands hold, and bring it home once full."""
        ways = np.where(trail.is_home, trail.ways_from_home[stop], trail.ways[stop])
        reached, finds, home = trail.rows[1, -1] + ways, self._finds[stop], self._away[stop]
        done: Numbers = reached
        if stop >= self._fetched:
            done = reached + self._loads[stop] * self._taking(stop) + self._stays[stop]
        lifted = trail.held + self._loads[stop]
        held: Counts = np.minimum(lifted, HANDS)
        is_home = held == HANDS
        done = done + np.where(is_home, home + HANDS - 1, 0)
        left, held = lifted - held, np.where(is_home, 0, held)
        known = trail.known
        if stop < self._fetched:
            known = np.maximum(known, done + np.where(held > 0, home, 0))
        if left.any():
            # A teammate comes for what is left, or the member itself, who is sooner.
            fetched = np.minimum(np.maximum(reached, self._helps[number][stop]), done + home)
            known = np.maximum(known, np.where(left > 0, fetched + left + home, 0.0))
        row = np.array([reached, done, np.where(held > 0, home + held - 1, 0)])
        return Trail(
            np.concatenate([trail.rows, row[:, None]], axis=1),
            held,
            is_home,
            self._between[stop],
            self._from_homes[self._homes[stop]],
            np.where(finds > 0, reached, trail.found),
            known,
            trail.soon + float((reached * finds).sum()),
        )


def _drawn(chances: dict[int, float], chance: np.random.Generator) -> Counts:
    """Draw a place for each sample, evenly along the chances."""
    sums = np.cumsum([*chances.values()])
    even = (chance.permutation(SAMPLES) + chance.random(SAMPLES)) / SAMPLES
    number = np.minimum(np.searchsorted(sums / sums[-1], even), len(sums) - 1)
    places: Counts = np.array([*chances], dtype=np.int64)[number]
    return places


def _plan(routes: Sequence[Route], delivers: Sequence[bool]) -> JointPlan:
    return tuple(tuple(route) for route in routes), tuple(delivers)


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
