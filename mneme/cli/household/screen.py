"""The live screen of `--watch`: rooms, hands, proposals, allocation, synopsis."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mneme.api.household_runs import Line, brief
from mneme.environments.household.episode import Episode
from mneme.environments.household.play import Frame
from mneme.environments.household.scene import NAMES, Scene, scenes

COLOURS = ("red", "blue", "green", "magenta")
ROOM_WIDTH = 30
WHOLE = 72
"""Columns of the window from which on the table of the members can be read."""


@dataclass
class Fitting:
    """What is shown as a whole where the window has room for it, else as its most important lines.

    `said` comes last; it may be long, and is wrapped as far as there is room.
    """

    whole: RenderableType
    lines: Sequence[Text]
    said: Sequence[Text]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        room, width = console.size.height - 1, options.max_width
        if not console.is_terminal or (width >= WHOLE and len(console.render_lines(self.whole)) <= room):
            yield self.whole
            return
        wrapped = [line for text in self.said for line in text.wrap(console, width)]
        for line in [*self.lines, *wrapped][:room]:
            line.truncate(width, overflow="ellipsis")
            yield line


class Screen:
    """A live screen; used as a context manager."""

    def __init__(self, episode: Episode, lines: Sequence[Line], console: Console) -> None:
        self._episode = episode
        self._names = {thing.id: thing.name for thing in episode.things}
        self._rooms = [start.room for start in episode.starts]
        self._frames: list[Frame] = []
        self._decision: Line = {}
        self._synopsis, self._fallbacks = "", 0
        for line in lines:
            self._recall(line)
        self._live = Live(self._view(), console=console, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()
        if not self._live.console.is_terminal:
            self._live.console.line()  # rich ends the last picture's line on a terminal alone

    def show(self, line: Line) -> None:
        """Show what was proposed and allocated, the synopsis, or what a step changed."""
        self._recall(line)
        self._live.update(self._view(), refresh=True)

    def _recall(self, line: Line) -> None:
        if line["kind"] == "step":
            self._frames.append(Frame.model_validate({k: v for k, v in line.items() if k != "kind"}))
        elif line["kind"] == "decision" and line["step"] == "summarise":
            self._synopsis = line.get("synopsis", "")
        elif line["kind"] == "decision":
            self._decision = line
            self._fallbacks += "fallback" in line

    def _view(self) -> RenderableType:
        """Show the goals, each room with who is in it, the members, and what the manager said."""
        scene = scenes(self._episode, self._frames)[-1]
        rooms = self._frames[-1].rooms if self._frames else self._rooms
        head = Table.grid(padding=(0, 1))
        head.add_row(Text(f"{self._episode.category}, step {scene.step}", style="bold"))
        for words, done, count in self._goals(scene):
            head.add_row(words, ProgressBar(total=count, completed=done, width=20), f"{done} of {count}")
        panels: list[RenderableType] = []
        for room, name, state in self._rooms_now(scene):
            here = [number for number, where in enumerate(rooms) if where == room]
            who = Text(", ").join(Text(NAMES[n], style=f"bold {COLOURS[n]}") for n in here)
            panels.append(Panel(Group(who, Text(state, style="dim")), title=name, width=ROOM_WIDTH))
        parts = [head, Columns(panels, equal=True), self._table(scene)]
        lost = f"no usable allocation ({self._fallbacks} so far)" if "fallback" in self._decision else ""
        told = (("manager", lost or self._decision.get("reason", "")), ("synopsis", self._synopsis))
        said = [Text.assemble((f"{who}: ", "bold"), words) for who, words in told if words]
        return Fitting(Group(*parts, *said), self._lines(scene, rooms), said)

    def _lines(self, scene: Scene, rooms: Sequence[int]) -> list[Text]:
        """Say the same in one line for each goal, member and room."""
        lines = [Text(f"{self._episode.category}, step {scene.step}", style="bold")]
        lines += [Text(f"{done} of {count} {what}") for what, done, count in self._goals(scene)]
        names = {room.id: room.name for room in self._episode.rooms()}
        for number, held in enumerate(scene.hands):
            carried = " + ".join(self._names[thing] for thing in held)
            said = [names[rooms[number]], scene.doing[number], f"holds {carried}" if carried else ""]
            who = (f"{NAMES[number]} ", f"bold {COLOURS[number]}")
            lines.append(Text.assemble(who, "; ".join(filter(None, said))))
        return lines + [Text(f"{name}: {state}", style="dim") for _, name, state in self._rooms_now(scene)]

    def _goals(self, scene: Scene) -> list[tuple[str, int, int]]:
        """Return each goal in words, how many things are where they should be, and how many should."""
        words = (f"{each.name} {each.relation} {self._names[each.target]}" for each in self._episode.goals)
        known = ((scene.progress.get(each.key, 0), each.count) for each in self._episode.goals)
        return [(what, done, count) for what, (done, count) in zip(words, known, strict=True)]

    def _rooms_now(self, scene: Scene) -> list[tuple[int, str, str]]:
        """Return each room's number, its name, and how many of its containers are open."""
        states = []
        for room in self._episode.rooms():
            inside = [
                thing.id in scene.open
                for thing in self._episode.things
                if thing.category == "container" and self._episode.room_of(thing.id) == room.id
            ]
            states.append((room.id, room.name, f"{sum(inside)} open, {len(inside) - sum(inside)} shut"))
        return states

    def _table(self, scene: Scene) -> RenderableType:
        """Show what each member holds, proposed, is to do, and does."""
        table = Table("", "holds", "proposes", "is to do", "does", expand=True)
        proposals = self._decision.get("proposals", [])
        allocation = self._decision.get("allocation") or [each["action"] for each in proposals]
        for number, held in enumerate(scene.hands):
            table.add_row(
                Text(NAMES[number], style=f"bold {COLOURS[number]}"),
                " + ".join(self._names[thing] for thing in held),
                brief(proposals[number]["action"]) if proposals else "",
                brief(allocation[number]) if allocation else "",
                Text(scene.doing[number]),
            )
        return table
