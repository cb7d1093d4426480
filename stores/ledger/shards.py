"""Shards of the embedded engine: made, opened, filled and copied; its failures become errors of ours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import qdrant_edge as edge
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from mneme.core.errors import Damaged, MnemeError
from mneme.stores.ledger.engine import DENSE, SPARSE, Point
from mneme.stores.ledger.fingerprints import with_fingerprints
from mneme.stores.ledger.folder import Folder
from mneme.stores.ledger.manifest import MANIFEST, Manifest, read_manifest
from mneme.stores.ledger.sealing import damaged

T = TypeVar("T")
COPIED_AT_ONCE = 1000
Change = Callable[[list[edge.Point]], list[edge.Point]]
VECTORS: list[Any] = [edge.HasVectorCondition(DENSE), edge.HasVectorCondition(SPARSE)]
VERIFY = "`mneme verify` says whether files are damaged; `mneme repair` builds the ledger anew."


def guarded(work: Callable[..., T], *given: Any) -> T:
    """Do work of the engine; whatever it raises becomes Damaged, which says what to do."""
    try:
        return work(*given)
    except MnemeError:
        raise
    except BaseException as failure:
        if not _is_the_engines(failure):
            raise
        raise Damaged(f"The embedded ledger failed: {failure}.", VERIFY) from failure


def _is_the_engines(failure: BaseException) -> bool:
    """Say whether the engine failed: it raises bare Exception, and in a panic, something that is none."""
    return isinstance(failure, Exception) or type(failure).__name__ == "PanicException"


def make(path: Path, dimension: int) -> edge.EdgeShard:
    """Make an empty shard in an empty folder."""
    config = edge.EdgeConfig(
        vectors={DENSE: edge.EdgeVectorParams(size=dimension, distance=edge.Distance.Cosine)},
        sparse_vectors={SPARSE: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
    )
    shard = edge.EdgeShard.create(str(path), config)
    for field, index in (
        ("scope", edge.KeywordIndexParams(is_tenant=True, prefix=True)),
        ("created", edge.IntegerIndexParams(lookup=False, range=True)),
    ):
        shard.update(edge.UpdateOperation.create_field_index(field, index))
    return shard


def load(path: Path) -> edge.EdgeShard:
    """Open the shard of a generation. Raises Damaged."""
    segments = path / "segments"
    if not segments.is_dir() or not any(segments.iterdir()):  # else the engine begins with an empty one
        raise damaged(path, f"{segments} is missing")
    try:
        return _load(path)
    except BaseException as failure:
        if not _is_the_engines(failure):
            raise
        raise damaged(path, f"they cannot be opened: {failure}") from failure


# A process that is being killed lets go of the ledger's lock a moment before that of the engine's log.
@retry(
    retry=retry_if_exception(lambda failure: "WouldBlock" in str(failure)),
    stop=stop_after_delay(5),
    wait=wait_fixed(0.05),
    reraise=True,
)
def _load(path: Path) -> edge.EdgeShard:
    return edge.EdgeShard.load(str(path))


def doubled(shard: edge.EdgeShard) -> bool:
    """Say whether points are in two segments, as a process leaves those that it was moving when killed.

    Reading them gives the newer one; a search by words may find the older one too.
    """
    info = shard.info()
    return info.segments_count > 1 and info.points_count > shard.count(edge.CountRequest(exact=True))


def completed(folder: Folder, manifest: Manifest) -> edge.EdgeShard:
    """Switch to a generation whose files are written; open it first, so that it is known to be usable."""
    path = folder.complete(manifest)
    try:
        shard = load(path)
        folder.switch(manifest)
    except BaseException:
        if read_manifest(folder.path / MANIFEST) != manifest:
            folder.discard(path)
        raise
    return shard


def copy(
    source: edge.EdgeShard,
    target: edge.EdgeShard,
    change: Change,
) -> None:
    """Copy every point into another shard, page by page, each page changed on its way.

    What has vectors comes first, so that they lie side by side: the engine has room for a vector in every
    point, and comparing them takes two to three times as long where others lie between.
    """
    for wanted in (edge.Filter(should=VECTORS), edge.Filter(must_not=VECTORS)):
        _copy(source, target, change, wanted)


def _copy(source: edge.EdgeShard, target: edge.EdgeShard, change: Change, wanted: edge.Filter) -> None:
    following: Any = None
    while True:
        request = edge.ScrollRequest(
            offset=following, limit=COPIED_AT_ONCE, filter=wanted, with_payload=True, with_vector=True
        )
        records, following = source.scroll(request)
        points = change([edge.Point(r.id, r.vector or {}, r.payload) for r in records])
        if points:
            target.update(edge.UpdateOperation.upsert_points(points))
        if following is None:
            return


def to_point(point: Point) -> edge.Point:
    """Return a point as the engine takes it."""
    vectors: dict[str, Any] = {}
    if point.dense is not None:
        vectors[DENSE] = point.dense
    if point.words is not None:
        vectors[SPARSE] = edge.SparseVector(point.words.indices, point.words.values)
    return edge.Point(point.id, vectors, with_fingerprints(point))
