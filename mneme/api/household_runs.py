"""Household runs: each has a name, and a thread with its steps in checkpoints."""

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from mneme.core.errors import BadInput, Conflict, Damaged, NotFound
from mneme.core.private import close_to_others, is_shared, make_private_folder
from mneme.core.settings import settings
from mneme.environments.household.episode import Episode, parse_episode
from mneme.environments.household.generator import generate
from mneme.environments.household.play import Frame
from mneme.environments.household.rewards import discounted_return
from mneme.environments.household.scene import AGENT_NAMES
from mneme.environments.household.trace import Trace, frames_of
from mneme.graphs import METHOD_PLUGINS
from mneme.nodes.background import THREAD_NAME
from mneme.stores.checkpoints.checkpointer import latest_values, read_checkpoints
from mneme.stores.checkpoints.threads import threads_of
from mneme.stores.database import Cursor

MITA, ALONE = "mita", "alone"
DECISION_STEPS = ("allocate", "follow_proposals", "summarise", "plan")
"""Names of the graphs' steps that are decisions."""
METHOD_GRAPHS = {name: name for name in (MITA, "coela", "proagent", "mhp")} | {ALONE: MITA}
"""The graph that plays a method; alone is MiTa with one agent that neither allocates nor summarises."""


def methods() -> dict[str, str]:
    """Return the graph that plays each method, other packages' included."""
    return METHOD_GRAPHS | {name: name for name in entry_points(group=METHOD_PLUGINS).names}


ENDING = ("success", "steps", "progress", "counters", "answered_by")
"""Fields of the graph's result that a run's last line has in addition to the bound."""
RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
Line = Mapping[str, Any]
Told = Callable[[], Iterable[Line]]
RUN_METADATA = "household_run"
"""Key in the metadata of a run's checkpoints: what its command requested, and the bound, as JSON."""
UNREADABLE_ERRORS = (BadInput, Damaged, ValueError, LookupError, TypeError, AttributeError)
"""Errors of reading a damaged or forged run: whoever runs a graph can write any metadata."""


@dataclass(frozen=True)
class Run:
    """A run by its name: the checkpoints of its thread, or a file of an evaluation or an earlier version."""

    name: str
    told: Told = tuple
    """Reads its lines: the episode, each decision and step, and the end. Raises BadInput, Damaged."""

    @cached_property
    def lines(self) -> Sequence[Line]:
        """The run's lines; empty if it never began."""
        return [*self.told()]

    def first(self, kind: str) -> Line | None:
        """Return the first line of a kind, such as `episode` or `end`."""
        return next((line for line in self.lines if line["kind"] == kind), None)

    def begun(self) -> Line:
        """Return the first line; empty if the run never began or cannot be read."""
        try:
            return self.first("episode") or {}
        except UNREADABLE_ERRORS:
            return {}

    def context(self) -> dict[str, Any]:
        """Return the options with which it was begun."""
        return dict(self.begun().get("context", {}))

    def has_eyes(self) -> bool:
        """Return whether the run was played in the visual setting."""
        return bool(self.context().get("setting") == "visual")

    def missing(self) -> list[int]:
        """Return the steps that were played and are not in the run."""
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
        return frames_of(self.lines)

    def is_over(self) -> bool:
        """Return whether the run has its end; a killed command leaves a run without one."""
        return self.first("end") is not None and not self._lock.exists()

    @contextmanager
    def played_alone(self) -> Iterator[None]:
        """Lock the run while this process plays it. Raises Conflict if another process plays it."""
        make_private_folder(folder())
        if not is_shared(folder()):
            close_to_others(folder())  # earlier versions left it open
        lock = FileLock(self._lock, timeout=0, mode=0o600)
        try:
            lock.acquire()
        except Timeout as failure:
            another = "Wait until it ends, or play another one: --id ID."
            raise Conflict(f"Another process plays the run {self.name}.", another) from failure
        try:
            yield
        finally:
            self._lock.unlink(missing_ok=True)  # who has it open looks again, once it is released
            lock.release()

    @property
    def _lock(self) -> Path:
        return folder() / f"{self.name}.lock"


def folder() -> Path:
    """Return the folder of the locks of runs, and of the traces of earlier versions."""
    return settings().home / "household"


def lines_of(event: Line, agents: int) -> list[dict[str, Any]]:
    """Return the lines of a run for an event of its graph."""
    if event["step"] == "execute":
        return [{"kind": "step", **frame} for frame in event["frames"]]
    if event["step"] == "plan":  # of every member, also of those that decided nothing new
        chosen = {**dict.fromkeys(AGENT_NAMES[:agents], GOING_ON), **event["choices"]}
        proposals = [{"member": name, "reason": "", "action": action} for name, action in chosen.items()]
        event = {**event, "proposals": proposals}
    return [{"kind": "decision", **event}]


def run_lines(metadata: Mapping[str, Any], values: Mapping[str, Any]) -> Sequence[Line]:
    """Return the lines of a run by its thread's metadata and values."""
    thread, begun, events = metadata[THREAD_NAME], json.loads(metadata[RUN_METADATA]), values.get("lines", [])
    begun |= {"thread": thread} | ({"owner": metadata["owner"]} if "owner" in metadata else {})
    agents, bound = len(values["episode"]["starts"]), begun.pop("bound")
    later = [line for event in events for line in lines_of(event, agents)]
    # The first steps of a run that an earlier version began are in its file; a later run may have its name.
    at = events[0]["at"] if events else values["steps"]
    trace = Trace(folder() / f"{thread.split('/')[1]}.jsonl")
    first, *written = ([*trace.read()] if trace.path.exists() else []) or [{}]
    earlier = [
        line
        for line in (written if first.get("thread") == thread else ())
        if (line["step"] if line["kind"] == "step" else line.get("at", at + 1)) <= at and line not in later
    ]
    lines: list[Line] = [{"kind": "episode", "episode": values["episode"], **begun}, *earlier, *later]
    if values["over"]:
        came_to = discounted_return(parse_episode(values["episode"]), frames_of(lines))
        shared = values.get("shared", [])  # only names: no text that may be forgotten
        told = {"bound": bound, "return": came_to, "shared": shared}
        lines.append({"kind": "end", **told, **{name: values[name] for name in ENDING}})
    return lines


