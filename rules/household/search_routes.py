"""Routes through the places where things may be found, for one or several members.

Whoever finds a thing still has to bring it home, so a place that is far from the target is worth looking at
early, and worth looking at while one is there: coming back costs twice. What is minimised is the expected
step at which the last missing thing is brought home (after scheduling with delivery times: largest tail
first), and, as far less, the mean over the places. Routes are built by cheapest insertion and improved by
moving single stops until nothing gains.

What a plan cannot foresee is left to the next round, which plans again: that a find changes the routes, and
that hands may be full when something turns up.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import mul
from typing import NamedTuple

from mneme.environments.household.walking import Corner
from mneme.prompts.household.household import Worker
from mneme.rules.household.errands import HANDS, Aim, Errands

NEVER = 400
"""The step at which a place on no route counts as reached."""
SOONER = 0.05
"""Weight of the mean over the places beside the end."""
STOP_PASSES = 3
"""Number of passes in which every stop is tried elsewhere."""
MIN_STEPS_TO_TURN = 2.0
"""Minimum steps saved for which a member changes its direction."""
LOOKING_AROUND = 2
"""Steps for each container that a room is expected to have."""
AFTER_ENTRY = 3
"""Steps from a room's door to a thing that lies in it."""
Route = list[int]
Trail = list[tuple[int, int]]
"""Times on a route, each with the steps home for the things held; 0 with empty hands."""


class Start(NamedTuple):
    """Place and time at which a member's route begins, and the number of things in hand."""

    corner: Corner
    time: int
    load: int


