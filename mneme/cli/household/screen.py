"""The live screen of `--watch`: rooms, hands, proposals, allocation, synopsis."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mneme.cli.household.runs import Line, brief
from mneme.environments.household.episode import Episode
from mneme.environments.household.play import Frame
from mneme.environments.household.scene import NAMES, Scene, scenes

COLOURS = ("red", "blue", "green", "magenta")
ROOM_WIDTH = 30


class Screen:
    """A live screen; used as a context manager."""

    def __init__(self, episode: Episode, lines: Sequence[Line], console: Console) -> None:
        self._episode = episode
        self._names = {thing.id: thing.name for thing in episode.things}
        self._rooms = [start.room for start in episode.starts]
        self._frames: list[Frame] = []
        self._decision: Line = {}
        self._synopsis = ""
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

    def decided(self, line: Line) -> None:
        """Show what was proposed and allocated, or the synopsis."""
        self._recall(line)
        self._live.update(self._view(), refresh=True)

    def stepped(self, frame: Frame) -> None:
        """Show what a step changed."""
        self._frames.append(frame)
        self._live.update(self._view(), refresh=True)

    def _recall(self, line: Line) -> None:
        if line["kind"] == "step":
            self._frames.append(Frame.model_validate({k: v for k, v in line.items() if k != "kind"}))
        elif line["kind"] == "decision" and line["step"] == "summarise":
            self._synopsis = line.get("synopsis", "")
        elif line["kind"] == "decision":
            self._decision = line

    def _view(self) -> RenderableType:
        scene = scenes(self._episode, self._frames)[-1]
        rooms = self._frames[-1].rooms if self._frames else self._rooms
        parts = [self._head(scene), Columns(self._plan(scene, rooms), equal=True), self._table(scene)]
        if self._decision.get("reason"):
            parts.append(_said("manager", self._decision["reason"]))
        if self._synopsis:
            parts.append(_said("synopsis", self._synopsis))
        return Group(*parts)

    def _head(self, scene: Scene) -> RenderableType:
        head = Table.grid(padding=(0, 1))
        head.add_row(Text(f"{self._episode.category}, step {scene.step}", style="bold"))
        for goal in self._episode.goals:
            done = scene.progress.get(goal.key, 0)
            words = f"{goal.name} {goal.relation} {self._names[goal.target]}"
            head.add_row(
                words, ProgressBar(total=goal.count, completed=done, width=20), f"{done} of {goal.count}"
            )
        return head

    def _plan(self, scene: Scene, rooms: Sequence[int]) -> list[RenderableType]:
        """Show each room with who is in it and which open containers it has."""
        panels: list[RenderableType] = []
        for room in self._episode.rooms():
            here = [number for number, where in enumerate(rooms) if where == room.id]
            who = Text(", ").join(Text(NAMES[n], style=f"bold {COLOURS[n]}") for n in here)
            opened = sum(self._episode.room_of(container) == room.id for container in scene.open)
            shut = sum(
                t.category == "container"
                and t.id not in scene.open
                and self._episode.room_of(t.id) == room.id
                for t in self._episode.things
            )
            body = Group(who, Text(f"{opened} open, {shut} shut", style="dim"))
            panels.append(Panel(body, title=room.name, width=ROOM_WIDTH))
        return panels

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


def _said(who: str, words: str) -> RenderableType:
    return Text.assemble((f"{who}: ", "bold"), words)
