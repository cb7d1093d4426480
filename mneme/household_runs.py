"""Runs of the household: each has a name, and a trace in the home folder."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.household.episode import Episode, parse_episode
from environments.household.play import Frame
from environments.household.trace import Trace
from mneme.errors import BadInput, NotFound
from mneme.settings import settings

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """A run by its name; what it did is in its trace."""

    name: str

    @property
    def trace(self) -> Trace:
        return Trace(folder() / f"{self.name}.jsonl")

    def lines(self) -> list[Line]:
        """Read what the run did, less what was played again after a kill; nothing where it has not begun."""
        lines: dict[tuple[Any, ...], Line] = {}
        for line in self.trace.read() if self.trace.path.exists() else ():
            if line["kind"] == "resumed":
                lines = {key: each for key, each in lines.items() if _at(each) <= line["at"]}
            else:
                lines[line["kind"], _at(line), line["kind"] == "decision" and line["step"]] = line
        return list(lines.values())

    def first(self, kind: str) -> Line | None:
        """Give the first line of a kind: `episode`, `end`."""
        return next((line for line in self.lines() if line["kind"] == kind), None)

    @property
    def is_over(self) -> bool:
        return self.first("end") is not None

    def episode(self) -> Episode:
        """Give the episode that was played. Raises BadInput where the run was killed before it began."""
        told = self.first("episode")
        if told is None:
            raise BadInput(f"The run {self.name} never began.", "Start it again.")
        return parse_episode(told["episode"], self.name)

    def frames(self) -> list[Frame]:
        """Give the steps in order."""
        steps = sorted((line for line in self.lines() if line["kind"] == "step"), key=_at)
        return [Frame.model_validate({k: v for k, v in line.items() if k != "kind"}) for line in steps]


def _at(line: Line) -> int:
    """Give the step of the world that a line tells of; 0 for what is no step."""
    return int(line["step"] if line["kind"] == "step" else line.get("at", 0))


def folder() -> Path:
    """Return the folder that holds the traces."""
    return settings().home / "household"


def run_named(name: str) -> Run:
    """Return a run that exists. Raises NotFound."""
    run = Run(checked(name))
    if not run.trace.path.exists():
        raise NotFound(f"There is no run {name!r}.", "`mneme household list` shows them.")
    return run


def runs() -> Iterator[Run]:
    """Give all runs, the latest first."""
    found = sorted(folder().glob("*.jsonl"), key=lambda path: path.stat().st_mtime, reverse=True)
    return (Run(path.stem) for path in found)


def checked(name: str) -> str:
    """Return a run's name that can name a file. Raises BadInput."""
    if not NAME.fullmatch(name):
        raise BadInput(f"--name: {name!r} cannot name a run.", "Use letters, digits, '-', '_' and '.'.")
    return name


def to_play(wanted: str, described: str) -> Run:
    """Return the run to begin or to go on with: of the wanted name, or the next free one that describes it.

    Raises BadInput where a run of the wanted name is over.
    """
    if wanted:
        run = Run(checked(wanted))
        if run.is_over:
            raise BadInput(f"The run {wanted!r} is over.", f"See `mneme household replay {wanted}`.")
        return run
    numbered = (Run(described if number == 1 else f"{described}-{number}") for number in range(1, 10**6))
    return next(run for run in numbered if not run.is_over)


def brief(action: str) -> str:
    """Leave the action itself of how it was offered: `gograb <wine> (72)`."""
    return re.split(r" in the |, about |; ", action)[0]
