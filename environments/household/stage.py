"""The floor plan of a household with everything that matters at a step: team, things, names, progress."""

from collections import Counter
from collections.abc import Collection, Mapping
from textwrap import fill, shorten
from typing import Any, NamedTuple, cast

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from PIL import Image

from mneme.environments.household.episode import Episode, Thing
from mneme.environments.household.labels import DOOR_RADIUS, Labels, around, name_containers, name_rooms
from mneme.environments.household.layout import Point, flat
from mneme.environments.household.scene import AGENT_NAMES, Scene

AGENT_COLOURS = ("#d1495b", "#2e6fb7", "#3a9d5d", "#8e5bb5")
FLOORS = ("#f7efe3", "#e9f1f7", "#eef5ea", "#f6ebf1", "#f3f1dd", "#ebeaf5")
INK, DIM, WALL, GOLD, MET = "#2b2b2b", "#8a8a8a", "#6b6259", "#c98a00", "#3a9d5d"
FILLS = ("#fbe7b2", "#a9a49d", "#ddd3c4")
"""Targets, shut containers, other furniture."""
INCHES = (12.0, 6.4)
"""The size of a picture."""
LEGEND = (
    "grey: closed   dashed: open   gold: where it is to be put\n"
    "◆ wanted thing   ◇ one that nobody has seen yet\n"
    "hatched: nobody was there   ○ door\n"
    "thick line: the latest steps"
)
UNKNOWN_STYLE = {"color": "white", "markeredgecolor": DIM}
"""Style of an object that the team does not know of."""
HATCH = "#c9c2b8"
TRAIL = 12
"""Latest steps of a path that are drawn strongly."""


