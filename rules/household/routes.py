"""Routes through the things to fetch and the places where things may be, for one member or a whole team.

`Routes` weighs a plan by a formula. Whoever finds a thing still has to bring it home, so a place that is far
from the target is worth looking at early, and worth looking at while one is there: coming back costs twice.
What is minimised is the expected step at which the last missing thing is brought home (after scheduling with
delivery times: largest tail first), and, as far less, the mean over the places. Routes are built by cheapest
insertion and improved by moving single stops until nothing gains. The formula knows nothing of hands: it lets
whoever finds something bring it home at once and yet look on.

`JointRoutes` improves that plan on samples of what the places may have: who finds something takes it, brings
home what two hands hold before it looks on, and with the last find everybody turns home. What counts is when
the last member is home, on average over the samples.

What a plan cannot foresee is left to the next round, which plans again.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, product
from operator import add, mul
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mneme.environments.household.walking import Corner
from mneme.environments.household.world import HANDS
from mneme.prompts.household.household import Worker
from mneme.rules.household.errands import Aim, Errands

NEVER = 400  # beyond the limit of an episode, 250 steps
"""The step at which a place on no route counts as reached."""
SOONER, SOON = 0.05, 0.1
"""Weight of the mean over the places beside the end, by the formula and in samples."""
STOP_PASSES, ROUTE_PASSES = 3, 2
"""Maximum number of passes over all changes of a plan, by the formula and in samples."""
MIN_STEPS_TO_TURN, MIN_STEPS_TO_REDIRECT = 2.0, 0.5
"""Minimum steps saved for which a member changes its direction, and for which the manager redirects it."""
LOOKING_AROUND = 2
"""Steps for each container that a room is expected to have."""
AFTER_ENTRY = 3
"""Steps from a room's door to a thing that lies in it."""
SAMPLES = 32  # 128 were no better on 97 episodes
SAMPLE_IDS = np.arange(SAMPLES)

Numbers = NDArray[np.float64]
"""One number for each sample."""
Counts = NDArray[np.int64]
Stops = tuple[int, ...]
Proposed = tuple[int | None, float]
"""The target that a member would go to first, and what steps that may cost."""


class Plan(NamedTuple):
    """A route for each member, and whether it first brings home the one thing that it has in hand."""

    routes: tuple[Stops, ...]
    delivers: tuple[bool, ...]


class Start(NamedTuple):
    """Where and when a member's route begins, the number of things in hand, and the steps home with them."""

    corner: Corner
    time: int
    load: int
    way_home: int


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