async def runs(beginning: str = "", threads: Set[str] | None = None) -> list[Run]:
    """Return the runs whose names begin so, of all threads or of these; the latest first."""
    found = await asyncio.to_thread(_of_files, beginning)
    for run in await read_checkpoints(partial(_of_threads, beginning, threads)):
        found.pop(run.name, None)  # what was written last is at the end
        found[run.name] = run
    return [*reversed(found.values())]


def _of_files(beginning: str) -> dict[str, Run]:
    """Return the runs of earlier versions by their names, the latest at the end."""
    files = sorted(folder().glob(f"{beginning}*.jsonl"), key=lambda path: path.stat().st_mtime)
    return {path.stem: Run(path.stem, Trace(path).read) for path in files}


def _of_threads(beginning: str, threads: Set[str] | None, cursor: Cursor) -> list[Run]:
    """Return the runs in threads, without those that never began."""
    found = list[Run]()
    for kept in threads_of(cursor):
        thread = str(kept.metadata.get(THREAD_NAME))
        is_asked = thread.startswith(f"household/{beginning}") and (threads is None or kept.id in threads)
        if not is_asked or RUN_METADATA not in kept.metadata:
            continue
        name = thread.split("/")[1]
        try:
            values = latest_values(cursor, kept.id)
        except ValueError as damage:
            found.append(Run(name, partial(_refuse, thread, damage)))
            continue
        if values.get("lines") or values.get("over"):
            found.append(Run(name, partial(run_lines, kept.metadata, values)))
    return found


def _refuse(thread: str, damage: ValueError) -> Sequence[Line]:
    raise Damaged(
        f"{thread} is damaged: {damage}.", f"Restore a backup, or `mneme threads delete {thread}`."
    ) from damage


async def run_named(name: str) -> Run:
    """Return a run that exists, by its name or by its file `….jsonl`. Raises NotFound."""
    file = Path(name)
    if file.suffix == ".jsonl" and file.exists():
        return Run(file.stem, Trace(file).read)
    known = [each for each in await runs(checked(name, "run")) if each.name == name]
    if not known:
        raise no_run(name)
    return known[0]


def no_run(name: str) -> NotFound:
    """Return the error for a run that does not exist, or that the caller may not see."""
    return NotFound(f"There is no run {name!r}.", "`mneme household list` shows all runs.")


def checked(name: str, field: str = "--id") -> str:
    """Return a run's name that can name a file. Raises BadInput, naming the field."""
    if not RUN_NAME.fullmatch(name):
        raise BadInput(f"{field}: {name!r} is not a valid name.", "Use letters, digits, '-', '_' and '.'.")
    return name


@dataclass(frozen=True)
class Request:
    """The episode, the context and the method that the command asks for."""

    episode: Episode
    context: Mapping[str, Any]
    method: str = MITA

    def differs(self, run: Run) -> list[str]:
        """Return the options in which a run's first command differs; empty if it never began."""
        if (begun := run.first("episode")) is None:
            return []
        played, before = run.episode(), begun["context"]
        named = [
            OPTION_NAMES.get(name, name) for name, each in self.context.items() if before.get(name) != each
        ]
        named += ["method"] * (begun.get("method", MITA) != self.method)
        named += ["members"] * (len(played.starts) != len(self.episode.starts))
        named += ["task"] * (played.category != self.episode.category)
        named = named or ["episode"] * (played != self.episode)
        return [f"--{name.replace('_', '-')}" for name in named]


OPTION_NAMES = {"member": "agents", "simulator": "virtualhome"}
"""Options whose names differ from those of the context fields that they set."""


async def to_play(wanted: str | None, described: str, request: Request) -> Run:
    """Return the run to start, or an unfinished one that was started with the same request.

    A run is unfinished if its command was killed; a server may have completed it meanwhile. Without a
    requested name, the default name gets a number until a run is free or matches. Raises BadInput if the run
    with the requested name is over, or was started with other options.
    """
    known = {run.name: run for run in await runs(wanted or described)}

    def suits(run: Run) -> bool:
        try:
            return not run.is_over() and not request.differs(run)
        except UNREADABLE_ERRORS:  # an unreadable run keeps its name
            return False

    if wanted is None:
        names = (described if number == 1 else f"{described}-{number}" for number in range(1, 10**6))
        numbered = (known.get(name, Run(name)) for name in names)
        return next(run for run in numbered if suits(run))
    run = known.get(wanted, Run(wanted))
    if run.is_over():
        raise BadInput(f"The run {wanted!r} is over.", f"See `mneme household replay {wanted}`.")
    if others := request.differs(run):
        raise BadInput(
            f"{', '.join(others)}: the run {wanted!r} was begun with another value.",
            "Continue it with the command that began it, or give another --id.",
        )
    return run


GOING_ON = "goes on; under way"


def unallocated(counters: Mapping[str, int]) -> str:
    """Return the number of rounds without a usable allocation, as a sentence; empty if there was none."""
    rounds = counters.get("unallocated", 0)
    return f"no usable allocation in {rounds} of {counters.get('rounds', rounds)} rounds" if rounds else ""


def brief(action: str) -> str:
    """Return only the action of a description: `gograb <wine> (72)`."""
    return re.split(r" in the |, about |, distance not known|; ", action)[0]
