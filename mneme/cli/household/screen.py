"""The live screen of `--watch`: goals, members with their proposals and actions, and the manager's text."""

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.segment import Segment
from rich.text import Text

from mneme.api.household import moment_of
from mneme.api.household_runs import Line, brief
from mneme.environments.household.episode import Episode
from mneme.environments.household.play import Frame
from mneme.environments.household.scene import scenes

TERMINAL_COLOURS = ("red", "blue", "green", "magenta")


class Screen:
    """A live screen, used as a context manager; what does not fit the window is cut off at the end."""

    def __init__(self, episode: Episode, lines: Sequence[Line], console: Console) -> None:
        self._episode, self._frames = episode, list[Frame]()
        self._decision: Line = {}
        self._synopsis, self._fallbacks = "", 0
        for line in lines:
            self._recall(line)
        self._live = Live(self, console=console, auto_refresh=False)

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
        """Show proposals and allocation, the synopsis, or the changes of a step."""
        self._recall(line)
        self._live.refresh()

    def _recall(self, line: Line) -> None:
        if line["kind"] == "step":
            self._frames.append(Frame.model_validate({k: v for k, v in line.items() if k != "kind"}))
        elif line["kind"] == "decision" and line["step"] == "summarise":
            self._synopsis = line.get("synopsis", "")
        elif line["kind"] == "decision":
            self._decision = line
            self._fallbacks += "fallback" in line

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = console.render_lines(Group(*self._lines(console.is_terminal)), options, pad=False)
        for line in shown[: console.size.height - 1] if console.is_terminal else shown:
            yield from [*line, Segment.line()]

    def _lines(self, cut: bool) -> Iterator[Text]:
        """Yield goals and members, `cut` where they are too long, and the manager's text, wrapped."""
        rooms = self._frames[-1].rooms if self._frames else [start.room for start in self._episode.starts]
        now = moment_of(self._episode, scenes(self._episode, self._frames)[-1], rooms)
        proposals = [brief(each["action"]) for each in self._decision.get("proposals", ())]
        chosen = [*map(brief, self._decision.get("allocation") or ())] or proposals
        lines = [Text(f"{self._episode.category}, step {now.step}", style="bold")]
        lines += [Text(f"{goal.done} of {goal.count} {goal.what}") for goal in now.goals]
        for number, member in enumerate(now.members):
            words = [member.room, member.does, f"holds {' + '.join(member.holds)}" if member.holds else ""]
            if proposals:
                words += [f"proposes {proposals[number]}", f"is to do {chosen[number]}"]
            who = (f"{member.name} ", f"bold {TERMINAL_COLOURS[number]}")
            lines.append(Text.assemble(who, "; ".join(filter(None, words))))
        lines.append(Text(f"open: {', '.join(now.opened) or 'nothing'}", style="dim"))
        for line in lines:
            line.no_wrap, line.overflow = cut, "ellipsis"
            yield line
        lost = f"no usable allocation ({self._fallbacks} so far)" if "fallback" in self._decision else ""
        said = (("manager", lost or self._decision.get("reason", "")), ("synopsis", self._synopsis))
        yield from (Text.assemble((f"{who}: ", "bold"), words) for who, words in said if words)
