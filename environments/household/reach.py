"""The region from which hands reach an object, and lower bounds on distances between regions.

Hands reach a thing from any point of its room whose distance to the thing's box is at most CLOSE: its region.
A shortest way that calls at several regions can always be made to call where it enters a region: on its edge,
at a door, where it began, or where it called before. So the edges are sampled, and doors, starts and the
samples of overlapping regions are added.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mneme.environments.household.episode import Episode, Thing
from mneme.environments.household.layout import Point, between_doors, flat
from mneme.environments.household.world import CLOSE

Points = NDArray[np.float64]
"""Rows of (x, z) in metres."""
Metres = NDArray[np.float64]
Indices = NDArray[np.int64]
GRAIN = 0.06
"""Metres between two samples of an edge."""
CLEAR = 1e-6
"""Metres that rounding may add."""


class Reach:
    """Sampled points of regions, and lower bounds on the distance between any two of them."""

    def __init__(self, episode: Episode, regions: Sequence[Sequence[int]]) -> None:
        things = episode.by_id()
        self._doors = list(episode.doors)
        boxes = [[things[each] for each in region] for region in regions]
        rooms = [episode.room_of(region[0]) for region in regions]
        hulls = {room: _hull(episode, room) for room in set(rooms)}
        fixed = [(start.room, start.position) for start in episode.starts]
        fixed += [(room, center) for first, second, center in self._doors for room in (first, second)]
        samples = [_edge(each, *hulls[room]) for each, room in zip(boxes, rooms, strict=True)]
        self._points: Points = np.concatenate([np.array([point for _, point in fixed]), *samples])
        sizes = [1] * len(fixed) + [len(each) for each in samples]
        self._rooms = np.repeat([room for room, _ in fixed] + rooms, sizes)
        self.starts: Indices = np.arange(len(episode.starts))
        self.regions: list[Indices] = [
            # A true point of call is up to GRAIN / 2 off its sample, so samples just outside count.
            np.flatnonzero((self._rooms == room) & (_distance(self._points, each) <= CLOSE + GRAIN / 2))
            for each, room in zip(boxes, rooms, strict=True)
        ]
        self._between = self._measure()

    def between(self, origins: Indices, ends: Indices) -> Metres:
        """Return lower bounds in metres on the distances from each of some points to each of others."""
        # Each end may be GRAIN / 2 off its sample: the bound may not be more than a walk between them.
        shortened: Metres = np.maximum(0.0, self._between[np.ix_(origins, ends)] - GRAIN)
        return shortened

    def _measure(self) -> Metres:
        """Measure straight within a room, and through the centres of doors between rooms."""
        metres: Metres = np.full((len(self._points), len(self._points)), math.inf)
        exits = {
            int(room): [door for door, (one, other, _) in enumerate(self._doors) if room in (one, other)]
            for room in set(self._rooms)
        }
        inside = {room: np.flatnonzero(self._rooms == room) for room in exits}
        plan = tuple((first, second, *center) for first, second, center in self._doors)
        beyond = np.array(between_doors(plan)).reshape(len(plan), len(plan))
        for room, here in inside.items():
            metres[np.ix_(here, here)] = _apart(self._points[here], self._points[here])
            for other, there in inside.items():
                if other != room and exits[room] and exits[other]:
                    out = _apart(self._points[here], self._centers(exits[room]))
                    back = _apart(self._centers(exits[other]), self._points[there])
                    way = least(least(out, beyond[np.ix_(exits[room], exits[other])]), back)
                    metres[np.ix_(here, there)] = way
        return metres

    def _centers(self, doors: Iterable[int]) -> Points:
        return np.array([self._doors[door][2] for door in doors]).reshape(-1, 2)


def least(first: Metres, second: Metres) -> Metres:
    """Join two tables of lengths where the first ends and the second begins (the min-plus product)."""
    joined: Metres = np.full((len(first), second.shape[1]), math.inf)
    for row, lengths in enumerate(first):  # row by row: all sums at once would be a cube of thousands
        joined[row] = (lengths[:, None] + second).min(axis=0)
    return joined


def _apart(first: Points, second: Points) -> Metres:
    apart: Metres = np.hypot(first[:, None, 0] - second[None, :, 0], first[:, None, 1] - second[None, :, 1])
    return apart


def _distance(points: Points, boxes: Sequence[Thing]) -> Metres:
    """Measure from points to the nearest of some boxes."""
    nearest: Metres = np.full(len(points), math.inf)
    for box in boxes:
        x, z = (np.abs(points - flat(box.center)) - (box.size[0] / 2, box.size[2] / 2)).T
        nearest = np.minimum(nearest, np.hypot(np.maximum(0, x), np.maximum(0, z)))
    return nearest


def _hull(episode: Episode, room: int) -> tuple[Point, Point]:
    """Bound where one can stand in a room: walks lead straight to its doors, its things and its centre."""
    things = episode.by_id()
    inside = [thing for thing in episode.things if thing.id != room and episode.room_of(thing.id) == room]
    points = [
        (thing.center[0] + side * thing.size[0] / 2, thing.center[2] + side * thing.size[2] / 2)
        for thing in inside
        for side in (-1, 1)
    ]
    points += [flat(things[room].center)]
    points += [center for first, second, center in episode.doors if room in (first, second)]
    points += [start.position for start in episode.starts if start.room == room]
    bounds = np.array(points)
    low, high = bounds.min(axis=0), bounds.max(axis=0)
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def _around(box: Thing) -> Points:
    """Return points around a box at the distance CLOSE: on four sides and four quarter circles."""
    wide, deep = box.size[0] / 2, box.size[2] / 2
    across, along = _steps(2 * wide), _steps(2 * deep)
    turn = np.linspace(0, math.pi / 2, math.ceil(CLOSE * math.pi / 2 / GRAIN) + 1)
    sides = [(x, side * (deep + CLOSE)) for side in (-1, 1) for x in across - wide]
    sides += [(side * (wide + CLOSE), z) for side in (-1, 1) for z in along - deep]
    sides += [
        (right * (wide + CLOSE * math.cos(angle)), up * (deep + CLOSE * math.sin(angle)))
        for angle in turn
        for right in (-1, 1)
        for up in (-1, 1)
    ]
    around: Points = np.array(sides) + flat(box.center)
    return around


def _edge(boxes: Sequence[Thing], low: Point, high: Point) -> Points:
    """Sample the edge of what is within CLOSE of some boxes, where one can stand."""
    samples = []
    for number, box in enumerate(boxes):
        around = _around(box)
        others = [*boxes[:number], *boxes[number + 1 :]]
        samples.append(around[_distance(around, others) > CLOSE - GRAIN / 2])  # no edge inside another's
    edge = np.concatenate(samples)
    kept: Points = edge[((edge >= np.array(low) - GRAIN) & (edge <= np.array(high) + GRAIN)).all(axis=1)]
    return kept


def _steps(metres: float) -> Metres:
    return np.linspace(0, metres, math.ceil(metres / GRAIN) + 1)
