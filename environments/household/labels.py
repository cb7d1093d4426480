"""Placement of names on a floor plan, so that none covers another, a door or a piece of furniture."""

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from mneme.environments.household.episode import Episode, Thing

LABEL_GAP, WALL_GAP, DOOR_RADIUS = 0.08, 0.15, 0.42
"""Metres between a piece of furniture and its name, and a wall and its room's; half the width of a door."""


class Place(NamedTuple):
    """A point in metres, and the alignment of a name at it."""

    x: float
    z: float
    ha: str
    va: str


class Labels:
    """Names on a plan with fixed limits, each at the first free place."""

    def __init__(self, axes: Axes, renderer: Any) -> None:
        self._axes, self._renderer = axes, renderer
        self._taken: list[Bbox] = []
        axes.apply_aspect()

    def keep_clear(self, x: float, z: float, width: float, depth: float) -> None:
        """Keep names off an area, given by its centre and its sides."""
        corners = [(x - width / 2, z - depth / 2), (x + width / 2, z + depth / 2)]
        self._taken.append(Bbox(self._axes.transData.transform(corners)))

    def keep_walls_clear(self, room: Thing) -> None:
        """Keep names off a room's walls."""
        (x, z), (width, depth) = (room.center[0], room.center[2]), (room.size[0], room.size[2])
        for side in (-0.5, 0.5):
            self.keep_clear(x + side * width, z, WALL_GAP, depth)
            self.keep_clear(x, z + side * depth, width, WALL_GAP)

    def branched(self) -> "Labels":
        """Return a copy: names that are added to it do not change this one."""
        branch = Labels(self._axes, self._renderer)
        branch._taken = list(self._taken)  # what stays is measured once, not for each step
        return branch

    def write(self, name: str, places: Iterable[Place], *, anyway: bool = False, **look: Any) -> Text | None:
        """Write a name at the first free place; without one, leave the name out.

        With `anyway` it is then written where it covers least.
        """
        text = self._axes.text(0, 0, name, **look)
        covered: list[tuple[float, int, Place]] = []
        for number, place in enumerate(places):
            self._move(text, place)
            extent = text.get_window_extent(self._renderer)
            inside = Bbox.intersection(extent, self._axes.bbox)
            crossed = [inside, *(Bbox.intersection(extent, other) for other in self._taken)]
            within, *others = (float(box.width * box.height) if box else 0.0 for box in crossed)
            # In square dots; what lies off the plan counts ten times, since it would be cut off.
            outside = float(extent.width * extent.height) - within
            covered.append((10 * outside + sum(others), number, place))
            if not covered[-1][0]:
                break
        least, _, place = min(covered)  # by the number, the earlier of two that cover as much
        if least and not anyway:
            text.remove()
            return None
        self._move(text, place)
        self._taken.append(text.get_window_extent(self._renderer))
        return text

    def _move(self, text: Text, place: Place) -> None:
        text.set(x=place.x, y=place.z, ha=place.ha, va=place.va)


def around(x: float, z: float, across: float, along: float) -> list[Place]:
    """Return places around a point, the nearest first: above, below, at its sides, then farther away."""
    sides = {-1: ("right", "top"), 0: ("center", "center"), 1: ("left", "bottom")}
    ways = ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (-1, 1), (1, -1), (-1, -1))
    return [
        Place(x + right * (across + far), z + up * (along + far), sides[right][0], sides[up][1])
        for far in (0.0, 0.35, 0.8, 1.4)
        for right, up in ways
    ]


def name_rooms(labels: Labels, episode: Episode, **look: Any) -> list[Text]:
    """Write each room's name along a wall of it, or in its middle."""
    named: list[Text | None] = []
    for room in episode.rooms():
        x, z = room.center[0], room.center[2]
        across, along = room.size[0] / 2 - WALL_GAP, room.size[2] / 2 - WALL_GAP
        sides = [(x - across, "left"), (x, "center"), (x + across, "right")]
        heights = [(z + along, "top"), (z - along, "bottom"), (z, "center")]  # the walls before all others
        heights += [(z + part * along, "center") for part in (0.7, 0.5, 0.3, -0.3, -0.5, -0.7)]
        places = [Place(at, height, ha, va) for height, va in heights for at, ha in sides]
        named.append(labels.write(room.name, places, **look))
    return [text for text in named if text is not None]


def name_containers(labels: Labels, episode: Episode, opened: Collection[int], **look: Any) -> list[Text]:
    """Write the names of opened containers and, once per room, of the other containers of each kind.

    The goals' targets have names of their own.
    """
    targets = {goal.target for goal in episode.goals}
    containers = [each for each in episode.things if each.category == "container" and each.id not in targets]
    written: list[Text] = []
    kinds: set[tuple[int, str]] = set()
    for thing in sorted(containers, key=lambda each: each.id not in opened):
        kind = (episode.room_of(thing.id), thing.name)
        if thing.id not in opened and kind in kinds:
            continue
        room = next(room for room in episode.rooms() if room.id == kind[0])
        if text := labels.write(thing.name, _beside(thing, room), **look):
            kinds.add(kind)
            written.append(text)
    return written


def _beside(thing: Thing, room: Thing) -> list[Place]:
    """Return the places around a container that are in its room."""
    x, z = thing.center[0], thing.center[2]
    across, along = max(thing.size[0], 0.3) / 2 + LABEL_GAP, max(thing.size[2], 0.3) / 2 + LABEL_GAP
    return [
        place
        for place in around(x, z, across, along)
        if abs(place.x - room.center[0]) < room.size[0] / 2 - WALL_GAP
        and abs(place.z - room.center[2]) < room.size[2] / 2 - WALL_GAP
    ]
