"""The ledger: append-only versions of records in a log, found by meaning and by words in an index.

A write is one transaction of the log: a batch is stored as a whole or not at all, and survives a power cut
once it is acknowledged. The index follows the log and is joined with it, so every process finds what any has
written. Any number of processes may have one ledger open.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NotRequired, TypedDict, TypeVar, Unpack

from mneme.core.errors import Conflict, MnemeError
from mneme.models.embedding.absent import Absent
from mneme.models.embedding.embedders import EMBEDDED_AT_ONCE, Embedder, vectors_of
from mneme.stores.ledger import reading
from mneme.stores.ledger.log import Transaction, append, forget
from mneme.stores.ledger.lookup import Lookup, log, version_in, where_below
from mneme.stores.ledger.opening import Store, open_store, open_to_read
from mneme.stores.ledger.records import (
    Change,
    Forgotten,
    Namespace,
    Value,
    Version,
    Write,
    check,
    check_namespace,
    make_write,
)
from mneme.stores.ledger.transfer import Import, ImportReport

T = TypeVar("T")


class Stated(TypedDict):
    """What is said of every write."""

    change: Change
    idempotency_key: NotRequired[str | None]


class Expecting(Stated):
    """What is said of a write to a record that is there."""

    expected_version: int


class Ledger(Lookup):
    """Everything that any workflow remembers. Open one with `open_ledger`; close it when done."""

    async def insert(
        self,
        namespace: Namespace,
        value: Value,
        *,
        text: str,
        key: str | None = None,
        **stated: Unpack[Stated],
    ) -> Version:
        """Add a record. Raises Conflict where the key is taken, live or retired."""
        write = make_write(event="insert", namespace=namespace, key=key, value=value, text=text, **stated)
        return (await self.write([write]))[0]

    async def update(
        self, namespace: Namespace, key: str, value: Value, *, text: str | None, **stated: Unpack[Expecting]
    ) -> Version:
        """Give a live record a new value; a text of None keeps the text. Raises Conflict, NotFound."""
        write = make_write(event="update", namespace=namespace, key=key, value=value, text=text, **stated)
        return (await self.write([write]))[0]

    async def retire(self, namespace: Namespace, key: str, **stated: Unpack[Expecting]) -> Version:
        """Take a record out of every search, keeping its history. Raises Conflict, NotFound."""
        return (await self.write([make_write(event="retire", namespace=namespace, key=key, **stated)]))[0]

    async def write(self, writes: Sequence[Write]) -> list[Version]:
        """Store a batch, in order; a write whose idempotency key is known returns what it made then."""
        for write in writes:
            check(write)
        untold = [write.record for write in writes if write.text is None and write.event != "retire"]
        heads = await self.read(reading.heads_of, untold) if untold else {}
        texts = [*(write.text or "" for write in writes), *(head.text for head in heads.values())]
        vectors = await vectors_of(self._embedder, texts)
        made_with = (self._embedder.name, self._embedder.dimension)
        work = partial(append, batch=writes, vectors=vectors, now=self._clock.now, embedder=made_with)
        return await self._written(work)

    async def rolled_back(
        self,
        namespace: Namespace,
        key: str,
        to_version: int,
        expected_version: int | None,
        **stated: Unpack[Stated],
    ) -> Write:
        """Return the write of a rollback: a version that equals an older one. Raises Conflict, NotFound."""
        history = await self.history(namespace, key)
        target, head = version_in(history, to_version), history[-1]
        if not target.live and not head.live:
            raise Conflict(f"Record {key} is retired now, as it was at version {to_version}.")
        return make_write(
            event="retire" if not target.live else "update" if head.live else "restore",
            namespace=namespace,
            key=key,
            value=target.value,
            text=target.text,
            shelf=target.shelf,
            expected_version=head.version if expected_version is None else expected_version,
            **stated,
        )

    async def forget_all(
        self, namespace_prefix: Namespace, *, reason: str, actor: str, dropped: Sequence[Version] = ()
    ) -> int:
        """Erase every record below a prefix, retired ones too; return how many. `dropped` ones go as well."""
        where = where_below(check_namespace(namespace_prefix), retired=True)
        heads = await self.read(reading.records, where)
        if not (heads or dropped):
            return 0
        marks = await self.forget_records(heads, reason=reason, actor=actor, dropped=dropped)
        return sum(each is not None for each in marks)

    async def forget_records(
        self,
        heads: Sequence[Version] = (),
        *,
        reason: str = "",
        actor: str = "",
        rewritten: Sequence[tuple[Version, Value]] = (),
        dropped: Sequence[Version] = (),
    ) -> list[Forgotten | None]:
        """Erase these records and their histories in one transaction, then from the index: forgetting.

        The numbers of their versions are not used again: a later record of that key goes on after them.
        The embedded index is built anew without them: some seconds for 20,000 records.
        Return a note of each; None where somebody else was first, whose note stays. `rewritten` records lose
        their history too, but stay, with the value given, as they were first written; they must be records
        that search does not look at. Raises Conflict where one of them has been written to since it was read.
        Of `dropped` ones no note is left that they were there: a later one of the same key begins with
        version 1 again. So they must be what nobody changes who read it before, such as answers that are old.
        """
        mark = Forgotten(at=self._clock.now(), reason=reason, actor=actor)
        work = partial(forget, heads=heads, rewritten=rewritten, dropped=dropped, mark=mark)
        marks = await self._written(work, erases=True)
        if self._store.folder is not None:
            await asyncio.to_thread(self._store.folder.warn_of_aside)
        return marks

    async def import_(
        self,
        lines: Iterable[str],
        *,
        within: Namespace = (),
        check: Callable[[Value], None] | None = None,
    ) -> ImportReport:
        """Bring exported lines in, identical in every respect; a second time changes nothing.

        A broken line is reported with its number and its record left as it was; the rest goes on.
        What has been forgotten here stays forgotten. Lines outside the prefix `within` are refused, and
        those for whose value `check` raises BadInput.
        """
        return await Import(self._written, self._embedder, within, check).run(lines)

    async def _written(self, work: Callable[[Transaction], T], *, erases: bool = False) -> T:
        """Write, and let the index follow where it is open here; elsewhere it follows with a search."""
        if self._store.refusal is not None:
            raise self._store.refusal
        result = await self._log.write(work, erases=erases)
        await self._log.thread(self._store.index.erased if erases else self._store.index.written)
        return result

    def rebuild_index(self) -> None:
        """Build the index anew from the log; it blocks."""
        self._store.index.rebuild()
        self._store.index.erased()  # what nobody has open of it is removed


async def open_ledger(
    location: str, embedder: Embedder, *, api_key: str = "", reading: bool = False
) -> Ledger:
    """Open a ledger: in a folder, or with a log in Postgres and an index on a server (see `addresses`).

    It is made where it is new. What was written while the embedder was absent gets its vectors now. Whoever
    is only `reading` can open a folder that cannot be written, too: a copy of it, whose writes raise
    NotWritable. Raises LedgerMismatch, Damaged or StorageFailure.
    """
    opened = open_to_read if reading else open_store
    store = await asyncio.to_thread(opened, location, embedder.name, embedder.dimension, api_key)
    ledger = Ledger(store, embedder)
    try:
        is_due = store.refusal is None and not ledger.goes_by_words
        if is_due and (count := await embed_waiting(store, embedder)):
            log.info("Embedded %d records that had no vectors.", count)
            await store.log.thread(store.index.written)
    except BaseException:
        await ledger.close()
        raise
    return ledger


async def reembed(
    location: str, embedder: Embedder, *, api_key: str = "", progress: Callable[[int], None]
) -> int:
    """Change the embedder of a ledger; return the number of texts that were embedded.

    The new vectors are computed beside the old ones, then take their place. Other processes may go on
    meanwhile; afterwards they are told that the embedder has changed. A crash at any moment leaves the old
    vectors in use, and what was computed is used by the next attempt. `progress` is called with the number
    of records embedded so far. Raises LedgerMismatch, StorageFailure, and MnemeError where the embedder is
    absent.
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


async def embed_waiting(
    store: Store, embedder: Embedder, progress: Callable[[int], None] = lambda count: None
) -> int:
    """Embed every record that has a text and no vector by this embedder; return how many there were."""
    count = 0
    while waiting := await store.log.read(reading.unembedded, embedder.name, EMBEDDED_AT_ONCE):
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
    now = reading.heads_of(transaction.cursor, waiting)
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
