"""Changing the embedder of a ledger: the new vectors are computed beside the old ones, then take their place.

Other processes may go on meanwhile; afterwards they are told that the embedder has changed. A crash at any
moment leaves the old vectors in use, and what was computed is used by the next attempt.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from mneme.core.errors import MnemeError
from mneme.models.embedding.absent import Absent
from mneme.models.embedding.embedders import EMBEDDED_AT_ONCE, Embedder, vectors_of
from mneme.stores.ledger.log import Transaction
from mneme.stores.ledger.opening import Store, open_store
from mneme.stores.ledger.reading import heads_of, unembedded
from mneme.stores.ledger.records import Version

Progress = Callable[[int], None]


async def reembed(location: str, embedder: Embedder, *, api_key: str = "", progress: Progress) -> int:
    """Rebuild a ledger for this embedder; return the number of texts that were embedded.

    `progress` is called with the number of records embedded so far. Raises LedgerMismatch, StorageFailure,
    and MnemeError where the embedder is absent.
    """
    if isinstance(embedder, Absent):
        raise MnemeError(*embedder.missing)
    store = await asyncio.to_thread(open_store, location, "", 0, api_key)
    try:
        count = await embed_waiting(store, embedder, progress)
        await store.log.write(partial(_switch, embedder=embedder.name, dimension=embedder.dimension))
        if store.place.index:
            await store.log.thread(store.index.rebuild)
    finally:
        await asyncio.to_thread(store.close)
    return count


async def embed_waiting(store: Store, embedder: Embedder, progress: Progress = lambda count: None) -> int:
    """Embed every record that has a text and no vector by this embedder; return how many there were."""
    count = 0
    while waiting := await store.log.read(unembedded, embedder.name, EMBEDDED_AT_ONCE):
        vectors = await vectors_of(embedder, [each.text for each in waiting.values()])
        await store.log.write(partial(_keep, waiting=waiting, vectors=vectors, embedder=embedder.name))
        count += len(waiting)
        progress(count)
    return count


def _keep(
    transaction: Transaction,
    waiting: Mapping[str, Version],
    vectors: Mapping[str, Sequence[float]],
    embedder: str,
) -> None:
    """Keep the vectors of records, but of those that have been written to since."""
    now = heads_of(transaction.cursor, waiting)
    for record, version in waiting.items():
        if record in now and now[record].version == version.version:
            if embedder == transaction.state.embedder:  # so that the index follows
                transaction.add("vector", record, version.version)
            transaction.put_vector(record, vectors[version.text], embedder)


def _switch(transaction: Transaction, embedder: str, dimension: int) -> None:
    """Put the new vectors in the place of the old ones."""
    transaction.add("embedder", body=embedder)
    transaction.state = transaction.state._replace(embedder=embedder, dimension=dimension)
    transaction.cursor.execute("DELETE FROM ledger_vectors WHERE embedder <> ?", (embedder,))
