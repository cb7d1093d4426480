"""Cut the power at every moment: does what was acknowledged survive?

Kills leave the system's memory of files whole; a power cut does not. A process writes to a ledger and to
checkpoints while every call that changes a file is recorded, those of the engine too. Then for moments
between two calls a folder is laid out as a cut at that moment leaves it (see `cutting`). It is opened in
another process as after a new start of the machine, and compared with what was acknowledged by then.
"""

import asyncio
import json
import random
import sys
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from mneme.core.errors import MnemeError
from mneme.evals.options import RUNS, Out, Positive
from mneme.evals.reliability.calls import Watched, compiled
from mneme.evals.reliability.cutting import Kept, Recorder, State, lay_out
from mneme.evals.reliability.damage import NAMESPACE, Scattered
from mneme.evals.reliability.elsewhere import NoAnswer, elsewhere
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger import sealing
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.reading import MEMORY
from mneme.stores.ledger.records import Version
from mneme.stores.ledger.verifying import repair

OUTCOMES = ("all there", "all there after a repair", "uncaught", "lost")
WRITER = "mneme.evals.reliability.power_writer"
SHOWN = 20
KEPT = ("nothing", "parts by chance", "everything")


class Options(BaseModel):
    """How many moments are tried, and where results go."""

    every: Positive = Field(8, description="One moment in so many is tried, in three ways, chosen by chance.")
    seed: int = Field(0, description="Seed of the moments and of what is kept by chance.")
    out: Out = RUNS


class Said(NamedTuple):
    """What was acknowledged by a moment, and which record was about to be forgotten or was."""

    versions: list[Version]
    checkpoints: set[str]
    backups: set[str]
    forgetting: set[str]
    forgotten: set[str]


class Told(NamedTuple):
    """What came of a cut, and what was missing."""

    outcome: str
    said: str = ""


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Record a process, cut the power at many moments, and report what was there afterwards."""
    journal = open_journal(options.out, "power", options.model_dump(include={"every", "seed"}), fresh=True)
    chance = random.Random(options.seed)  # noqa: S311  (no secret)
    with TemporaryDirectory(prefix="mneme-power-", dir=quick_place()) as room:
        progress(0, 1, "recording")
        recorder = await asyncio.to_thread(record, Path(room), lambda: chance.random() < 1 / options.every)
        cases = [(number, state, kept) for number, state in enumerate(recorder.states) for kept in KEPT]
        for done, (number, state, kept) in enumerate(cases, 1):
            case = f"{number}, {kept} kept"
            told = await asyncio.to_thread(cut, state, recorder.pages, _keeping(kept, case), Path(room))
            path = str(state.call.path.relative_to(recorder.root))
            journal.add(case, {"kept": kept, "kind": state.call.kind, "path": path, **told._asdict()})
            progress(done, len(cases), case)
    return report(journal, recorder.calls)


def quick_place() -> str | None:
    """Return a folder in memory where there is one: syncing costs nothing there."""
    return MEMORY if Path(MEMORY).is_dir() else None


def record(room: Path, is_wanted: Callable[[], bool]) -> Recorder:
    """Run the writer, and keep the state before those of its calls that are wanted, and the last one."""
    home = room / "home"
    home.mkdir()
    recorder = Recorder(home, is_wanted)
    command = [sys.executable, "-m", WRITER]
    with Watched(command, home, compiled(room), MNEME_HOME=str(home)) as watched:
        for call in watched.calls():
            recorder.note(call, watched.printed)
            watched.answer()
        if watched.process.wait():
            assert watched.process.stderr is not None
            raise MnemeError(f"The writer failed: {watched.process.stderr.read().decode()[-500:]}")
        recorder.is_wanted = lambda: True
        recorder.note(call, watched.printed)
    return recorder


def _keeping(kept: str, seed: str) -> Kept:
    chance = random.Random(seed)  # noqa: S311  (no secret)
    return {
        "nothing": lambda: False,
        "everything": lambda: True,
        "parts by chance": lambda: chance.random() < 0.5,
    }[kept]


def cut(state: State, pages: dict[bytes, bytes], kept: Kept, room: Path) -> Told:
    """Lay out what a cut leaves, and look at it in another process."""
    with TemporaryDirectory(dir=room) as place:
        lay_out(state, pages, Path(place) / "home", kept)
        try:
            return elsewhere(look, Path(place) / "home", said(state))
        except NoAnswer as why:
            return Told("uncaught", str(why))


def said(state: State) -> Said:
    """Read what the writer had printed."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in state.said.splitlines()]
    of = {kind: {line[kind] for line in lines if kind in line} for kind in Said._fields[1:]}
    of |= {f"{kind}s": {line[kind] for line in lines if kind in line} for kind in ("checkpoint", "backup")}
    versions = [Version.model_validate(line["version"]) for line in lines if "version" in line]
    return Said(versions, **{name: of[name] for name in Said._fields[1:]})


