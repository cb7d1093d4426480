"""Run commands of several kinds beside one another, without a server, and count what became of them.

Each command is a process of its own on one home, as a user starts it; some write, some only read. A command
waits for others at most so long as `mneme --wait` says. At the end everything that was written must be there.

A wait is what a command took beyond the same kind alone, so it has in it that the commands share the
machine's cores.
"""

import asyncio
import json
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from mneme.core.errors import MnemeError
from mneme.core.settings import settings
from mneme.evals.commands import quiet
from mneme.evals.options import RUNS, Fresh, Out, Positive
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.namespaces import user_namespace

READER = "reader"
SAID = "I live in Austin.\n"
KINDS = ("chat", "list", "remember", "search", "import", "export", "verify", "inbox")
WRITERS = ("chat", "remember", "import")


class Options(BaseModel):
    """How many commands, how many beside one another, how long each may wait, and where results go."""

    commands: Positive = Field(48, description="Number of commands, of eight kinds in turn.")
    at_once: list[Positive] = Field(
        [8, 48],
        min_length=1,
        description="Commands beside one another.",
        json_schema_extra={"option": "at-once"},
    )
    wait: float = Field(30, ge=0, description="Seconds that a command may wait for others.")
    out: Out = RUNS
    fresh: Fresh = False


class Done(NamedTuple):
    """What became of a command: its kind, the class of its error or "", and its seconds."""

    kind: str
    error: str
    seconds: float


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Run the commands at each width; first one of each kind alone."""
    configuration = {"commands": options.commands, "wait": options.wait}
    journal = open_journal(options.out, "queueing", configuration, fresh=options.fresh)
    widths = [1, *options.at_once]
    for number, width in enumerate(widths):
        if f"{width} at once" not in journal:
            count = len(KINDS) if width == 1 else options.commands
            journal.add(f"{width} at once", await _measure(count, width, options.wait))
        progress(number + 1, len(widths), f"{width} at once")
    return report([journal[f"{width} at once"] for width in widths], journal, options)


async def _measure(count: int, width: int, wait: float) -> Row:
    """Run so many commands in a new home; return what became of each, and which writers left no memory."""
    with TemporaryDirectory(prefix="mneme-queueing-") as folder:
        place = Place(Path(folder), wait)
        await place.prepare()
        room = asyncio.Semaphore(width)

        async def one(number: int) -> Done:
            async with room:
                return await place.run(KINDS[number % len(KINDS)], number)

        done = await asyncio.gather(*map(one, range(count)))
        written = [number for number, each in enumerate(done) if each.kind in WRITERS and not each.error]
        missing = await place.without_memories(written)
    told = [each._asdict() for each in done]
    return {"width": width, "done": told, "written": len(written), "missing": missing}


class Place:
    """A home, and commands that are run in it."""

    def __init__(self, folder: Path, wait: float) -> None:
        self._folder, self._exported = folder, ""
        self._environment = quiet(folder, MNEME_WAIT=str(wait))

    async def prepare(self) -> None:
        """Let the reader say something, so that there is something to read and to import."""
        await self._mneme("chat", "--user", READER, stdin=SAID)
        error, self._exported = await self._mneme("memories", "export", "-", "--user", READER)
        if error or not self._exported:
            raise MnemeError(f"The home cannot be prepared: {error}")

    async def run(self, kind: str, number: int) -> Done:
        """Run one command; those that write do so for a user of their own."""
        user, started = f"user-{number}", monotonic()
        stdin = {
            "chat": SAID,
            "remember": f"user: {SAID}",
            "import": self._exported.replace(f'"{READER}"', f'"{user}"'),
        }
        words = {
            "chat": ["chat", "--user", user],
            "remember": ["remember", "-", "--user", user],
            "import": ["memories", "import", "-", "--user", user],
            "list": ["memories", "list", "--user", READER],
            "search": ["memories", "search", "Austin", "--user", READER],
            "export": ["memories", "export", "-", "--user", READER],
            "verify": ["verify"],
            "inbox": ["inbox", "list", "--user", READER],
        }
        error, _ = await self._mneme(*words[kind], stdin=stdin.get(kind, ""))
        return Done(kind, error, monotonic() - started)

    async def _mneme(self, *words: str, stdin: str = "") -> tuple[str, str]:
        """Run a command; return the class of its error, or "", and what it printed."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "mneme", *words, "--json"),
            env=self._environment,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
        )
        printed, complaints = await process.communicate(stdin.encode())
        return _error(complaints) if process.returncode else "", printed.decode()

    async def without_memories(self, numbers: Sequence[int]) -> list[int]:
        """Return those whose user has no memory."""
        ledger = await open_ledger(str(self._folder / "ledger"), await open_embedder(settings().embedder))
        try:
            counts = [await ledger.count(user_namespace(f"user-{number}", "memories")) for number in numbers]
        finally:
            await ledger.close()
        return [number for number, count in zip(numbers, counts, strict=True) if not count]


def _error(complaints: bytes) -> str:
    """Return the class of the error that a command ended with."""
    last = complaints.decode().strip().rpartition("\n")[2]
    try:
        return str(json.loads(last)["error"])
    except (ValueError, KeyError, TypeError):
        return last[:100] or "no word"


def report(rows: Sequence[Row], journal: Journal, options: Options) -> Report:
    """Count what became of the commands at each width, and compare their times with the same kinds alone."""
    alone = {each["kind"]: each["seconds"] for each in rows[0]["done"]}
    counted = [_counted(row, alone) for row in rows[1:]]
    columns = [
        "at once",
        "commands",
        "succeeded",
        "failed",
        "median wait, s",
        "longest, s",
        "written",
        "lost",
    ]
    names = ["width", "commands", "succeeded", "why", "median_wait", "longest_wait", "written", "lost"]
    cells = [[str(each[name]) for name in names] for each in counted]
    kinds = Counter(each["kind"] for each in rows[-1]["done"])
    notes = [
        f"Kinds at the last width: {', '.join(f'{count} {kind}' for kind, count in kinds.items())}. "
        f"A command alone takes {median(alone.values()):.1f} s in the median.",
    ]
    return Report(
        "queueing",
        "rules",
        journal.path,
        list(rows),
        {"wait": options.wait, "widths": counted},
        [table(f"Commands beside one another, each waiting up to {options.wait:g} s", columns, cells)],
        notes=notes,
    )


def _counted(row: Row, alone: dict[str, float]) -> dict[str, Any]:
    done = [Done(**each) for each in row["done"]]
    failed = Counter(each.error for each in done if each.error)
    waits = [max(0.0, each.seconds - alone[each.kind]) for each in done if not each.error] or [0.0]
    return {
        "width": row["width"],
        "commands": len(done),
        "succeeded": len(done) - failed.total(),
        "failed": failed,
        "why": ", ".join(f"{count} {error}" for error, count in failed.items()) or "0",
        "median_wait": round(median(waits), 1),
        "longest_wait": round(max(waits), 1),
        "written": row["written"],
        "lost": len(row["missing"]),
    }
