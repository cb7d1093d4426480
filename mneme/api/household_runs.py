"""Household runs: each has a name, and a trace in the home folder."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from mneme.core.errors import BadInput, Conflict, NotFound
from mneme.core.private import close_to_others, is_shared, make_private_folder
from mneme.core.settings import settings
from mneme.environments.household.episode import Episode, parse_episode
from mneme.environments.household.generator import generate
from mneme.environments.household.play import Frame
from mneme.environments.household.scene import NAMES
from mneme.environments.household.trace import Trace
from mneme.graphs import PLUGGED

MITA, ALONE = "mita", "alone"
GRAPHS = {name: name for name in (MITA, "coela", "proagent", "mhp")} | {ALONE: MITA}
"""The graph that plays a method; alone is MiTa with one agent that neither allocates nor summarises."""


def methods() -> dict[str, str]:
    """Return the graph that plays each method, other packages' included."""
    return GRAPHS | {name: name for name in entry_points(group=PLUGGED).names}


ENDING = ("success", "steps", "progress", "counters", "answered_by")
"""What the last line of a trace has of the graph's result, beside the bound."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """A run by its name; its events are in its trace, in the home folder or in a file elsewhere."""

    name: str
    file: Path | None = None

    @property
    def trace(self) -> Trace:
        return Trace(self.file or folder() / f"{self.name}.jsonl")

    def lines(self) -> list[Line]:
        """Read the run's lines; none of one that is not there."""
        return [*self.trace.read()] if self.trace.path.exists() else []

    def first(self, kind: str) -> Line | None:
        """Return the first line of a kind, such as `episode` or `end`."""
        return next((line for line in self.lines() if line["kind"] == kind), None)

    def began(self) -> Line | None:
        """Return the first line, which says what is played; None if it is incomplete."""
        try:
            first = next(self.trace.read(), None)
        except BadInput:
            return None
        return first if first and first["kind"] == "episode" else None

    def owner(self) -> str | None:
        """Return who played it; None where that is not known, or it was played without a key."""
        return (self.began() or {}).get("owner")

    def context(self) -> dict[str, Any]:
        """Return the options that it was begun with."""
        return dict((self.began() or {}).get("context", {}))

    def has_eyes(self) -> bool:
        """Return whether it was played in the visual setting."""
        return bool(self.context().get("setting") == "visual")

    def missing(self) -> list[int]:
        """Return the steps that were played and are not in the trace."""
        end, written = self.first("end"), {frame.step for frame in self.frames()}
        played = end["steps"] if end else max(written, default=0)
        return [step for step in range(1, played + 1) if step not in written]

    def episode(self) -> Episode:
        """Return the episode that was played. Raises BadInput if the run was killed before it began."""
        line = self.first("episode")
        if line is None:
            raise BadInput(f"The run {self.name} never began.", "Start it again.")
        if made := line.get("generated"):
            return generate(**made)
        return parse_episode(line["episode"], self.name)

    def frames(self) -> list[Frame]:
        """Return the steps in order."""
        return self.trace.frames()

    @contextmanager
    def played_alone(self) -> Iterator[None]:
        """Hold the run while this process plays it. Raises Conflict where another process does."""
        path = folder() / f"{self.name}.lock"
        make_private_folder(path.parent)
        if not is_shared(path.parent):
            close_to_others(path.parent)  # earlier versions left it open
        lock = FileLock(path, timeout=0, mode=0o600)
        try:
            lock.acquire()
        except Timeout as failure:
            another = "Wait until it ends, or play another one: --name NAME."
            raise Conflict(f"Another process plays the run {self.name}.", another) from failure
        try:
            yield
        finally:
            path.unlink(missing_ok=True)  # a process that has it open looks again, once it is released
            lock.release()


def folder() -> Path:
    """Return the folder that holds the traces."""
    return settings().home / "household"