def look(home: Path, said: Said) -> Told:
    """Open everything as after a new start of the machine, and compare it with what was acknowledged."""
    sealing.START = home / "no such start"
    return asyncio.run(_look(home, said))


async def _look(home: Path, said: Said) -> Told:
    outcome = OUTCOMES[0]
    try:
        ledger = await open_ledger(str(home / "ledger"), Scattered())
    except MnemeError:
        outcome = OUTCOMES[1]
        await repair(str(home / "ledger"), Scattered())
        ledger = await open_ledger(str(home / "ledger"), Scattered())
    try:
        missing = await _missing(ledger, said)
    finally:
        await ledger.close()
    missing += [f"thread {thread}" for thread in said.checkpoints - await _threads(home)]
    missing += [name for name in said.backups if zipfile.ZipFile(home / name).testzip() is not None]
    missing += [f"{key} forgotten" for key in said.forgotten if _is_in_files(home / "ledger", key)]
    return Told("lost", ", ".join(missing)) if missing else Told(outcome)


async def _missing(ledger: Ledger, said: Said) -> list[str]:
    """Name the versions that are not as they were acknowledged, and records that a search does not find."""
    wrong = []
    for version in said.versions:
        if version.key in said.forgetting:
            continue
        head = await ledger.get(NAMESPACE, version.key)
        if head is None or version not in await ledger.history(NAMESPACE, version.key):
            wrong.append(f"{version.key}, version {version.version}")
        elif head.live and version == head:
            found = await ledger.search(NAMESPACE, version.text, limit=1, mode="dense")
            if [hit.version for hit in found] != [head]:
                wrong.append(f"the vector of {version.key}")
    return wrong


async def _threads(home: Path) -> set[str]:
    async with open_checkpointer(str(home / "checkpoints.sqlite")) as saver:
        return {each.config["configurable"]["thread_id"] async for each in saver.alist(None)}


def _is_in_files(folder: Path, key: str) -> bool:
    return any(f'"{key}"'.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def report(journal: Journal, calls: int) -> Report:
    """Count the outcomes by what was kept, and list the bad ones."""
    rows: list[Row] = journal.rows
    counts = {kept: Counter(row["outcome"] for row in rows if row["kept"] == kept) for kept in KEPT}
    total = Counter(row["outcome"] for row in rows)
    counted = [
        [name, *(found[each] for each in OUTCOMES)] for name, found in [*counts.items(), ("all", total)]
    ]
    bad = [
        (row["case"], f"{row['kind']} …{row['path'][-40:]}", f"{row['outcome']}: {row['said']}"[:100])
        for row in rows
        if row["outcome"] in OUTCOMES[2:]
    ]
    tables = [
        table("What was acknowledged, by what was kept of the rest", ["kept", *OUTCOMES], counted),
        table("Not there", ["moment", "before", "what"], bad[:SHOWN], figures=False),
    ]
    tried = len({row["case"].split(",")[0] for row in rows})
    summary: Row = {"calls": calls, "tried": tried, "outcomes": {each: total[each] for each in OUTCOMES}}
    notes = [f"Tried {tried} of the {calls} moments before a call that changes or syncs a file."]
    return Report("power", "no model", journal.path, rows, summary, tables, notes=notes)