class Routes:
    """Plan routes for these workers over things to fetch and places to look at.

    Inside, stops go by their place in `stops`, and distances stand in a table: a plan weighs some thousand
    routes.
    """

    def __init__(
        self, errands: Errands, workers: Sequence[Worker], proposed: Sequence[Proposed] = ()
    ) -> None:
        self.errands, self._workers = errands, workers
        self._proposed = proposed or [(None, 0.0)] * len(workers)
        fetched = [item.id for item in errands.needed(workers)]
        self.stops, self._fetched = [*fetched, *errands.gains], len(fetched)
        corners = [errands.spots[stop].corner for stop in self.stops]
        self._homes = [errands.home(stop) for stop in self.stops]
        self._away = [*map(errands.steps, corners, self._homes)]
        looking = [AFTER_ENTRY if stop in errands.rooms else 1 for stop in errands.gains]
        self._taking = [0] * len(fetched) + looking
        self._tails = [*map(add, self._away, self._taking)]
        self._stays = [LOOKING_AROUND * errands.whereabouts.crowd(stop) for stop in self.stops]
        self._gains = [errands.gains.get(stop, 1.0) for stop in self.stops]
        self._chances: Counter[tuple[float, ...]] = Counter()  # classes with equal chances count as one
        for name, units in errands.whereabouts.unfound.items():
            shares = errands.whereabouts.shares[name]
            self._chances[tuple(shares.get(stop, 0.0) for stop in self.stops)] += units
        self._starts = [self._start(worker) for worker in workers]
        self._from_starts = [self._row(start.corner) for start in self._starts]
        self._between = [self._row(corner) for corner in corners]
        self._from_homes = {home: self._row(errands.spots[home].corner) for home in {*self._homes}}
        press = [gain * (1 + tail) for gain, tail in zip(self._gains, self._tails, strict=True)]
        self._order = sorted(range(len(press)), key=lambda stop: (stop >= self._fetched, -press[stop]))
        """The stops, the most pressing first."""
        self._plan = Plan(((),) * len(workers), (False,) * len(workers))
        self._build()

    def _start(self, worker: Worker, delivers: bool = False) -> Start:
        """Begin where the worker is; to deliver, and with both hands full, at the target with empty hands."""
        corner, time, held = worker.corner, 0, self.errands.targets_of(worker)
        if len(held) < HANDS and not delivers:
            return Start(corner, 0, len(held), self.errands.steps(corner, held[0]) if held else 0)
        for target in dict.fromkeys(held):
            time += self.errands.steps(corner, target)
            corner = self.errands.spots[target].corner
        # One more step for the second thing at the same target; with two targets it is a step too many.
        return Start(corner, time + len(held) - 1, 0, 0)

    def _row(self, start: Corner) -> list[int]:
        return [self.errands.steps(start, stop) for stop in self.stops]

    def first(self, number: int) -> Aim | None:
        """Return a member's first action, if any."""
        target = self._targets(self._plan)[number]
        if target is None:
            return None
        return Aim("goput", target) if self._plan.delivers[number] else self.errands.aim(target)

    def _targets(self, plan: Plan) -> list[int | None]:
        """Return each member's first target in a plan."""
        return [
            self.errands.targets_of(worker)[0] if delivers else self.stops[route[0]] if route else None
            for worker, route, delivers in zip(self._workers, *plan, strict=True)
        ]

    def _bonus(self, plan: Plan, keeping: float) -> float:
        """Return a plan's bonus: `keeping` for each promise kept, and the worth of proposals followed."""
        firsts = zip(self._targets(plan), self._workers, self._proposed, strict=True)
        return sum(
            keeping * (target == worker.promised) + worth * (target == wish)
            for target, worker, (wish, worth) in firsts
            if target is not None
        )

    def openings(self) -> dict[Aim, float]:
        """Return the plan's cost with each stop moved to the start of the first member's route."""
        # That is where the first insertion is.
        return {
            self.errands.aim(self.stops[stop]): self._cost(next(self._insertions(stop)))
            for stop in self._order
        }

    def _cost(self, plan: Plan) -> float:
        """Return a plan's cost by the formula: the expected end, and a little of the mean."""
        ends = [NEVER] * len(self.stops)
        trails = [self._follow(number, route, ends) for number, route in enumerate(plan.routes)]
        mean = SOONER * float(sum(map(mul, ends, self._gains)))
        return self._expected_end(ends, trails) + mean - self._bonus(plan, MIN_STEPS_TO_TURN)

    def _follow(self, number: int, route: Stops, ends: list[int]) -> list[tuple[int, int]]:
        """Set in `ends` when each stop's things would be home; return times, with the way home if loaded."""
        steps = self._from_starts[number]
        _, time, load, way_home = self._starts[number]
        trail = [(time, way_home)]
        for stop in route:
            time += steps[stop]
            tail = self._tails[stop]
            ends[stop] = time + tail
            steps = self._between[stop]
            load += stop < self._fetched  # what may be found on the way fills no hand in the formula
            trail.append((time, tail if load else 0))
            time += self._stays[stop]
            if load >= HANDS:
                time += tail + 1  # the way has the first thing's putting down, not the second's
                steps, load = self._from_homes[self._homes[stop]], 0
                trail.append((time, 0))
        return trail

    def _expected_end(self, ends: Sequence[int], trails: Sequence[list[tuple[int, int]]]) -> float:
        """Return when the last missing thing is home: the expected maximum over independent finds.

        With the last find everybody who holds something goes home from where the route has led it by then.
        """
        # All is found by a stop with the chance that each thing is there or at one that ends before: the
        # product of their sums of chances. What it gains from stop to stop weighs the end at that stop.
        end = certain = max(ends[: self._fetched], default=0)
        below = [0.0] * len(self._chances)
        before = expected = 0.0
        for stop in sorted(range(self._fetched, len(ends)), key=ends.__getitem__):
            reached = 1.0
            for number, (shares, units) in enumerate(self._chances.items()):
                below[number] += shares[stop]
                reached *= below[number] ** units
            found = ends[stop] - self._tails[stop]
            # NEVER is above any way home: the last entry of a trail at the time of the find, or before.
            turning = (trail[max(0, bisect_right(trail, (found, NEVER)) - 1)] for trail in trails)
            end = max(end, ends[stop], *(found + way_home for _, way_home in turning))
            expected += end * (reached - before)
            before = reached
        return expected + certain * (1.0 - before)

    def _build(self) -> None:
        """Insert every stop where it costs least, the most pressing first; then improve."""
        cost = cache(self._cost)  # the same plan comes up many times
        for stop in self._order:
            self._plan = min(self._insertions(stop), key=cost)

        def changes() -> Iterator[Plan]:
            return (min(self._insertions(stop), key=cost) for stop in self._order)

        self._improve(STOP_PASSES, changes, lambda plan, _: cost(plan))

    def _improve(
        self, passes: int, changes: Callable[[], Iterator[Plan]], cost: Callable[[Plan, float], float]
    ) -> None:
        """Accept each change that costs less, until a pass over all changes gains nothing."""
        best, tried = cost(self._plan, math.inf), {self._plan}
        for _ in range(passes):
            before = best
            for plan in changes():
                if plan not in tried:  # `best` only falls: what was tried is no better now
                    tried.add(plan)
                    if (now := cost(plan, best)) < best - 1e-9:  # more than rounding
                        self._plan, best = plan, now
            if best >= before:
                return

    def _insertions(self, stop: int) -> Iterator[Plan]:
        """Yield the plan with a stop inserted, or moved, at every place."""
        routes = [tuple(each for each in route if each != stop) for route in self._plan.routes]
        for number, route in enumerate(routes):
            for place in range(len(route) + 1):
                changed = (*route[:place], stop, *route[place:])
                yield self._plan._replace(routes=(*routes[:number], changed, *routes[number + 1 :]))