def run_named(name: str) -> Run:
    """Return a run that exists, by its name or by its file `….jsonl`. Raises NotFound."""
    file = Path(name)
    run = Run(file.stem, file) if file.suffix == ".jsonl" else Run(checked(name, "run"))
    if not run.trace.path.exists():
        raise no_run(name)
    return run


def no_run(name: str) -> NotFound:
    """Return the error for a run that is not there, or not for whoever asks."""
    return NotFound(f"There is no run {name!r}.", "`mneme household list` shows all runs.")


def runs() -> Iterator[Run]:
    """Return all runs, the latest first."""
    found = sorted(folder().glob("*.jsonl"), key=lambda path: path.stat().st_mtime, reverse=True)
    return (Run(path.stem) for path in found)


def checked(name: str, field: str = "--name") -> str:
    """Return a run's name that can name a file. Raises BadInput, naming the field."""
    if not NAME.fullmatch(name):
        raise BadInput(f"{field}: {name!r} is not a valid name.", "Use letters, digits, '-', '_' and '.'.")
    return name


@dataclass(frozen=True)
class Request:
    """The episode, the context and the method that the command asks for."""

    episode: Episode
    context: Mapping[str, Any]
    method: str = MITA

    def differs(self, run: Run, begun: Line) -> list[str]:
        """Return the options in which a run's first command differs."""
        played, before = run.episode(), begun["context"]
        named = [OPTIONS.get(name, name) for name, each in self.context.items() if before.get(name) != each]
        named += ["method"] * (begun.get("method", MITA) != self.method)
        named += ["members"] * (len(played.starts) != len(self.episode.starts))
        named += ["task"] * (played.category != self.episode.category)
        named = named or ["episode"] * (played != self.episode)
        return [f"--{name.replace('_', '-')}" for name in named]


OPTIONS = {"member": "agents", "simulator": "virtualhome"}
"""The options that set fields of a context which have other names."""


def to_play(wanted: str | None, described: str, request: Request) -> Run:
    """Return the run to begin, or an unfinished one that was begun with the same request.

    Without a wanted name, the default name gets a number until a run is free or matches.
    Raises BadInput if the run of the wanted name is over, or was begun with other options.
    """
    if wanted is None:
        numbered = (Run(described if number == 1 else f"{described}-{number}") for number in range(1, 10**6))
        return next(run for run in numbered if _suits(run, request))
    run = Run(checked(wanted))
    if run.first("end") is not None:
        raise BadInput(f"The run {wanted!r} is over.", f"See `mneme household replay {wanted}`.")
    begun = run.began()
    if begun is not None and (others := request.differs(run, begun)):
        raise BadInput(
            f"{', '.join(others)}: the run {wanted!r} was begun with another value.",
            "Continue it with the command that began it, or give another --name.",
        )
    return run


def _suits(run: Run, request: Request) -> bool:
    """Return whether a run can be begun or continued; a run that cannot be read keeps its name."""
    try:
        begun, is_over = run.began(), run.first("end") is not None
        return not is_over and (begun is None or not request.differs(run, begun))
    except BadInput:
        return False


GOING_ON = "goes on; under way"


def unallocated(counters: Mapping[str, int]) -> str:
    """Say in how many rounds no allocation was usable; nothing, where every one was."""
    rounds = counters.get("unallocated", 0)
    return f"no usable allocation in {rounds} of {counters.get('rounds', rounds)} rounds" if rounds else ""


def decision_of(event: Mapping[str, Any], agents: int) -> Line:
    """Return a graph's decision as a trace has it: of every agent, also of those that decided nothing new."""
    if event["step"] != "plan":
        return event
    chosen = {**dict.fromkeys(NAMES[:agents], GOING_ON), **event["choices"]}
    proposals = [{"member": name, "reason": "", "action": action} for name, action in chosen.items()]
    return {**event, "proposals": proposals}


def brief(action: str) -> str:
    """Return only the action of a description: `gograb <wine> (72)`."""
    return re.split(r" in the |, about |, distance not known|; ", action)[0]
