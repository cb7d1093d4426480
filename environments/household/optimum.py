"""The fewest steps in which a team that knows everything can be done, for small episodes.

Searched is every plan of the household's high-level actions, in the world's own walks: who takes what in
which order, brings it when, and opens what, also for another. Beside the bound (`bound.py`), which no team
can beat however it walks, this is what a team that decides as ours do could reach. A walk that goes on past
the point from which hands reach is not among these actions; where the two agree, the bound is exact.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from mneme.environments.household.episode import Episode, Thing
from mneme.environments.household.layout import Layout, Point, distance, towards
from mneme.environments.household.world import CLOSE, HANDS, World

MOST_THINGS, MOST_CANDIDATES = 3, 6
"""What a small episode asks for, and how many things of these classes it may have."""


class Stop(NamedTuple):
    """A stop of a plan: the walk to it, the shut container it opens if nobody has yet, and what it takes."""

    walk: int
    container: int | None
    acts: int


class Offer(NamedTuple):
    """What one agent could do alone: what it brings, its stops, and the least steps until it is done."""

    taken: frozenset[int]
    stops: tuple[Stop, ...]
    least: int


def optimum(episode: Episode) -> int | None:
    """Return the fewest steps for a team that knows everything; None where the episode is too large."""
    lacking = _lacking(episode)
    things = [each for each in _loose(episode) if lacking[each.name]]
    if sum(lacking.values()) > MOST_THINGS or len(things) > MOST_CANDIDATES:
        return None
    return _Team(episode, lacking, things).best()


def _lacking(episode: Episode) -> Counter[str]:
    done = World(episode).progress
    lacking: Counter[str] = Counter()
    for goal in episode.goals:
        lacking[goal.name] += goal.count - done[goal.key]
    return lacking


def _loose(episode: Episode) -> list[Thing]:
    """List the things of goal classes that are not where a goal wants them."""
    names, wanted = episode.goal_names(), {(g.relation, g.target, g.name) for g in episode.goals}
    objects = [each for each in episode.things if each.category == "object" and each.name in names]
    return [each for each in objects if (*episode.places[each.id], each.name) not in wanted]


class _Team:
    """The search over the offers of all agents together."""

    def __init__(self, episode: Episode, lacking: Counter[str], things: Sequence[Thing]) -> None:
        self._episode, self._lacking, self._things = episode, lacking, things
        self._layout, self._by_id = Layout(episode), episode.by_id()
        self._targets = {goal.name: goal.target for goal in episode.goals}
        self._names = {each.id: each.name for each in things}
        self._holders = {each.id: self._shut_holder(each) for each in things}
        self._walked = cache(self._walk)
        self._best = World.LIMIT + 1

    def best(self) -> int:
        """Return the least steps: first without opening for one another, then with it."""
        if not sum(self._lacking.values()):
            return 0
        agents = range(len(self._episode.starts))
        for opens in (False, True):
            offers = [self._offers(agent, opens=opens) for agent in agents]
            self._share(offers, [])
        return self._best

    def _shut_holder(self, thing: Thing) -> int | None:
        relation, holder = self._episode.places[thing.id]
        shut = self._by_id[holder].category == "container" and holder not in self._episode.open
        return holder if relation == "inside" and shut else None

    # -- one agent -------------------------------------------------------------------------------------

    def _offers(self, agent: int, *, opens: bool) -> list[Offer]:
        start = self._episode.starts[agent]
        idle = Offer(frozenset(), (), 0)
        found = self._continued(start.room, start.position, (), idle, opens)
        return sorted([idle, *found], key=lambda each: each.least)

    def _continued(
        self, room: int, at: Point, hands: tuple[int, ...], so_far: Offer, opens: bool
    ) -> Iterator[Offer]:
        """Yield every way to go on that ends with empty hands, sooner than the best team known."""
        for target, left, stop, taken in self._next(room, at, hands, so_far, opens):
            walk, there, position = self._walked(room, at, target)
            made = Stop(walk, *stop)
            offer = Offer(so_far.taken | taken, (*so_far.stops, made), so_far.least + walk + made.acts)
            if offer.least >= self._best:
                continue
            if not left:
                yield offer
            yield from self._continued(there, position, left, offer, opens)

    def _next(
        self, room: int, at: Point, hands: tuple[int, ...], so_far: Offer, opens: bool
    ) -> Iterator[tuple[int, tuple[int, ...], tuple[int | None, int], frozenset[int]]]:
        """Yield the next stops: where, what is held then, what it opens and how many acts, what it takes."""
        for target in {self._targets[self._names[held]] for held in hands}:
            left = tuple(held for held in hands if self._targets[self._names[held]] != target)
            yield target, left, (None, len(hands) - len(left)), frozenset()
        if len(hands) == HANDS:
            return
        had = Counter(self._names[each] for each in so_far.taken)
        for thing in self._things:
            if thing.id not in so_far.taken and had[thing.name] < self._lacking[thing.name]:
                yield thing.id, (*hands, thing.id), (self._holders[thing.id], 1), frozenset((thing.id,))
        opened = {stop.container for stop in so_far.stops}
        for container in {each for each in self._holders.values() if opens and each not in opened}:
            if container is not None:
                yield container, hands, (container, 0), frozenset()

    def _walk(self, room: int, at: Point, target: int) -> tuple[int, int, Point]:
        """Walk as a high-level action does, until hands reach; return the steps and where that is."""
        thing, steps = self._by_id[target], 0
        goal = self._episode.room_of(target)
        while not (room == goal and self._reached(at, thing)):
            if room != goal:
                room, at = self._layout.towards_room(room, at, goal)
            else:
                at = towards(at, thing)
            steps += 1
        return steps, room, at

    def _reached(self, at: Point, thing: Thing) -> bool:
        relation, holder = self._episode.places[thing.id]
        around = self._by_id[holder]
        inside = relation == "inside" and around.category == "container"
        return distance(at, thing) <= CLOSE or (inside and distance(at, around) <= CLOSE)

    # -- the team --------------------------------------------------------------------------------------

    def _share(self, offers: Sequence[Sequence[Offer]], chosen: list[Offer]) -> None:
        """Try every choice of one offer for each agent that brings all that is lacking, and nothing twice."""
        taken = frozenset[int]().union(*(each.taken for each in chosen))
        if len(chosen) == len(offers):
            if Counter(self._names[each] for each in taken) == +self._lacking and self._is_lean(chosen):
                self._best = min(self._best, _played(chosen))
            return
        for offer in offers[len(chosen)]:
            if offer.least >= self._best:
                return  # they are sorted
            if not offer.taken & taken and self._is_needed(offer.taken | taken):
                self._share(offers, [*chosen, offer])

    def _is_needed(self, taken: frozenset[int]) -> bool:
        return Counter(self._names[each] for each in taken) <= self._lacking

    def _is_lean(self, chosen: Sequence[Offer]) -> bool:
        """Say whether nothing is opened that nobody takes from."""
        emptied = {self._holders[thing] for offer in chosen for thing in offer.taken}
        return all(stop.container in emptied | {None} for offer in chosen for stop in offer.stops)


def _played(offers: Sequence[Offer]) -> int:
    """Return when the last agent is done; who comes to a container that is still shut opens it first.

    Two that open the same at one step both lose that step, as in the world.
    """
    queue = [(offer.stops[0].walk, agent, 0) for agent, offer in enumerate(offers) if offer.stops]
    heapify(queue)
    opened: dict[int, int] = {}
    end = 0
    while queue:
        time, agent, number = heappop(queue)
        stop, stops = offers[agent].stops[number], offers[agent].stops
        if stop.container is not None and opened.get(stop.container, time + 1) > time:
            opened.setdefault(stop.container, time + 1)
            time += 1
        time += stop.acts
        end = max(end, time)
        if number + 1 < len(stops):
            heappush(queue, (time + stops[number + 1].walk, agent, number + 1))
    return end
