"""Damage each file of a small ledger and of its checkpoints in four ways, then read everything back.

What a reader meets is one of four: the same as before; a clear error, which names what to do; an
exception that nobody caught, or a dead process; or less than before without a word, which is a silent
loss. After a clear error the ledger is repaired, and read once more. Each attempt is a process of its own
with a copy of its own.
"""

import asyncio
import hashlib
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from mneme.core.errors import MnemeError
from mneme.evals.options import RUNS, Fresh, Out, Positive
from mneme.evals.reliability.elsewhere import NoAnswer, elsewhere
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.engine import Mode
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.records import Change
from mneme.stores.ledger.sealing import SEAL, mark_open
from mneme.stores.ledger.sparse import copy_folder, parts
from mneme.stores.ledger.verifying import repair

NAMESPACE = ("users", "ann", "memories")
OUTCOMES = ("same", "clear error", "uncaught", "silent loss")
THREADS = 20


KNOWN = (
    ("ledger/mneme.json", "removed"),
    ("mutable_id_tracker.mappings", "halved"),
    ("flags_a.dat", "one bit flipped"),
    ("checkpoints.sqlite", "zeroed"),
    ("checkpoints.sqlite", "one bit flipped"),
)
"""Damage that did the most harm once: parts of the names of files, and the way."""


class Options(BaseModel):
    """How large the ledger is, and where results go."""

    records: Positive = Field(300, description="Number of records, some with several versions.")
    killed: bool = Field(False, description="Leave the files as a killed process does: without checksums.")
    out: Out = RUNS
    fresh: Fresh = False


class Scattered:
    """An embedder without a model: each text has a direction of its own."""

    name, dimension = "scattered", 16

    async def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        return [await self.embed_query(text) for text in texts]

    async def embed_query(self, text: str) -> list[float]:
        source = random.Random(text)  # noqa: S311  (no secret)
        return [source.gauss() for _ in range(self.dimension)]


def removed(path: Path) -> None:
    path.unlink()


