"""A lower bound on the steps that any team needs for an episode, even if it knows all locations.

It holds for teams that put objects down only at the target of a goal; docs/explanation/mita.md proves
it. If an episode needs more than MAX_LOADS loads to be searched, some things are left out, which makes the
bound smaller; `how` says so.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, product
from operator import sub

import numpy as np
from pydantic import BaseModel, ConfigDict

from mneme.environments.household.episode import Episode, Goal
from mneme.environments.household.reach import CLEAR, Indices, Metres, Reach, least

MAX_LOADS = 6000
"""Maximum number of choices of things to bring times their parts; above it, some things are left out."""
Spot = int
Load = tuple[int, ...]
"""The number of things taken at each spot."""


class Bound(BaseModel):
    """The lower bound, and how it was computed."""

    model_config = ConfigDict(frozen=True)

    steps: int
    how: str


def lower_bound(episode: Episode) -> Bound:
    """Return a lower bound on the steps."""
    wanted, left_out = [each for goal in episode.goals if (each := _lacking(episode, goal))], 0
    while math.prod(each.loads() for each in wanted) > MAX_LOADS:  # fewer things only make the bound smaller
        worst = max(wanted, key=lambda each: each.loads())
        wanted = [each for each in wanted if each is not worst]
        wanted += [Lacking(worst.count - 1, worst.there)] if worst.count > 1 else []
        left_out += 1
    if not wanted:
        return Bound(steps=0, how="every goal is met at the start")
    spots = sorted({spot for each in wanted for spot in each.there})
    how = f"best sharing of {sum(each.count for each in wanted)} things among {len(episode.starts)} agents"
    return Bound(
        steps=_Sharing(_trips(episode, spots), _shut(episode, spots), _choices(wanted, spots)).least(),
        how=how + (f"; {left_out} things left out" if left_out else ""),
    )


# -------------------------------------------------------------------- what is to be brought


@dataclass(frozen=True)
class Lacking:
    """The number of objects that a goal still needs, and the number of them at each spot.

    A spot is a container with its content, or a single object; each is named by its id.
    """

    count: int
    there: Counter[Spot]

    def choices(self) -> set[tuple[Spot, ...]]:
        """List where the lacking things can be taken from."""
        there = sorted(
            Counter({spot: min(things, self.count) for spot, things in self.there.items()}).elements()
        )
        return set(combinations(there, self.count))

    def loads(self) -> int:
        """Return an upper bound on the number of parts of all choices, without listing them."""
        # Choices of `count` among the things, each with 2 ** count parts for the agents to share.
        return (
            math.comb(sum(min(things, self.count) for things in self.there.values()), self.count)
            << self.count
        )


def _lacking(episode: Episode, goal: Goal) -> Lacking | None:
    named = [thing for thing in episode.things if thing.name == goal.name and thing.category == "object"]
    there: Counter[Spot] = Counter()
    met = 0
    for thing in named:
        if episode.places[thing.id] == (goal.relation, goal.target):
            met += 1
        elif (spot := _spot(episode, thing.id)) is not None:
            there[spot] += 1
    return Lacking(goal.count - met, there) if met < goal.count else None


def _spot(episode: Episode, thing: int) -> Spot | None:
    """Return the spot of an object; None if it is in a container that cannot be opened."""
    relation, holder = episode.places[thing]
    kind = episode.by_id()[holder].category
    if relation == "on" or kind == "room":
        return thing
    return holder if kind == "container" else None


def _choices(wanted: Sequence[Lacking], spots: Sequence[Spot]) -> list[Load]:
    """List the loads that meet every goal."""
    loads = set()
    for chosen in product(*(each.choices() for each in wanted)):
        taken = Counter(spot for part in chosen for spot in part)
        loads.add(tuple(taken[spot] for spot in spots))
    return sorted(loads)


# -------------------------------------------------------------------- one agent's trips


def _trips(episode: Episode, spots: Sequence[Spot]) -> "_Trips":
    things, names, places = episode.by_id(), episode.goal_names(), episode.places.items()
    # A wanted thing in a container can be taken from near its own box, too.
    inside = {
        spot: [thing for thing, place in places if place == ("inside", spot) and things[thing].name in names]
        for spot in spots
    }
    targets = sorted({goal.target for goal in episode.goals})
    regions = [*((spot, *inside[spot]) for spot in spots), *((target,) for target in targets)]
    return _Trips(Reach(episode, regions), len(spots))


def _shut(episode: Episode, spots: Sequence[Spot]) -> list[bool]:
    things = episode.by_id()
    return [things[spot].category == "container" and spot not in episode.open for spot in spots]


class _Trips:
    """The shortest ways on which each agent alone could take loads and bring them to a target."""

    def __init__(self, reach: Reach, spots: int) -> None:
        self._reach, self.agents = reach, len(reach.starts)
        self._at = reach.regions[:spots]
        # One target for all goals: a thing counts at the first, which only makes the bound smaller.
        self._target: Indices = np.unique(np.concatenate(reach.regions[spots:]))
        self._origins: Indices = np.concatenate([reach.starts, self._target])
        self._trips = {pair: self._trip(*pair) for pair in combinations_with_replacement(range(spots), 2)}
        self._ways: dict[Load, Metres] = {}

    def steps(self, load: Load) -> Indices:
        """Return each agent's minimum number of walking steps for a load, from its start."""
        return _whole(self._shortest(load).min(axis=1))

    def opening(self, spot: int) -> Indices:
        """Return the minimum number of steps to success for each agent, if it only opens a container."""
        there = self._reach.between(self._reach.starts, self._at[spot]).min(axis=1)
        onward = self._reach.between(self._at[spot], self._target).min()
        return _whole(there) + 1 + _whole(onward) + 1  # opens; another then walks on and puts

    def _trip(self, first: int, second: int) -> Metres:
        """Return the metres from starts and target by way of one or two spots to the target."""
        if first == second:
            return least(self._out(first), self._back(first))
        between = self._reach.between(self._at[first], self._at[second])
        forth = least(self._out(first), least(between, self._back(second)))
        return np.minimum(forth, least(self._out(second), least(between.T, self._back(first))))

    def _out(self, spot: int) -> Metres:
        return self._reach.between(self._origins, self._at[spot])

    def _back(self, spot: int) -> Metres:
        return self._reach.between(self._at[spot], self._target)

    def _shortest(self, load: Load) -> Metres:
        """Return the metres of the shortest way to deliver a load, by agent and by its end at a target."""
        if load in self._ways:
            return self._ways[load]
        # Which one or two things may come last, and what is then brought before.
        taken = [spot for spot, count in enumerate(load) if count]
        last = [((spot, spot), _less(load, spot)) for spot in taken]
        pairs = combinations_with_replacement(taken, 2)
        last += [((a, b), _less(_less(load, a), b)) for a, b in pairs if _less(load, a)[b]]
        ways = [
            least(self._shortest(before), self._trips[pair][self.agents :])
            if any(before)
            else self._trips[pair][: self.agents]
            for pair, before in last
        ]
        self._ways[load] = np.minimum.reduce(ways)
        return self._ways[load]


