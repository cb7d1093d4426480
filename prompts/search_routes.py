"""Routes through the places where something may be found, for one member or several.

Whoever finds a thing still has to bring it home, so a place that is far from the target is worth looking at
early, and worth looking at while one is there: coming back costs twice. What is minimised is the expected
step at which the last missing thing is brought home (after scheduling with delivery times: largest tail
first), and, as far less, the mean over the places. Routes are built by cheapest insertion and improved by
moving single stops until nothing gains.

What a plan cannot foresee is left to the next round, which plans again: that a find changes the routes, and
that hands may be full when something turns up.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from prompts.errands import HANDS, Aim, Errands
from prompts.household import Corner, Worker

NEVER = 400
"""The step at which a place on no route counts as reached."""
SOONER = 0.05
"""What the mean over the places counts against the end."""
PASSES = 3
"""How often every stop is tried elsewhere."""
LOOKING_AROUND = 2
"""Steps for each container that a room is expected to have."""
AFTER_ENTRY = 3
"""Steps from a room's door to a thing that lies in it."""

Route = list[int]


class Start(NamedTuple):
    """Where and when a member's route begins, and with how much in hand."""

    corner: Corner
    time: int
    load: int


class Routes:
    """Plan routes for these workers over what is to be fetched and where is to be looked."""

    def __init__(self, errands: Errands, workers: Sequence[Worker]) -> None:
        self.errands = errands
        self.starts = [self._start(worker) for worker in workers]
        self.fetched = {item.id for item in errands.needed(workers)}
        self.stops = [*self.fetched, *errands.gains]
        self._tails = {stop: self._tail(stop) for stop in self.stops}
        self._stays = {stop: LOOKING_AROUND * errands.whereabouts.crowd(stop) for stop in self.stops}
        self._chances = errands.chances()
        self.routes: list[Route] = [[] for _ in workers]
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

    def _tail(self, stop: int) -> int:
        """Return the steps from finding something at a stop to its being home."""
        here = self.errands.spots[stop].corner
        to_target = self.errands.steps(here, self.errands.home(stop))
        if stop in self.fetched:
            return to_target
        return to_target + (AFTER_ENTRY if stop in self.errands.rooms else 1)

    def first(self, number: int) -> Aim | None:
        """Return what a member does first, if anything."""
        route = self.routes[number]
        return self.errands.aim(route[0]) if route else None

    def cost(self, routes: Sequence[Route]) -> float:
        """Return the expected end, and a little of the mean."""
        ends: dict[int, int] = {}
        for start, route in zip(self.starts, routes, strict=True):
            self._follow(start, route, ends)
        certain = max((ends.get(stop, NEVER) for stop in self.fetched), default=0)
        return self._expected_end(ends, certain)

    def _follow(self, start: Start, route: Route, ends: dict[int, int]) -> None:
        """Note for each stop of a route when what is there would be home."""
        errands, (here, time, load) = self.errands, start
        for stop in route:
            time += errands.steps(here, stop)
            ends[stop] = time + self._tails[stop]
            time += self._stays[stop]
            here = errands.spots[stop].corner
            load += stop in self.fetched
            if load >= HANDS:
                home = errands.home(stop)
                time += errands.steps(here, home) + 1
                here, load = errands.spots[home].corner, 0

    def _expected_end(self, ends: dict[int, int], certain: int) -> float:
        order = sorted(self.errands.gains, key=lambda stop: ends.get(stop, NEVER))
        below = [0.0] * len(self._chances)
        before, expected, total = 0.0, 0.0, 0.0
        for stop in order:
            end = max(ends.get(stop, NEVER), certain)
            reached = 1.0
            for number, (units, shares) in enumerate(self._chances):
                below[number] += shares.get(stop, 0.0)
                reached *= below[number] ** units
            expected += end * (reached - before)
            before = reached
            total += end * self.errands.gains[stop]
        expected += certain * (1.0 - before)
        return expected + SOONER * (total + sum(ends.get(stop, NEVER) for stop in self.fetched))

    def _build(self) -> None:
        """Insert every stop where it costs least, the most pressing first; then improve."""
        left = sorted(self.stops, key=lambda stop: (stop not in self.fetched, -self._press(stop)))
        for stop in left:
            self.routes = min(self._insertions(self.routes, stop), key=self.cost)
        best = self.cost(self.routes)
        for _ in range(PASSES):
            before = best
            for stop in left:
                best = self._move(stop, best)
            if best >= before:
                break

    def _press(self, stop: int) -> float:
        return self.errands.gains.get(stop, 1.0) * (1 + self._tails[stop])

    def _move(self, stop: int, best: float) -> float:
        """Put one stop where it costs least, if that gains something."""
        without = [[each for each in route if each != stop] for route in self.routes]
        found = min(self._insertions(without, stop), key=self.cost)
        cost = self.cost(found)
        if cost < best - 1e-9:
            self.routes, best = found, cost
        return best

    def _insertions(self, routes: Sequence[Route], stop: int) -> Iterator[list[Route]]:
        for number, route in enumerate(routes):
            for place in range(len(route) + 1):
                changed = [*route[:place], stop, *route[place:]]
                yield [*routes[:number], changed, *routes[number + 1 :]]

    def beginning_with(self, number: int, stop: int) -> float:
        """Return the cost if a member made this stop first and left the routes else as they are."""
        without = [[each for each in route if each != stop] for route in self.routes]
        without[number].insert(0, stop)
        return self.cost(without)
