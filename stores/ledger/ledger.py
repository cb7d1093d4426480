"""The ledger: append-only versions of records in a log, found by meaning and by words in an index.

A write is one transaction of the log: a batch is stored as a whole or not at all, and survives a power cut
once it is acknowledged. The index follows the log and is joined with it, so every process finds what any has
written. Any number of processes may have one ledger open.
"""

import asyncio
import difflib
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NotRequired, TypedDict, TypeVar, Unpack

from mneme.core.errors import BadInput, Conflict, MnemeError, NotFound
from mneme.models.embedding.absent import Absent
from mneme.models.embedding.embedders import TEXTS_PER_CALL, Embedder, vectors_of
from mneme.stores.ledger import reading
from mneme.stores.ledger.log import Transaction, append, forget
from mneme.stores.ledger.opening import Store, open_store, open_to_read
from mneme.stores.ledger.query import LedgerInfo, Where, namespace_of, scope, where_below
from mneme.stores.ledger.reading import CREATION_ORDER, Order, heads_of, state_of
from mneme.stores.ledger.records import (
    Change,
    Forgotten,
    Namespace,
    Value,
    Version,
    Write,
    check,
    check_name,
    check_namespace,
    make_write,
    microseconds,
    missing,
    record_id,
)
from mneme.stores.ledger.search import Search
from mneme.stores.ledger.transfer import Import, ImportReport

log = logging.getLogger(__name__)
T = TypeVar("T")
HISTORIES_PER_PAGE = 500
CLOSING_SECONDS = 2.0
"""Seconds that background work has to end when a ledger is closed."""


class WriteFields(TypedDict):
    """Keyword arguments of every write."""

    change: Change
    idempotency_key: NotRequired[str | None]


class Expecting(WriteFields):
    """Keyword arguments of a write to an existing record."""

    expected_version: int