def _whole(lengths: Metres | np.float64) -> Indices:
    return np.asarray(np.ceil(lengths - CLEAR), dtype=np.int64)  # a step is at most 1 m long


def _less(load: Load, spot: int) -> Load:
    return (*load[:spot], load[spot] - 1, *load[spot + 1 :])


# -------------------------------------------------------------------- the team


class _Sharing:
    """The search for the division of loads and openings that minimises the steps of the busiest agent."""

    def __init__(self, trips: _Trips, shut: Sequence[bool], choices: Sequence[Load]) -> None:
        self._trips, self._shut, self._choices = trips, shut, choices
        self._agents = trips.agents
        self._alone: dict[Load, list[int]] = {}
        self._opening = [trips.opening(spot) for spot in range(len(shut))]

    def least(self) -> int:
        """Return the minimum number of steps in which some choice can be delivered."""
        steps = 0
        while not any(self._can_share(steps, load, []) for load in self._choices):
            steps += 1
        return steps

    def _can_share(self, steps: int, rest: Load, shares: list[Load]) -> bool:
        """Return whether the agents without a share can deliver the rest within the steps."""
        agent = len(shares)
        if agent == self._agents:
            spare = [steps - self._busy(each, share) for each, share in enumerate(shares)]
            shut = [
                spot for spot, is_shut in enumerate(self._shut) if is_shut and any(s[spot] for s in shares)
            ]
            return self._can_open(shut, shares, spare, steps)
        # The last agent has to take all that is left.
        parts = product(*(range(count + 1) for count in rest)) if agent < self._agents - 1 else [rest]
        return any(
            self._busy(agent, share) <= steps
            and self._can_share(steps, tuple(map(sub, rest, share)), [*shares, share])
            for share in parts
        )

    def _busy(self, agent: int, share: Load) -> int:
        """Return an agent's steps for walking, taking and putting."""
        if not any(share):
            return 0
        if share not in self._alone:
            # Each thing costs one step to take and one to put.
            self._alone[share] = [2 * sum(share) + int(steps) for steps in self._trips.steps(share)]
        return self._alone[share][agent]

    def _can_open(self, shut: Sequence[int], shares: Sequence[Load], spare: list[int], steps: int) -> bool:
        """Return whether the agents' spare steps suffice to open the closed containers."""
        if not shut:
            return True
        spot, *others = shut
        for agent, share in enumerate(shares):
            # Who takes from it is there already; anybody else must reach it early enough.
            if spare[agent] > 0 and (share[spot] or self._opening[spot][agent] <= steps):
                left = [each - (number == agent) for number, each in enumerate(spare)]
                if self._can_open(others, shares, left, steps):
                    return True
        return False
