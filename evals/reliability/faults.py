"""Fail each call that changes a file in turn: the disk is full, the disk is broken, the process is killed.

Four commands are run one after another: remember three messages, remember one that changes them, forget a
memory, and list the memories. Each is run on a copy of what the commands before it left, with a fault at its
Nth call. It must end in a clear error, or do its work all the same; `verify` is asked what is so; the same
command is given again, after a repair where that was advised, and must leave what it leaves without a fault.
Memory that is mapped fails by a signal, not by a call: that is not tried.
"""

import asyncio
import errno
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pydantic import BaseModel, Field

from mneme.evals.commands import mneme, quiet
from mneme.evals.options import RUNS, Fresh, Out, Positive
from mneme.evals.reliability.calls import GO_ON, KILLED, Watched, compiled
from mneme.evals.reliability.elsewhere import NoAnswer, elsewhere
from mneme.evals.reliability.power import quick_place
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.stores.ledger import journal as versions
from mneme.stores.ledger.folder import GENERATION
from mneme.stores.ledger.journal import JOURNAL
from mneme.stores.ledger.manifest import MANIFEST, read_manifest
from mneme.stores.ledger.records import Version
from mneme.stores.ledger.sparse import copy_folder
from mneme.stores.ledger.verifying import verify

FAULTS = {"disk full": errno.ENOSPC, "disk broken": errno.EIO, "killed": KILLED}
UNCLEAR = ("Traceback", "panicked", "Unexpected ")
OUTCOMES = ("done all the same", "clear error", "killed", "unclear error", "lost", "not again")
TOLD = "I live in Oslo.\nMy sister Emily lives in Portland.\nI am allergic to peanuts.\n"
CHANGED = "My sister Emily moved to Boston.\n"
FORGOTTEN = "Oslo"
LONGEST = 120.0


class Options(BaseModel):
    """How many calls of each command fail, and where results go."""

    each: Positive = Field(
        6, description="Calls of each command that are failed, of each fault, evenly chosen."
    )
    out: Out = RUNS
    fresh: Fresh = False


class Kept(NamedTuple):
    """What a folder holds: every version, the contents of live memories, and what `verify` finds wrong."""

    versions: dict[str, str]
    contents: list[str]
    problems: list[str]