class Stage:
    """The floor plan, drawn once, and what changes on it, drawn for each step."""

    def __init__(
        self,
        episode: Episode,
        dots: int,
        opened: Collection[int],
        synopses: Mapping[int, str],
        name: str,
    ) -> None:
        """Draw the static parts; `dots` are dots an inch, `opened` what is open at the end and named.

        The run's name and its latest synopsis, given by step, are written beside the plan.
        """
        self._episode, self._synopses, self._name = episode, synopses, name
        self._things = episode.by_id()
        names = episode.goal_names()
        self._wanted = [t for t in episode.things if t.category == "object" and t.name in names]
        self._targets = {goal.target for goal in episode.goals}
        figure = Figure(figsize=INCHES, dpi=dots, facecolor="white")
        self._canvas = cast(Any, FigureCanvasAgg(figure))  # its methods carry no types
        self._plan: Axes = figure.add_axes((0.01, 0.02, 0.68, 0.96))
        self._panel: Axes = figure.add_axes((0.70, 0.02, 0.29, 0.96))
        self._draw_plan()
        self._labels = self._write_names(opened)
        self._wishes: list[_Wish] = []
        self._panel.set(xlim=(0, 1), ylim=(0, 1))
        self._panel.text(0, 0.005, LEGEND, va="bottom", fontsize=7.5, color=DIM)
        for axes in (self._plan, self._panel):
            axes.set_axis_off()
        self._canvas.draw()  # once: each step is drawn over these pixels
        self._background = self._canvas.copy_from_bbox(figure.bbox)

    def shot(self, scene: Scene) -> Image.Image:
        """Draw a scene on the plan."""
        self._canvas.restore_region(self._background)
        self._wishes = []
        dark = [room for room in self._episode.rooms() if room.id not in scene.explored]  # nobody was there
        look: dict[str, Any] = {"facecolor": "none", "edgecolor": HATCH, "hatch": "///", "linewidth": 0}
        artists: list[Artist] = [self._plan.add_patch(_box(room, zorder=1, **look)) for room in dark]
        artists += [*self._furniture(scene), *self._items(scene), *self._team(scene)]
        for artist in [*artists, *self._named(scene), *self._report(scene)]:
            axes = artist.axes
            assert axes is not None
            axes.draw_artist(artist)
            artist.remove()
        # Copied, since the next shot is drawn into the same buffer.
        return Image.fromarray(np.asarray(self._canvas.buffer_rgba())[:, :, :3].copy())

    # ---------------------------------------------------------------- what stays

    def _draw_plan(self) -> None:
        rooms = self._episode.rooms()
        for number, room in enumerate(rooms):
            self._plan.add_patch(
                _box(room, facecolor=FLOORS[number % len(FLOORS)], edgecolor=WALL, linewidth=2.5)
            )
        for _, _, (x, z) in self._episode.doors:
            self._plan.add_patch(
                Circle((x, z), DOOR_RADIUS, facecolor="white", edgecolor=WALL, linewidth=1, zorder=2)
            )
        for thing in self._episode.things:
            if thing.category == "surface" and thing.id not in self._targets:
                self._plan.add_patch(_box(thing, facecolor=FILLS[2], edgecolor="none", zorder=1))
        ends = [
            (room.center[i] + side * room.size[i] / 2, i)
            for room in rooms
            for i in (0, 2)
            for side in (-1, 1)
        ]
        (left, right), (low, high) = (
            (min(at), max(at)) for at in ([x for x, i in ends if i == axis] for axis in (0, 2))
        )
        self._plan.set(xlim=(left - 0.4, right + 0.4), ylim=(low - 0.4, high + 0.4), aspect="equal")

    def _write_names(self, opened: Collection[int]) -> Labels:
        """Name rooms, and the containers that matter, where they cover nothing that stays."""
        labels = Labels(self._plan, self._canvas.get_renderer())
        for _, _, (x, z) in self._episode.doors:
            labels.keep_clear(x, z, 2 * DOOR_RADIUS, 2 * DOOR_RADIUS)
        for room in self._episode.rooms():
            labels.keep_walls_clear(room)
        for thing in self._episode.things:
            if thing.category == "container" or thing.id in self._targets:
                labels.keep_clear(*flat(thing.center), max(thing.size[0], 0.3), max(thing.size[2], 0.3))
        for thing in self._wanted:
            if self._things[self._episode.places[thing.id][1]].category != "container":
                labels.keep_clear(*flat(thing.center), 0.3, 0.3)
        name_rooms(labels, self._episode, fontsize=9, color=WALL, style="italic", zorder=3)
        name_containers(labels, self._episode, opened, fontsize=5.5, color=DIM, zorder=3)
        return labels

    # ---------------------------------------------------------------- what changes

    def _named(self, scene: Scene) -> list[Artist]:
        """Write the requested names, each where it covers nothing; held objects come first."""
        labels = self._labels.branched()
        for agent in range(len(scene.paths)):
            labels.keep_clear(*_apart(agent, scene), 0.72, 0.72)
        for wish in self._wishes:
            labels.keep_clear(wish.x, wish.z, 0.3, 0.3)
        pad = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
        look: dict[str, Any] = {"fontsize": 7.5, "bbox": pad, "zorder": 7}
        written = (
            labels.write(
                wish.text,
                around(wish.x, wish.z, wish.gap, wish.gap),
                anyway=True,
                color=wish.colour,
                weight=wish.weight,
                **look,
            )
            for wish in reversed(self._wishes)
        )
        return [text for text in written if text is not None]

    def _furniture(self, scene: Scene) -> list[Artist]:
        """Draw containers, shut or open, and the goals' targets, which are outlined and named."""
        artists: list[Artist] = []
        for thing in self._episode.things:
            if thing.category == "container" or thing.id in self._targets:
                artists.append(self._plan.add_patch(_box(thing, zorder=3, **self._look(thing, scene))))
            if thing.id in self._targets:
                gap = max(thing.size[2], 0.3) / 2 + 0.1
                self._wishes.append(_Wish(*flat(thing.center), thing.name, GOLD, gap, "bold"))
        return artists

    def _look(self, thing: Thing, scene: Scene) -> dict[str, Any]:
        edge = (
            {"edgecolor": GOLD, "linewidth": 2.6}
            if thing.id in self._targets
            else {"edgecolor": INK, "linewidth": 1}
        )
        if thing.category == "surface":
            return {"facecolor": FILLS[0], **edge}
        is_open = thing.id in scene.open
        return {"facecolor": "white" if is_open else FILLS[1], "linestyle": "--" if is_open else "-", **edge}

    def _items(self, scene: Scene) -> list[Artist]:
        """Draw the wanted things where they lie, hollow those that nobody has seen; piles have one name."""
        piles: dict[tuple[Point, bool], list[str]] = {}
        for thing in self._wanted:
            if thing.id in scene.places:
                piles.setdefault((self._spot(thing, scene), thing.id in scene.known), []).append(thing.name)
        artists: list[Artist] = []
        for ((x, z), is_known), names in piles.items():
            fill: dict[str, Any] = {"color": INK, "markeredgecolor": "white"} if is_known else UNKNOWN_STYLE
            artists += self._plan.plot(x, z, marker="D", markersize=6, zorder=6, **fill)
            words = ", ".join(name if n == 1 else f"{n} {name}" for name, n in Counter(names).items())
            self._wishes.append(_Wish(x, z, words, INK if is_known else DIM, 0.28))
        return artists

    def _spot(self, thing: Thing, scene: Scene) -> Point:
        """Return where an object is drawn: at its container or target, or at its start."""
        holder = self._things[scene.places[thing.id]]
        moved = self._episode.places[thing.id][1] != holder.id
        return flat(holder.center if moved or holder.category == "container" else thing.center)

    def _team(self, scene: Scene) -> list[Artist]:
        """Draw the agents' ways, then the agents by their initials."""
        artists: list[Artist] = []
        for agent, path in enumerate(scene.paths):
            xs, zs = zip(*path, strict=True)
            look: dict[str, Any] = {"color": AGENT_COLOURS[agent], "zorder": 4}
            artists += self._plan.plot(xs, zs, linewidth=1, alpha=0.35, **look)
            artists += self._plan.plot(xs[-TRAIL:], zs[-TRAIL:], linewidth=3, alpha=0.8, **look)
        letter: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 10, "weight": "bold"}
        for agent in range(len(scene.paths)):
            colour, (x, z) = AGENT_COLOURS[agent], _apart(agent, scene)
            body = Circle((x, z), 0.36, facecolor=colour, edgecolor="white", linewidth=1.5, zorder=8)
            artists.append(self._plan.add_patch(body))
            artists.append(self._plan.text(x, z, AGENT_NAMES[agent][0], color="white", zorder=9, **letter))
            if held := self._held(scene, agent):
                self._wishes.append(_Wish(x, z, held, colour, 0.45, "bold"))
        return artists

    def _held(self, scene: Scene, agent: int) -> str:
        return " + ".join(self._things[thing].name for thing in scene.hands[agent])

    def _report(self, scene: Scene) -> list[Artist]:
        """Write the progress, each agent's action, and the synopsis."""
        page = _Page(self._panel)
        page.write(self._episode.category, size=14, weight="bold")
        if self._name:
            page.write(shorten(self._name, 44, placeholder=" …"), size=9, colour=DIM)
        page.write(f"step {scene.step}", size=12)
        page.gap()
        for goal in self._episode.goals:
            target = self._things[goal.target].name
            page.bar(f"{goal.name} {goal.relation} {target}", scene.progress.get(goal.key, 0), goal.count)
        page.gap()
        for agent, doing in enumerate(scene.doing):
            page.write(AGENT_NAMES[agent], colour=AGENT_COLOURS[agent], weight="bold")
            page.write(f"holds {self._held(scene, agent) or 'nothing'}")
            page.write(shorten(doing, 44, placeholder=" …") or "is about to begin")
            page.gap()
        if said := [self._synopses[step] for step in sorted(self._synopses) if step <= scene.step]:
            page.write("synopsis", weight="bold", size=8.5)
            page.write(fill(shorten(said[-1], 260, placeholder=" …"), 48), size=8.5, colour="#555555")
        return page.artists


