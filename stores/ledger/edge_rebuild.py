"""The embedded ledger built anew, with another embedder or from damaged files."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import qdrant_edge as edge

from mneme.core.errors import LedgerMismatch
from mneme.stores.ledger.engine import Payload, Point
from mneme.stores.ledger.folder import Folder
from mneme.stores.ledger.journal import JOURNAL, write
from mneme.stores.ledger.manifest import MANIFEST, Manifest
from mneme.stores.ledger.reconciling import points_of
from mneme.stores.ledger.sealing import open_sealed, seal
from mneme.stores.ledger.shards import COPIED_AT_ONCE, completed, guarded, load, make, to_point


class EdgeRebuild:
    """The building of a new generation of an embedded ledger; start it with `begin`."""

    def __init__(self, folder: Folder, old: edge.EdgeShard, manifest: Manifest) -> None:
        self._folder, self._old, self._manifest = folder, old, manifest
        self._new = guarded(make, folder.fresh(manifest.generation), manifest.dimension)

    @classmethod
    def begin(cls, location: str, embedder: str, dimension: int) -> "EdgeRebuild":
        """Own the folder of a ledger, whatever its embedder. Raises LedgerInUse, LedgerMismatch."""
        path = Path(location).expanduser().resolve()
        if not (path / MANIFEST).is_file():
            raise LedgerMismatch(f"There is no ledger at {path}.")
        folder = Folder(path)
        try:
            assert folder.manifest is not None
            folder.check_space(2 * folder.size())
            update = {
                "embedder": embedder,
                "dimension": dimension,
                "generation": folder.manifest.generation + 1,
                "ordered": 0,
            }
            open_sealed(folder.shard)
            return cls(folder, load(folder.shard), folder.manifest.model_copy(update=update))
        except BaseException:
            folder.release()
            raise

    async def pages(self) -> AsyncIterator[dict[str, Payload]]:
        following: Any = None
        while True:
            request = edge.ScrollRequest(offset=following, limit=COPIED_AT_ONCE, with_payload=True)
            records, following = await asyncio.to_thread(guarded, self._old.scroll, request)
            yield {str(record.id): record.payload or {} for record in records}
            if following is None:
                return

    async def add(self, points: Sequence[Point]) -> None:
        operation = edge.UpdateOperation.upsert_points([to_point(each) for each in points])
        await asyncio.to_thread(guarded, self._new.update, operation)

    async def switch(self) -> None:
        await asyncio.to_thread(guarded, self._switch)

    async def close(self) -> None:
        await asyncio.to_thread(guarded, self._close)

    def _switch(self) -> None:
        write(self._folder.making(self._manifest.generation) / JOURNAL, points_of(self._new))
        self._new.close()
        completed(self._folder, self._manifest).close()  # the old generation is cleared on closing

    def _close(self) -> None:
        self._new.close()
        self._old.close()
        self._folder.clear_leftovers()
        if (self._folder.shard / JOURNAL).exists():
            seal(self._folder.shard)
        self._folder.release()