class Ledger(Search):
    """The store of all records of all workflows. Open one with `open_ledger`; close it when done."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        super().__init__(store, embedder)
        self._closed = False
        self._beside = set[asyncio.Task[object]]()

    async def get(self, namespace: Namespace, key: str) -> Version | None:
        """Return the record as it is now, live or retired."""
        record = record_id(check_namespace(namespace), check_name(key, "key"))
        return (await self.read(heads_of, [record])).get(record)

    async def history(self, namespace: Namespace, key: str) -> list[Version]:
        """Return every version, oldest first. Raises NotFound."""
        record = record_id(check_namespace(namespace), check_name(key, "key"))
        found = await self.read(reading.histories, [record])
        if record not in found:
            raise missing(namespace, key)
        return found[record]

    async def diff(self, namespace: Namespace, key: str, older: int, newer: int) -> str:
        """Return what changed between two versions, as a unified diff of their values and texts."""
        history, shown = await self.history(namespace, key), {"value", "text", "live"}
        states = (numbered(history, number).model_dump(include=shown) for number in (older, newer))
        before, after = (
            json.dumps(each, indent=2, sort_keys=True, ensure_ascii=False).splitlines() for each in states
        )
        names = (f"version {older}", f"version {newer}")
        return "\n".join(difflib.unified_diff(before, after, *names, lineterm=""))

    async def as_of(self, namespace_prefix: Namespace, at: datetime) -> list[Version]:
        """Return the records that were live at that time, as they were; forgotten records are missing."""
        if at.tzinfo is None:
            raise BadInput("A time needs its zone, e.g. 2026-01-31T12:00:00+00:00.")
        then: list[Version] = []
        existing = Order(until=microseconds(at) + 1)  # the bound itself is excluded
        async for versions in self._histories(where_below(namespace_prefix, retired=True), existing):
            then += [version for version in versions if version.at <= at][-1:]
        return [version for version in then if version.live]

    async def records(  # noqa: PLR0913 (one name for each thing a caller may say)
        self,
        namespace_prefix: Namespace,
        *,
        filter: Mapping[str, Any] | None = None,
        limit: int | None = 100,
        offset: int = 0,
        include_retired: bool = False,
        shelf: str = "",
        newest_first: bool = False,
        order: Order | None = None,
    ) -> list[Version]:
        """Return records in the order in which they were first written; a shelf's are always live.

        Without a limit (None) all are returned. `newest_first` reverses the order; an `order` can sort by the
        last change instead, and bound the time. A larger `offset` takes longer.
        """
        where = where_below(namespace_prefix, filter, retired=include_retired, shelf=shelf)
        if limit is not None and limit <= 0:
            return []
        order = order or Order(descending=newest_first)
        return await self.read(reading.records, where, limit, offset, order)

    async def derived(self, namespace_prefix: Namespace) -> list[Version]:
        """Return the live records below a prefix that were made from others."""
        return await self.read(reading.derived_records, where_below(namespace_prefix))

    async def filled(self, namespace_prefix: Namespace, fields: Sequence[str]) -> list[Version]:
        """Return the live records that have a non-empty value in at least one of these fields."""
        read = self._log.database.field
        return await self._log.read(reading.records_with, where_below(namespace_prefix), fields, read)

    async def namespaces(self, prefix: Namespace = (), *, include_retired: bool = False) -> list[Namespace]:
        """Return the namespaces that hold records, sorted."""
        where = where_below(prefix, retired=include_retired)
        return sorted({*map(namespace_of, await self.read(reading.column, "DISTINCT h.scope", where))})

    async def count(self, prefix: Namespace = (), *, include_retired: bool = False, shelf: str = "") -> int:
        """Return the number of records; a shelf's are always live."""
        where = where_below(prefix, retired=include_retired, shelf=shelf)
        [count] = await self.read(reading.column, "count(*)", where)
        return int(count)

    async def forgotten(self, namespace_prefix: Namespace = ()) -> list[Forgotten]:
        """Return the tombstones of the records forgotten below a prefix."""
        below = scope("x", check_namespace(namespace_prefix, prefix=True))
        notes = await self.read(reading.tombstones, below)
        return [*map(Forgotten.model_validate_json, notes)]

    async def export(self, namespace_prefix: Namespace = ()) -> AsyncIterator[str]:
        """Yield every version as a JSON line, record by record, oldest first."""
        async for versions in self._histories(where_below(namespace_prefix, retired=True)):
            for version in versions:
                yield f'{{"of":{len(versions)},{version.model_dump_json()[1:]}'

    async def _histories(self, where: Where, order: Order = CREATION_ORDER) -> AsyncIterator[list[Version]]:
        """Yield the histories of records in the order of their creation, read in pages."""
        ids = await self.read(reading.column, "h.record", where, order)
        for start in range(0, len(ids), HISTORIES_PER_PAGE):
            page = await self.read(reading.histories, ids[start : start + HISTORIES_PER_PAGE])
            for versions in page.values():
                yield versions

    async def insert(
        self,
        namespace: Namespace,
        value: Value,
        *,
        text: str,
        key: str | None = None,
        **stated: Unpack[WriteFields],
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
        """Store a batch in order; a write whose idempotency key is known returns the version it made then."""
        for write in writes:
            check(write)
        # A record whose text stays needs its vector as well: that of the former version is deleted.
        untold = [write.record for write in writes if write.text is None and write.event != "retire"]
        heads = await self.read(heads_of, untold) if untold else {}
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
        **stated: Unpack[WriteFields],
    ) -> Write:
        """Return the write of a rollback: a version that equals an older one. Raises Conflict, NotFound."""
        history = await self.history(namespace, key)
        target, head = numbered(history, to_version), history[-1]
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
        """Erase the records below a prefix, retired too, and `dropped` ones; return how many were below."""
        where = where_below(check_namespace(namespace_prefix), retired=True)
        heads = await self.read(reading.records, where)
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

        Their version numbers are not used again: a later record of that key continues after them. Files of
        the embedded index are replaced in the background (see `edge_index`). Return a tombstone for each;
        None where another caller was first. `rewritten` records lose their history too, but stay with the
        given value as their only version; they must be records that are not searched. Raises Conflict if one
        of them was written to since it was read. `dropped` records leave no tombstone: a later record of the
        same key begins with version 1 again. So they must be records that no earlier reader updates, such as
        old answers.
        """
        if not (heads or rewritten or dropped):
            return []
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
        """Import exported lines unchanged; importing them a second time changes nothing.

        A broken line is reported with its number and its record stays as it was; other records are imported.
        Records forgotten here stay forgotten. Lines outside the prefix `within` are refused, and so are those
        for whose value `check` raises BadInput.
        """
        return await Import(self._written, self._embedder, within, check).run(lines)

    async def _written(self, work: Callable[[Transaction], T], *, erases: bool = False) -> T:
        """Write, then update the index; the next search updates an embedded index that is not open here."""
        if self._store.refusal is not None:
            raise self._store.refusal
        result = await self._log.write(work, erases=erases)
        await self._log.thread(self._store.index.erased if erases else self._store.index.written)
        return result

    def rebuild_index(self) -> None:
        """Build the index anew from the log. Blocks."""
        self._store.index.rebuild()
        self._store.index.erased()  # removes the copies that no process has open

    async def info(self) -> LedgerInfo:
        """Return where the log and the index are, and the number of entries."""
        store, state = self._store, await self.read(state_of)
        return LedgerInfo(
            kind="server" if store.place.index else "edge",
            location=store.origin.shown,
            entries=state.seq,
            layout=await self._log.thread(store.index.layout),
            **state._asdict(),
        )

    def begin(self, work: Coroutine[object, object, object]) -> "asyncio.Task[object]":
        """Start background work that may be cancelled; its caller must be able to repeat it."""
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[object]") -> None:
        self._beside.discard(task)
        if not task.cancelled() and (failure := task.exception()):
            log.warning("Upkeep failed, and is tried again later: %s", failure)

    async def close(self) -> None:
        """Flush and close the engine; a second time does nothing.

        Background work gets a moment to end, then it is stopped.
        """
        if self._closed:
            return
        self._closed = True
        if mine := [task for task in self._beside if task.get_loop() is asyncio.get_running_loop()]:
            _, late = await asyncio.wait(mine, timeout=CLOSING_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await asyncio.to_thread(self._store.close)


def numbered(history: Sequence[Version], number: int) -> Version:
    """Return the version of that number. Raises NotFound."""
    found = next((each for each in history if each.version == number), None)
    if found is None:
        first, last = history[0], history[-1]
        spread = f"it has {first.version} to {last.version}"
        raise NotFound(f"Record {last.key} has no version {number}; {spread}.")
    return found


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
        if store.place.index:  # copies in a folder are rebuilt when they are opened next: see `agrees`
            await store.log.thread(store.index.rebuild)
    finally:
        await asyncio.to_thread(store.close)
    return count


async def embed_waiting(
    store: Store, embedder: Embedder, progress: Callable[[int], None] = lambda count: None
) -> int:
    """Embed every record that has a text and no vector by this embedder; return how many there were."""
    count = 0
    while waiting := await store.log.read(reading.unembedded, embedder.name, TEXTS_PER_CALL):
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
    """Store the vectors of records, except of those that have been written to since."""
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