class _Wish(NamedTuple):
    """A name to be written at a step: the point it belongs to, its look, and its distance from the point."""

    x: float
    z: float
    text: str
    colour: str
    gap: float
    weight: str = "normal"


class _Page:
    """Lines from the top of a panel downwards."""

    def __init__(self, axes: Axes) -> None:
        self._axes, self._y = axes, 0.985
        self.artists: list[Artist] = []

    def write(self, text: str, size: float = 10, colour: str = INK, weight: str = "normal") -> None:
        look: dict[str, Any] = {"fontsize": size, "color": colour, "weight": weight}
        self.artists.append(self._axes.text(0, self._y, text, va="top", linespacing=1.25, **look))
        self._y -= 0.0032 * size * (1 + text.count("\n"))

    def gap(self) -> None:
        self._y -= 0.018

    def bar(self, words: str, done: int, of: int) -> None:
        """Write a goal, with a square for each of its objects."""
        for part in range(of):
            colour = MET if part < done else "#d9d9d9"
            square = Rectangle((0.72 + 0.055 * part, self._y - 0.026), 0.04, 0.024, facecolor=colour)
            self.artists.append(self._axes.add_patch(square))
        self.write(words, colour=MET if done >= of else INK)


def _apart(agent: int, scene: Scene) -> Point:
    """Return where an agent is drawn: beside other agents on the same spot."""
    x, z = scene.paths[agent][-1]
    before = [path[-1] for path in scene.paths[:agent]]
    crowd = sum(abs(x - other[0]) + abs(z - other[1]) < 0.5 for other in before)
    return x + 0.55 * crowd, z


def _box(thing: Thing, **look: Any) -> Rectangle:
    width, depth = max(thing.size[0], 0.3), max(thing.size[2], 0.3)
    return Rectangle((thing.center[0] - width / 2, thing.center[2] - depth / 2), width, depth, **look)
