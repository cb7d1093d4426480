"""Reading the records of a ledger that another process has open.

The engine lets one process in, so the records are read from the journal, which is whole at every moment, and
a copy is made of them in a temporary folder. The copy has no vectors, since computing them takes too long:
it can be listed and read, and searched by words alone.
"""

import asyncio
import shutil
from pathlib import Path

from mneme.core.errors import Damaged, LedgerInUse, NotWritable, StorageFailure
from mneme.models.embedding.absent import Absent
from mneme.stores.ledger import journal
from mneme.stores.ledger.building import build
from mneme.stores.ledger.folder import GENERATION, Folder
from mneme.stores.ledger.journal import JOURNAL, Content
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.manifest import MANIFEST, Manifest, check_format, read_manifest
from mneme.stores.ledger.reading import ReadingEngine, make_room

TRIES = 5
"""Attempts to read a ledger while records are being forgotten."""


async def open_beside(location: Path, why: LedgerInUse) -> Ledger:
    """Open a copy of what the process that has the ledger open has written so far.

    Its writes raise NotWritable. Raises StorageFailure where there is no journal to read, and LedgerMismatch.
    """
    manifest, content = await asyncio.to_thread(read_beside, location)
    embedder = Absent(manifest.embedder, manifest.dimension)
    room = await asyncio.to_thread(make_room, location)
    try:
        folder = await asyncio.to_thread(Folder, room / "ledger")
        try:
            await build(folder, manifest, journal.histories(content.entries), embedder)
        finally:
            await asyncio.to_thread(folder.release)
        place = (location, room, embedder.name, embedder.dimension)
        engine = await asyncio.to_thread(ReadingEngine.open_in_room, *place)
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, room, ignore_errors=True)
        raise
    engine.refuse_writes(NotWritable(str(why), why.hint))
    return Ledger(engine, embedder)


def read_beside(location: Path) -> tuple[Manifest, Content]:
    """Read the journal of the generation in use, also while another one takes its place.

    Raises StorageFailure where there is none, Damaged, LedgerMismatch.
    """
    for _ in range(TRIES):
        manifest = read_manifest(location / MANIFEST)
        path = location / f"{GENERATION}{manifest.generation if manifest else 0:06d}" / JOURNAL
        if manifest is None or not path.exists():
            continue
        check_format(location, manifest.format)
        content = journal.read(path)
        if read_manifest(location / MANIFEST) == manifest:
            return manifest, _whole(path, content)
    raise StorageFailure(
        f"The ledger at {location} cannot be read, or was written by an older version.",
        "Open it once, e.g. with `mneme memories list`, then try again.",
    )


def _whole(path: Path, content: Content) -> Content:
    """Refuse a journal with damaged lines, but for a last one that is being written."""
    count = len(content.entries) + len(content.damaged)
    if [number for number in content.damaged if number < count]:
        raise Damaged(f"{path} is damaged; nothing was written.", "`mneme repair` builds the ledger anew.")
    return content
