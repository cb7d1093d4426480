"""Verifying a ledger in a folder, and building it anew from what is whole."""

import asyncio
import logging
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel

from mneme.core.errors import LedgerMismatch, MnemeError
from mneme.models.embedding.embedders import Embedder
from mneme.stores.ledger import journal
from mneme.stores.ledger.building import build
from mneme.stores.ledger.engine import Payload
from mneme.stores.ledger.folder import Folder
from mneme.stores.ledger.journal import JOURNAL, Content, Histories
from mneme.stores.ledger.manifest import MANIFEST
from mneme.stores.ledger.processes import pool
from mneme.stores.ledger.reconciling import disagreements, points_of, reconcile
from mneme.stores.ledger.sealing import differing, is_cut, mark_open, power_cut, read_seal, seal
from mneme.stores.ledger.shards import guarded, load
from mneme.stores.ledger.sparse import copy_folder

log = logging.getLogger(__name__)


class Verified(BaseModel):
    """What a verification found; everything is whole where there are no problems."""

    location: str
    records: int = 0
    versions: int = 0
    problems: list[str] = []


class Repaired(BaseModel):
    """What a repair built anew, what is lost, and where the damaged files are; `old` is empty for nothing."""

    location: str
    records: int = 0
    versions: int = 0
    lost: list[str] = []
    old: str = ""


class Gathered(NamedTuple):
    """All versions that are whole, and what is known to be missing."""

    history: Histories
    lost: list[str]


async def verify(location: str) -> Verified:
    """Read everything in a ledger's folder and compare it. Raises LedgerInUse, LedgerMismatch."""
    folder = await asyncio.to_thread(_own, location)
    try:
        return await asyncio.to_thread(_verify, folder)
    finally:
        await asyncio.to_thread(folder.release)


async def repair(location: str, embedder: Embedder) -> Repaired:
    """Build a ledger anew from its journal, and where that is damaged, from what the index still gives.

    What is whole stays as it is. The damaged files are set aside, and the vectors are computed again. Raises
    LedgerInUse, LedgerMismatch, StorageFailure.
    """
    folder = await asyncio.to_thread(_own, location)
    try:
        found = await asyncio.to_thread(_verify, folder)
        if not found.problems:
            return Repaired(**found.model_dump(exclude={"problems"}))
        return await _repair(folder, embedder)
    finally:
        await asyncio.to_thread(folder.release)


async def settle(location: str, embedder: Embedder) -> None:
    """Build a ledger's index anew after a power cut, from its journal, which holds all that was acknowledged.

    Raises Damaged where the journal is not whole: then a repair also reads what the index still gives.
    """
    folder = await asyncio.to_thread(_own, location)
    try:
        content = await asyncio.to_thread(_read, folder.shard)
        history = journal.histories(content.entries)
        if not (folder.shard / JOURNAL).exists() or not content.ends_torn or history.gaps:
            raise power_cut(folder.shard)
        log.warning("The machine stopped while the ledger was open: its index is built anew.")
        await _build_next(folder, history, embedder)
        await asyncio.to_thread(folder.clear_leftovers)
    finally:
        await asyncio.to_thread(folder.release)


def _own(location: str) -> Folder:
    path = Path(location).expanduser().resolve()
    if not (path / MANIFEST).exists() and not [*path.glob("generation-*")]:
        raise LedgerMismatch(f"There is no ledger at {path}.", "Set MNEME_LEDGER, or MNEME_HOME.")
    return Folder(path)


def _verify(folder: Folder) -> Verified:
    content = _read(folder.shard)
    history = journal.histories(content.entries)
    noted = read_seal(folder.shard)
    changed = differing(folder.shard, noted) if noted is not None else []
    problems = [f"{name} is damaged, or missing, or new" for name in changed]
    if is_cut(folder.shard):
        problems.append(str(power_cut(folder.shard)))
    problems = problems or _compared(folder.shard, sealed=noted is not None)
    return Verified(
        location=str(folder.path),
        records=len(history.versions),
        versions=sum(map(len, history.versions.values())),
        problems=problems,
    )


def _read(generation: Path) -> Content:
    path = generation / JOURNAL
    return journal.read(path) if path.exists() else Content([], [])


def _compared(generation: Path, *, sealed: bool) -> list[str]:
    """Compare the index with the journal; where they agree, seal what opening has changed."""
    try:
        mark_open(generation)
        shard = load(generation)
        guarded(lambda: reconcile(generation, shard, sealed=sealed))
        found = guarded(disagreements, generation, shard)
        guarded(shard.close)
    except MnemeError as damage:
        return [str(damage)]
    if not found:
        seal(generation)
    return found


async def _repair(folder: Folder, embedder: Embedder) -> Repaired:
    old = folder.shard
    found = await asyncio.to_thread(_gather, old)
    await asyncio.to_thread(folder.disown, old)
    await _build_next(folder, found.history, embedder)
    aside = await asyncio.to_thread(folder.set_aside, old, "is damaged, and has been built anew")
    versions = found.history.versions
    return Repaired(
        location=str(folder.path),
        records=len(versions),
        versions=sum(map(len, versions.values())),
        lost=found.lost,
        old=str(aside),
    )


async def _build_next(folder: Folder, history: Histories, embedder: Embedder) -> None:
    """Build the generation that follows the one in use, and switch to it."""
    manifest = folder.manifest
    assert manifest is not None
    await asyncio.to_thread(folder.check_space, 2 * folder.size())
    update = {
        "embedder": embedder.name,
        "dimension": embedder.dimension,
        "generation": manifest.generation + 1,
        "ordered": 0,
    }
    await build(folder, manifest.model_copy(update=update), history, embedder)


def _gather(generation: Path) -> Gathered:
    content = _read(generation)
    history = journal.histories(content.entries)
    if content.entries and not content.damaged and not history.gaps:
        return Gathered(history, [])
    salvaged = [entry for entry in _salvaged(generation) if entry[0] not in content.ids]
    history = journal.histories([*salvaged, *content.entries])
    missing = len(content.damaged) - len(salvaged)
    unknown = [f"{missing} damaged lines of {JOURNAL}"] if missing > 0 else []
    return Gathered(history, [*history.gaps, *unknown])


def _salvaged(generation: Path) -> list[tuple[str, Payload]]:
    """Read what a damaged index still gives, in a process of its own, which the engine may kill."""
    with tempfile.TemporaryDirectory(prefix="mneme-repair-") as room:
        copy_folder(generation, Path(room) / "copy")
        with pool(1) as alone, suppress(Exception):
            return alone.submit(_entries, Path(room) / "copy").result()
    return []


def _entries(generation: Path) -> list[tuple[str, Payload]]:
    found: list[tuple[str, Payload]] = []
    try:
        for point, payload in points_of(load(generation)):
            entry = journal.placement(payload) if "n" in payload else payload
            if entry:
                found.append((point, entry))
    except BaseException:  # noqa: BLE001  (a panic of the engine is no Exception; what came before it counts)
        return found
    return found