class JointRoutes(Routes):
    """Plan the routes of a whole team: by the formula, then on samples.

    The samples are the same for all plans of a decision, so that their differences are not chance.
    """

    def __init__(self, errands: Errands, workers: Sequence[Worker], proposed: Sequence[Proposed]) -> None:
        super().__init__(errands, workers, proposed)
        self._trails: dict[tuple[int, bool, Stops], Trail] = {}
        self._finds, self._loads = self._samples()
        ways = np.array(self._from_starts)
        self._helps = [np.delete(ways, n, axis=0).min(axis=0, initial=NEVER) for n in range(len(ways))]
        """How far the nearest teammate of each member is from each stop."""
        self._improve(ROUTE_PASSES, self._changes, self._end)

    def _samples(self) -> tuple[Counts, Counts]:
        """Draw for each place and sample how many finds, and how many things to take, it has."""
        chance, where = np.random.default_rng(SAMPLES), self.errands.whereabouts
        finds: Counts = np.zeros((len(self.stops), SAMPLES), dtype=np.int64)
        loads = finds.copy()
        loads[: self._fetched] = 1
        for name, count in where.unfound.items():
            shares = where.shares[name]
            places = np.array([self.stops.index(stop) for stop in shares])
            sums = np.cumsum([*shares.values()])
            for _ in range(count if shares else 0):
                # Evenly along the chances (stratified sampling).
                even = (chance.permutation(SAMPLES) + chance.random(SAMPLES)) / SAMPLES
                drawn = places[np.searchsorted(sums / sums[-1], even)]
                finds[drawn, SAMPLE_IDS] += 1
                loads[drawn, SAMPLE_IDS] += name in self.errands.targets  # else a target that nobody has seen
        return finds, loads

    def _changes(self) -> Iterator[Plan]:
        """Yield the plan with a stop moved, a delivery first or not, or the rests of two routes exchanged."""
        # `_improve` changes the plan meanwhile: each stop, and then the exchanges, start from the new one.
        for stop in self._order:
            yield from self._insertions(stop)
        for number, start in enumerate(self._starts):
            if start.load:
                delivers = [each != (n == number) for n, each in enumerate(self._plan.delivers)]
                yield self._plan._replace(delivers=tuple(delivers))
        routes = self._plan.routes
        for one, other in combinations(range(len(routes)), 2):
            for first, second in product(range(len(routes[one]) + 1), range(len(routes[other]) + 1)):
                changed = [*routes]
                changed[one] = routes[one][:first] + routes[other][second:]
                changed[other] = routes[other][:second] + routes[one][first:]
                yield self._plan._replace(routes=tuple(changed))

    def _end(self, plan: Plan, best: float) -> float:
        """Return the mean time at which the last member is home, plus a small share of the times of finds.

        Once that cannot be less than `best`, a lower bound is returned.
        """
        trails = [self._trail(number, *each) for number, each in enumerate(zip(*plan, strict=True))]
        finds = max(1, sum(self.errands.whereabouts.unfound.values()))
        soon = SOON * sum(trail.soon for trail in trails) / SAMPLES / finds
        bonus = self._bonus(plan, MIN_STEPS_TO_REDIRECT)
        last = np.maximum.reduce([trail.found for trail in trails])
        ends = np.maximum.reduce([last, *(trail.known for trail in trails)])
        least = float(ends.sum()) / SAMPLES + soon - bonus
        if least >= best:  # turning home, below, only makes ends later
            return least
        for reached, done, homeward in (trail.rows for trail in trails):
            stop = np.maximum((reached <= last).sum(axis=0) - 1, 0)  # where the last find turns it home
            turns = np.where(stop < len(reached) - 1, last, 0.0)  # from the end of its route it goes at once
            ends = np.maximum(ends, np.maximum(done[stop, SAMPLE_IDS], turns) + homeward[stop, SAMPLE_IDS])
        return float(ends.sum()) / SAMPLES + soon - bonus

    def _trail(self, number: int, route: Stops, delivers: bool) -> Trail:
        """Return the trail of a member's route, computed once."""
        key = number, delivers, route
        if key not in self._trails:
            self._trails[key] = self._extended(*key) if route else self._begun(number, delivers)
        return self._trails[key]

    def _begun(self, number: int, delivers: bool) -> Trail:
        """Return the trail at the start of a member's route."""
        corner, time, load, way_home = self._start(self._workers[number], delivers)
        ways, nothing = self._row(corner), np.zeros(SAMPLES)
        rows: Numbers = np.full((3, 1, SAMPLES), float(time))
        rows[2] = way_home
        return Trail(rows, np.full(SAMPLES, load), nothing > 0, ways, ways, nothing, nothing, 0.0)

    def _extended(self, number: int, delivers: bool, route: Stops) -> Trail:
        """Extend a trail to its last stop: take what two hands hold, and bring it home once full."""
        trail, stop = self._trail(number, route[:-1], delivers), route[-1]
        ways = np.where(trail.is_home, trail.ways_from_home[stop], trail.ways[stop])
        reached, finds, home = trail.rows[1, -1] + ways, self._finds[stop], self._away[stop]
        lifted = trail.held + self._loads[stop]
        held: Counts = np.minimum(lifted, HANDS)
        left, is_home = lifted - held, held == HANDS
        held = np.where(is_home, 0, held)
        # The way has the step that takes a known thing, or looks; to take what is found costs more.
        done = reached + self._loads[stop] * self._taking[stop] + self._stays[stop]
        done = done + np.where(is_home, home + HANDS - 1, 0)
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