class Routes:
    """Plan routes for these workers over things to fetch and places to look at.

    Inside, stops go by their place in `stops`, and distances stand in a table: a plan weighs some thousand
    routes.
    """

    def __init__(self, errands: Errands, workers: Sequence[Worker]) -> None:
        self.errands = errands
        self._starts = [self._start(worker) for worker in workers]
        fetched = [item.id for item in errands.needed(workers)]
        self.stops = [*fetched, *errands.gains]
        self._fetched = len(fetched)
        self._homes = [errands.home(stop) for stop in self.stops]
        self._away = [
            errands.steps(errands.spots[stop].corner, home)
            for stop, home in zip(self.stops, self._homes, strict=True)
        ]
        # The steps from finding something at a stop to its being home.
        self._tails = [
            away + (0 if stop < self._fetched else self._taking(stop)) for stop, away in enumerate(self._away)
        ]
        self._stays = [LOOKING_AROUND * errands.whereabouts.crowd(stop) for stop in self.stops]
        self._gains = [errands.gains.get(stop, 1.0) for stop in self.stops]
        self._chances = _chances(errands, self.stops)
        self._from_starts = [self._row(start.corner) for start in self._starts]
        self._between = [self._row(errands.spots[stop].corner) for stop in self.stops]
        self._from_homes = {home: self._row(errands.spots[home].corner) for home in {*self._homes}}
        targets = [errands.targets_of(worker) for worker in workers]
        self._ways_home = [  # of those with one thing in hand
            errands.steps(worker.corner, held[0]) if len(held) == 1 else 0
            for worker, held in zip(workers, targets, strict=True)
        ]
        self._promised = [worker.promised for worker in workers]
        self._routes: list[Route] = [[] for _ in workers]
        self._costs: dict[tuple[tuple[int, ...], ...], float] = {}
        self._build()

    def _start(self, worker: Worker) -> Start:
        """Begin where the worker is; with both hands full, at the target once they are empty."""
        if len(worker.hands) < HANDS:
            return Start(worker.corner, 0, len(worker.hands))
        corner, time = worker.corner, 0
        for target in dict.fromkeys(self.errands.targets_of(worker)):
            time += self.errands.steps(corner, target)
            corner = self.errands.spots[target].corner
        return Start(corner, time + 1, 0)

    def _taking(self, stop: int) -> int:
        return AFTER_ENTRY if self.stops[stop] in self.errands.rooms else 1

    def _row(self, start: Corner) -> list[int]:
        return [self.errands.steps(start, stop) for stop in self.stops]

    def first(self, number: int) -> Aim | None:
        """Return a member's first action, if any."""
        route = self._routes[number]
        return self.errands.aim(self.stops[route[0]]) if route else None

    def openings(self, number: int) -> dict[Aim, float]:
        """Return the cost of a plan for each stop as a member's first, with all else as planned."""
        costs: dict[Aim, float] = {}
        for place, stop in enumerate(self.stops):
            routes = without(self._routes, place)
            routes[number].insert(0, place)
            costs[self.errands.aim(stop)] = self._cost(routes)
        return costs

    def _cost(self, routes: Sequence[Route]) -> float:
        """Return a plan's cost, computed once: the same plan comes up many times."""
        plan = tuple(tuple(route) for route in routes)
        if plan not in self._costs:
            self._costs[plan] = self._weighed(routes)
        return self._costs[plan]

    def _weighed(self, routes: Sequence[Route]) -> float:
        """Return the expected end, and a little of the mean."""
        ends = [NEVER] * len(self.stops)
        trails: list[Trail] = []
        kept = 0
        for number, route in enumerate(routes):
            trail = self._follow(number, route, ends)
            if any(way for _, way in trail):
                trails.append(trail)
            kept += bool(route) and self.stops[route[0]] == self._promised[number]
        mean = SOONER * float(sum(map(mul, ends, self._gains)))
        return self._expected_end(ends, trails) + mean - MIN_STEPS_TO_TURN * kept

    def _follow(self, number: int, route: Route, ends: list[int]) -> Trail:
        """Set in `ends` when each stop's things would be home; return times, with the way home if loaded."""
        steps = self._from_starts[number]
        _, time, load = self._starts[number]
        trail = [(time, self._ways_home[number] if load else 0)]
        for stop in route:
            time += steps[stop]
            tail = self._tails[stop]
            ends[stop] = time + tail
            steps = self._between[stop]
            if stop < self._fetched:
                load += 1
            trail.append((time, tail if load else 0))
            time += self._stays[stop]
            if load >= HANDS:
                time += tail + 1
                steps, load = self._from_homes[self._homes[stop]], 0
                trail.append((time, 0))
        return trail

    def _expected_end(self, ends: Sequence[int], trails: Sequence[Trail]) -> float:
        """Return when the last missing thing is home: the expected maximum over independent finds.

        With the last find everybody who holds something goes home from where the route has led it by then.
        """
        certain = max(ends[: self._fetched], default=0)
        order = sorted(range(self._fetched, len(ends)), key=ends.__getitem__)
        below = [0.0] * len(self._chances)
        before = expected = 0.0
        end = certain
        for stop in order:
            reached = 1.0
            for number, (units, shares) in enumerate(self._chances):
                below[number] += shares[stop]
                reached *= below[number] ** units
            found = ends[stop] - self._tails[stop]
            turning = (trail[max(0, bisect_right(trail, (found, NEVER)) - 1)] for trail in trails)
            end = max(end, ends[stop], *(found + way_home for _, way_home in turning))
            expected += end * (reached - before)
            before = reached
        return expected + certain * (1.0 - before)

    def _build(self) -> None:
        """Insert every stop where it costs least, the most pressing first; then improve."""
        order = self._pressing()
        for stop in order:
            self._routes = min(insertions(self._routes, stop), key=self._cost)
        best = self._cost(self._routes)
        for _ in range(STOP_PASSES):
            before = best
            for stop in order:
                routes = min(insertions(without(self._routes, stop), stop), key=self._cost)
                if (cost := self._cost(routes)) < best - 1e-9:
                    self._routes, best = routes, cost
            if best >= before:
                return

    def _pressing(self) -> list[int]:
        """Return the stops, the most pressing first."""
        press = [gain * (1 + tail) for gain, tail in zip(self._gains, self._tails, strict=True)]
        return sorted(range(len(press)), key=lambda stop: (stop >= self._fetched, -press[stop]))


def _chances(errands: Errands, stops: Sequence[int]) -> list[tuple[int, list[float]]]:
    """Return the stops' chances with the numbers of things; classes with equal chances are one."""
    together: dict[tuple[float, ...], int] = {}
    for name, units in errands.whereabouts.unfound.items():
        key = tuple(errands.whereabouts.shares[name].get(stop, 0.0) for stop in stops)
        together[key] = together.get(key, 0) + units
    return [(units, list(shares)) for shares, units in together.items()]


def without(routes: Sequence[Route], stop: int) -> list[Route]:
    """Return the routes without a stop."""
    return [[each for each in route if each != stop] for route in routes]


def insertions(routes: Sequence[Route], stop: int) -> Iterator[list[Route]]:
    """Yield the routes with a stop inserted, at every place."""
    for number, route in enumerate(routes):
        for place in range(len(route) + 1):
            yield [*routes[:number], [*route[:place], stop, *route[place:]], *routes[number + 1 :]]