def halved(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def zeroed(path: Path) -> None:
    size = path.stat().st_size
    os.truncate(path, 0)
    os.truncate(path, size)


def flipped(path: Path) -> None:
    """Turn one bit in the middle of what the file holds besides zeros."""
    held = [offset + n for offset, data in parts(path) for n, byte in enumerate(data) if byte]
    at = held[len(held) // 2] if held else path.stat().st_size // 2
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 0x10 if byte else 0x10]))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "removed": removed,
    "halved": halved,
    "zeroed": zeroed,
    "one bit flipped": flipped,
}


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Damage every file in every way, and report what readers meet."""
    configuration = {"records": options.records, "damages": [*DAMAGES], "killed": options.killed}
    journal = open_journal(options.out, "damage", configuration, fresh=options.fresh)
    with TemporaryDirectory(prefix="mneme-damage-") as folder:
        whole = Path(folder) / "whole"
        whole.mkdir()
        await make(whole, options.records)
        before = await read(whole)
        if options.killed:
            for path in whole.rglob(SEAL):
                mark_open(path.parent)
        files = sorted(str(path.relative_to(whole)) for path in whole.rglob("*") if path.is_file())
        cases = [(file, damage) for file in files for damage in DAMAGES]
        for number, (file, damage) in enumerate(cases):
            name = f"{_nameless(file)}: {damage}"
            if name not in journal:
                row = await asyncio.to_thread(attempt, whole, file, damage, before)
                journal.add(name, row)
            progress(number + 1, len(cases), name)
        return report([journal[f"{_nameless(file)}: {damage}"] for file, damage in cases], journal)


async def make(folder: Path, records: int) -> None:
    """Write a ledger with some histories, and checkpoints, and close both."""
    ledger = await open_ledger(str(folder / "ledger"), Scattered())
    change = Change(reason="told", actor="evaluation")
    for number in range(records):
        text = f"Memory {number} says that the box {number % 7} is behind door {number % 11}."
        made = await ledger.insert(
            NAMESPACE, {"content": text}, text=text, change=change, key=f"memory-{number:04d}"
        )
        if number % 10 == 0:
            await ledger.update(
                NAMESPACE, made.key, {"content": "no"}, text=text, change=change, expected_version=1
            )
    await ledger.close()
    async with open_checkpointer(str(folder / "checkpoints.sqlite")) as saver:
        for number in range(THREADS):
            await checkpoint(saver, f"thread-{number}")


async def checkpoint(saver: Any, thread: str) -> None:
    """Save a checkpoint of a thread, which is named `thread-NUMBER`."""
    words = [f"{thread} says {number}" for number in range(100)]
    saved = {
        "v": 4,
        "id": f"1f0c0000-0000-6000-8000-{int(thread[7:]):012d}",
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {"messages": words},
        "channel_versions": {"messages": "1"},
        "versions_seen": {},
    }
    config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    await saver.aput(config, saved, {"source": "loop", "step": 1}, {"messages": "1"})


class Seen(NamedTuple):
    """Digests of all that a reader sees: the records with their histories, and a search with the threads."""

    records: str
    others: str


async def read(folder: Path) -> Seen:
    """Open everything and read it."""
    ledger = await open_ledger(str(folder / "ledger"), Scattered())
    try:
        listed = [each.model_dump_json() for each in await ledger.records((), limit=10**6)]
        exported = [line async for line in ledger.export()]
        modes: tuple[Mode, ...] = ("dense", "bm25")
        hits = [await ledger.search(NAMESPACE, "box 3", limit=len(listed), mode=mode) for mode in modes]
        found = [sorted((round(hit.score, 4), hit.version.key) for hit in each) for each in hits]
    finally:
        await ledger.close()
    async with open_checkpointer(str(folder / "checkpoints.sqlite")) as saver:
        threads = sorted([json.dumps(each.checkpoint, default=str) async for each in saver.alist(None)])
    return Seen(_digest([listed, exported]), _digest([found, threads]))


def _digest(seen: object) -> str:
    return hashlib.sha256(json.dumps(seen).encode()).hexdigest()


def attempt(whole: Path, file: str, damage: str, before: Seen) -> Row:
    """Damage one file of a copy, read all of it in another process, and remove the copy."""
    with TemporaryDirectory(dir=whole.parent) as folder:
        copy = Path(folder) / "copy"
        copy_folder(whole, copy)
        DAMAGES[damage](copy / file)
        told = _read_elsewhere(copy, before)
    return {"file": _nameless(file), "damage": damage, **told._asdict()}


class Told(NamedTuple):
    """What an attempt met; `repaired`: whether a repair brought back every version, None without one."""

    outcome: str
    said: str = ""
    repaired: bool | None = None


def _read_elsewhere(folder: Path, before: Seen) -> Told:
    try:
        return elsewhere(_told, folder, before)
    except NoAnswer as why:
        return Told("uncaught", str(why))


def _told(folder: Path, before: Seen) -> Told:
    try:
        after = asyncio.run(read(folder))
    except MnemeError as error:
        repaired = asyncio.run(_repaired(folder, before)) if "checkpoints" not in str(error) else None
        return Told("clear error", f"{error} {error.hint}", repaired)
    return Told("same" if after == before else "silent loss")


async def _repaired(folder: Path, before: Seen) -> bool:
    """Repair the ledger; say whether every version is there again."""
    try:
        await repair(str(folder / "ledger"), Scattered())
        return (await read(folder)).records == before.records
    except BaseException:  # noqa: BLE001  (a panic of the engine is no Exception)
        return False


def _nameless(file: str) -> str:
    """Name the engine's files alike in every run: a segment's folder has a name by chance."""
    return "/".join("…" if len(part) > 30 and part.count("-") == 4 else part for part in file.split("/"))


def _outcomes(rows: list[Row], file: str, damage: str) -> str:
    found = {row["outcome"] for row in rows if file in row["file"] and row["damage"] == damage}
    return " or ".join(sorted(found))


def report(rows: list[Row], journal: Journal) -> Report:
    """Count the outcomes by damage, and list what was neither the same nor a clear error."""
    counts = {
        damage: Counter(row["outcome"] for row in rows if row["damage"] == damage) for damage in DAMAGES
    }
    total = Counter(row["outcome"] for row in rows)
    counted = [
        [name, *(found[each] for each in OUTCOMES)] for name, found in [*counts.items(), ("all", total)]
    ]
    bad = [
        (row["file"], row["damage"], f"{row['outcome']} {row['said']}"[:100])
        for row in rows
        if row["outcome"] in OUTCOMES[2:]
    ]
    files = len({row["file"] for row in rows})
    tried = [row for row in rows if row["repaired"] is not None]
    whole = sum(row["repaired"] for row in tried)
    tables = [
        table(f"What a reader meets, {files} files", ["damage", *OUTCOMES], counted),
        table("Neither the same nor a clear error", ["file", "damage", "outcome"], bad, figures=False),
    ]
    summary: Row = {"files": files, "outcomes": {each: total[each] for each in OUTCOMES}}
    summary["known"] = {f"{file}, {how}": _outcomes(rows, file, how) for file, how in KNOWN}
    summary["repaired"] = {"tried": len(tried), "whole": whole}
    notes = [
        f"`mneme repair` brought back every version in {whole} of {len(tried)} ledgers with a clear error."
    ]
    return Report("damage", "no model", journal.path, rows, summary, tables, notes=notes)
