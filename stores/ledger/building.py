"""Building the index of a ledger anew from the versions of a journal; the vectors are computed again."""

import asyncio
from itertools import chain, islice
from pathlib import Path
from typing import Any

import qdrant_edge as edge

from mneme.models.embedding.embedders import Embedder, vectors_of
from mneme.stores.ledger import journal
from mneme.stores.ledger.engine import Point, head_point
from mneme.stores.ledger.folder import Folder
from mneme.stores.ledger.journal import JOURNAL, Histories
from mneme.stores.ledger.manifest import Manifest
from mneme.stores.ledger.reconciling import points_of
from mneme.stores.ledger.records import Version, version_id
from mneme.stores.ledger.sealing import seal
from mneme.stores.ledger.shards import completed, guarded, make, to_point
from mneme.stores.ledger.words import words_of

AT_ONCE = 500


async def build(folder: Folder, manifest: Manifest, history: Histories, embedder: Embedder) -> Path:
    """Build a generation with these records, and switch to it; return its folder.

    Raises StorageFailure; then the generation in use is what it was.
    """
    making = await asyncio.to_thread(folder.fresh, manifest.generation)
    shard = await asyncio.to_thread(guarded, make, making, manifest.dimension)
    others = [Point(point, payload) for point, payload in history.others.items()]
    await asyncio.to_thread(_add, shard, others)
    roots = iter(history.versions)
    while some := list(islice(roots, AT_ONCE)):
        points = await _points({root: history.versions[root] for root in some}, embedder)
        await asyncio.to_thread(_add, shard, points)
    return await asyncio.to_thread(guarded, _finish, folder, manifest, shard, history)


async def _points(records: dict[str, dict[int, str]], embedder: Embedder) -> list[Point]:
    """Return all points of some records: each version, the head with its vectors, and the receipts."""
    heads = {root: Version.model_validate_json(known[max(known)]) for root, known in records.items()}
    vectors = await vectors_of(embedder, [head.text for head in heads.values() if head.live])
    return list(
        chain.from_iterable(
            (
                *(Point(version_id(root, number), {"event": event}) for number, event in known.items()),
                head_point(
                    root,
                    heads[root],
                    known[max(known)],
                    vectors.get(heads[root].text),
                    words_of(heads[root].text) if heads[root].text.strip() else None,
                ),
            )
            for root, known in records.items()
        )
    )


def _add(shard: edge.EdgeShard, points: list[Point]) -> None:
    if points:
        guarded(shard.update, edge.UpdateOperation.upsert_points([to_point(each) for each in points]))


def _finish(folder: Folder, manifest: Manifest, shard: edge.EdgeShard, history: Histories) -> Path:
    groups: dict[str, list[Any]] = {}
    for root, scope in history.placed.items():
        if root in history.versions:
            groups.setdefault(scope, []).append(root)
    for scope, ids in groups.items():
        shard.update(edge.UpdateOperation.set_payload(ids, {"scope": scope}))
    journal.write(folder.making(manifest.generation) / JOURNAL, points_of(shard))
    shard.close()
    completed(folder, manifest).close()
    seal(folder.shard)
    return folder.shard