class Step(NamedTuple):
    """A command, the home before it, what that holds, what is held after it, and its number of calls."""

    name: str
    command: list[str]
    home: Path
    before: Kept
    after: Kept
    calls: int


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Fail calls of each command, and report how it ended and what was kept."""
    journal = open_journal(options.out, "faults", {"each": options.each}, fresh=options.fresh)
    with TemporaryDirectory(prefix="mneme-faults-", dir=quick_place()) as place:
        room = Path(place)
        library = await asyncio.to_thread(compiled, room)
        progress(0, 1, "the commands without faults")
        steps = await asyncio.to_thread(steps_in, room, library)
        cases = [
            (step, fault, number)
            for step in steps
            for fault in FAULTS
            for number in _chosen(step.calls, options.each)
        ]
        for done, (step, fault, number) in enumerate(cases, 1):
            case = f"{step.name}, {fault} at {number}"
            if case not in journal:
                journal.add(case, await asyncio.to_thread(attempt, step, fault, number, room, library))
            progress(done, len(cases), case)
    rows = [journal[f"{step.name}, {fault} at {number}"] for step, fault, number in cases]
    return report(rows, {step.name: step.calls for step in steps}, journal)


def _chosen(calls: int, each: int) -> list[int]:
    return sorted({1 + index * calls // each for index in range(each)}) if calls else []


def steps_in(room: Path, library: Path) -> list[Step]:
    """Run the commands without a fault, keeping the home before each of them."""
    (room / "told.txt").write_text(TOLD)
    (room / "changed.txt").write_text(CHANGED)
    home, steps = room / "home-0", list[Step]()
    home.mkdir()
    for number, name in enumerate(("remember", "change", "forget", "list")):
        before = known(home)
        following = room / f"home-{number + 1}"
        copy_folder(home, following)
        command = _command(name, room, before)
        calls = _run(command, following, library, 0, GO_ON).calls
        steps.append(Step(name, command, home, before, known(following), calls))
        home = following
    return steps


def _command(name: str, room: Path, before: Kept) -> list[str]:
    if name == "forget":
        told = [Version.model_validate_json(event) for event in before.versions.values()]
        [key] = {each.key for each in told if FORGOTTEN in str(each.value.get("content"))}
        return ["memories", "forget", key, "--yes"]
    if name == "list":
        return ["memories", "list"]
    file = room / ("told.txt" if name == "remember" else "changed.txt")
    return ["remember", str(file), "--agents", "rules"]


class Ran(NamedTuple):
    """How a command ended, what it said, how many calls it made, and which of them failed."""

    code: int
    said: str
    calls: int
    failed: str


def _run(command: Sequence[str], home: Path, library: Path, at: int, fault: int) -> Ran:
    calls, failed = 0, ""
    program = [sys.executable, "-m", "mneme", *command]
    with Watched(program, home, library, **quiet(home)) as watched:
        for call in watched.calls():
            calls += 1
            failed = call.kind if calls == at else failed
            watched.answer(fault if calls == at else GO_ON)
        assert watched.process.stderr is not None
        said = watched.process.stderr.read().decode(errors="replace")
        return Ran(watched.process.wait(), said, calls, failed)


def attempt(step: Step, fault: str, number: int, room: Path, library: Path) -> Row:
    """Fail one call of a command on a copy, look at what is left, and give the command again."""
    home = room / "attempt"
    copy_folder(step.home, home)
    try:
        ran = _run(step.command, home, library, number, FAULTS[fault])
        found = _looked(home)
        if found.problems:
            mneme(quiet(home), "repair", seconds=LONGEST)
        again = mneme(quiet(home), *step.command, seconds=LONGEST)
        outcome, why = judged(step, ran, _looked(home), again)
    finally:
        shutil.rmtree(home)
    said = ran.said[-300:]
    return {
        "step": step.name,
        "fault": fault,
        "call": ran.failed,
        "outcome": outcome,
        "why": why,
        "said": said,
        "problems": found.problems,
    }


def judged(step: Step, ran: Ran, now: Kept, again: subprocess.CompletedProcess[str]) -> tuple[str, str]:
    """Say how an attempt ended, and why, from what is held now and the command that was given again."""
    gone = step.before.versions.keys() & step.after.versions.keys() - now.versions.keys()
    if any(word in ran.said for word in UNCLEAR):
        return "unclear error", ran.said[-200:]
    if gone or now.problems:
        return "lost", f"{len(gone)} versions; {now.problems}"
    forgotten_before = step.name == "forget" and "has no memory" in again.stderr
    if now.contents != step.after.contents or (again.returncode and not forgotten_before):
        return "not again", f"{now.contents} {again.stderr[-200:]}"
    return ("killed" if ran.code < 0 else "clear error" if ran.code else "done all the same"), ""


def _looked(home: Path) -> Kept:
    try:
        return elsewhere(known, home)
    except NoAnswer as why:
        return Kept({}, [], [str(why)])


def known(home: Path) -> Kept:
    """Read what a home's ledger holds, and ask `verify`."""
    ledger = home / "ledger"
    manifest = read_manifest(ledger / MANIFEST)
    if manifest is None and not [*ledger.glob(f"{GENERATION}*")]:
        return Kept({}, [], [])
    problems = asyncio.run(verify(str(ledger))).problems
    manifest = read_manifest(ledger / MANIFEST)  # `verify` restores it from its copy
    assert manifest is not None
    entries = versions.read(ledger / f"{GENERATION}{manifest.generation:06d}" / JOURNAL).entries
    events = {point: payload["event"] for point, payload in entries if "event" in payload}
    heads = [json.loads(known[max(known)]) for known in versions.histories(entries).versions.values()]
    live = [head for head in heads if head["live"] and head["namespace"][-1] == "memories"]
    return Kept(events, sorted(head["value"]["content"] for head in live), problems)


def report(rows: list[Row], calls: dict[str, int], journal: Journal) -> Report:
    """Count the outcomes by fault and kind of call, and list the bad ones."""
    counts = Counter((row["fault"], row["call"], row["outcome"]) for row in rows)
    kinds = sorted({(fault, call) for fault, call, _ in counts})
    counted = [
        [f"{fault}: {call}", *(counts[fault, call, outcome] for outcome in OUTCOMES)] for fault, call in kinds
    ]
    total = Counter(row["outcome"] for row in rows)
    counted.append(["all", *(total[outcome] for outcome in OUTCOMES)])
    bad = [(row["case"], row["outcome"], row["why"][:100]) for row in rows if row["outcome"] in OUTCOMES[3:]]
    tables = [
        table("How a command ends whose Nth call fails", ["fault: call", *OUTCOMES], counted),
        table("Not as it must be", ["case", "outcome", "why"], bad, figures=False),
    ]
    asked = sum(bool(row["problems"]) for row in rows)
    notes = [f"{name}: {number} calls" for name, number in calls.items()]
    notes.append(f"`mneme verify` advised a repair in {asked} of {len(rows)} cases.")
    summary: Row = {"calls": calls, "repairs": asked, "outcomes": {each: total[each] for each in OUTCOMES}}
    return Report("faults", "rules", journal.path, rows, summary, tables, notes=notes)
