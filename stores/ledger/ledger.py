"""The ledger: append-only versions of records, found by meaning and by words, on either engine.

On the embedded engine a batch is stored as a whole or not at all, and survives a power cut once it is
acknowledged. On a server each record of a batch is stored by itself, and a record can be searched for a
moment after its version is safe.
"""

import asyncio
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from mneme.core.errors import Conflict, NotWritable, PowerCut, needs
from mneme.models.embedding.embedders import Embedder, vectors_of
from mneme.stores.ledger.deciding import Prepared, missing, step
from mneme.stores.ledger.edge import EdgeEngine
from mneme.stores.ledger.embedding_later import embed_what_waits
from mneme.stores.ledger.engine import (
    Engine,
    scope,
)
from mneme.stores.ledger.forgetting import Forgotten, erasing
from mneme.stores.ledger.lookup import Lookup, known_version, where_below
from mneme.stores.ledger.reading import ReadingEngine
from mneme.stores.ledger.records import (
    Change,
    Namespace,
    Value,
    Version,
    Write,
    check_name,
    check_namespace,
    check_value,
    key_of,
    make_write,
    record_id,
    tombstone_id,
)
from mneme.stores.ledger.transfer import Accepted, ImportReport, import_lines
from mneme.stores.ledger.upgrading import upgrade
from mneme.stores.ledger.verifying import settle
from mneme.stores.ledger.words import words_of


class Ledger(Lookup):
    """Everything that any workflow remembers. Open one with `open_ledger`; close it when done."""

    async def insert(  # noqa: PLR0913 (one name for each thing a caller may say)
        self,
        namespace: Namespace,
        value: Value,
        *,
        text: str,
        change: Change,
        key: str | None = None,
        idempotency_key: str | None = None,
    ) -> Version:
        """Add a record. Raises Conflict where the key is taken, live or retired."""
        return await self._one(
            event="insert",
            namespace=namespace,
            key=key,
            value=value,
            text=text,
            change=change,
            idempotency_key=idempotency_key,
        )

    async def update(  # noqa: PLR0913 (one name for each thing a caller may say)
        self,
        namespace: Namespace,
        key: str,
        value: Value,
        *,
        text: str | None,
        change: Change,
        expected_version: int,
        idempotency_key: str | None = None,
    ) -> Version:
        """Give a live record a new value; a text of None keeps the text. Raises Conflict, NotFound."""
        return await self._one(
            event="update",
            namespace=namespace,
            key=key,
            value=value,
            text=text,
            change=change,
            expected_version=expected_version,
            idempotency_key=idempotency_key,
        )

    async def retire(
        self,
        namespace: Namespace,
        key: str,
        *,
        change: Change,
        expected_version: int,
        idempotency_key: str | None = None,
    ) -> Version:
        """Take a record out of every search, keeping its history. Raises Conflict, NotFound."""
        return await self._one(
            event="retire",
            namespace=namespace,
            key=key,
            change=change,
            expected_version=expected_version,
            idempotency_key=idempotency_key,
        )

    async def restore(  # noqa: PLR0913 (one name for each thing a caller may say)
        self,
        namespace: Namespace,
        key: str,
        *,
        change: Change,
        expected_version: int,
        value: Value | None = None,
        text: str | None = None,
        idempotency_key: str | None = None,
    ) -> Version:
        """Bring a retired record back, as it was or with a new value. Raises Conflict, NotFound."""
        return await self._one(
            event="restore",
            namespace=namespace,
            key=key,
            value=value,
            text=text,
            change=change,
            expected_version=expected_version,
            idempotency_key=idempotency_key,
        )

    async def write(self, writes: Sequence[Write]) -> list[Version]:
        """Store a batch, in order; a write whose idempotency key is known returns what it made then."""
        for write in writes:
            _check(write)
        prepared = await self._prepare(writes)
        return await self._engine.append([step(each, self._clock.now) for each in prepared])

    async def rollback(  # noqa: PLR0913 (one name for each thing a caller may say)
        self,
        namespace: Namespace,
        key: str,
        to_version: int,
        *,
        change: Change,
        expected_version: int | None = None,
        idempotency_key: str | None = None,
    ) -> Version:
        """Write a new version that equals an older one: a rollback. Raises Conflict, NotFound."""
        history = await self.history(namespace, key)
        target = known_version({version.version: version for version in history}, key, to_version)
        head = history[-1]
        if not target.live and not head.live:
            raise Conflict(f"Record {key} is retired now, as it was at version {to_version}.")
        event = "retire" if not target.live else "update" if head.live else "restore"
        return await self._one(
            event=event,
            namespace=namespace,
            key=key,
            value=target.value,
            text=target.text,
            shelf=target.shelf,
            change=change,
            expected_version=head.version if expected_version is None else expected_version,
            idempotency_key=idempotency_key,
        )

    async def group(self, namespace: Namespace, shelf: str, groups: Mapping[str, Sequence[str]]) -> None:
        """Divide a shelf into groups that can be searched by themselves; no version is made of it.

        A record that is written to afterwards is in no group (the group "") until the next time.
        """
        below = check_namespace(namespace)
        heads = await self.by_ids([*chain.from_iterable(groups.values())])
        scopes: dict[str, list[str]] = {}
        for group, ids in groups.items():
            for point in heads.keys() & set(ids):
                scopes.setdefault(scope("+", below, heads[point].shelf, group), []).append(point)
        await self._engine.place(scope("+", below, shelf), scopes)

    async def compact(self) -> bool:
        """Put what is searched side by side in the files where many single writes have scattered it.

        On the embedded engine that is a rewrite of the store whenever it has doubled, some seconds for 20,000
        records, for which writers wait and searches do not. Return whether it was done.
        """
        return await self._engine.compact()

    async def forget(self, namespace: Namespace, key: str, *, reason: str, actor: str) -> Forgotten:
        """Erase a record and its whole history from the disk: forgetting. Raises NotFound.

        The numbers of its versions are not used again: a later record of that key goes on after them.
        On the embedded engine that is a rewrite of the store: some seconds for 20,000 records.
        """
        head = await self._head(namespace, key)
        [mark] = await self.forget_records([head], reason=reason, actor=actor)
        if mark is None:
            raise missing(namespace, key)
        return mark

    async def forget_all(
        self, namespace_prefix: Namespace, *, reason: str, actor: str, dropped: Sequence[Version] = ()
    ) -> int:
        """Erase every record below a prefix, retired ones too; return how many. `dropped` ones go as well."""
        where = where_below(check_namespace(namespace_prefix), retired=True)
        heads = [head async for page in self._pages(where) for head in page]
        if not (heads or dropped):
            return 0
        marks = await self.forget_records(heads, reason=reason, actor=actor, dropped=dropped)
        return sum(each is not None for each in marks)

    async def drop(self, heads: Sequence[Version]) -> None:
        """Erase records without a note of it: a later one of the same key begins with version 1 again.

        So it is only for what nobody changes who read it before, such as answers that are too old.
        """
        await self.forget_records([], reason="", actor="", dropped=heads)

    async def forget_records(
        self,
        heads: Sequence[Version],
        *,
        reason: str,
        actor: str,
        rewritten: Sequence[tuple[Version, Value]] = (),
        dropped: Sequence[Version] = (),
    ) -> list[Forgotten | None]:
        """Erase these records in one go, which on the embedded engine costs one rewrite of the store.

        Return a note of each; None where somebody else was first, whose note stays. `rewritten` records lose
        their history too, but stay, with the value given, as they were first written; they must be records
        that search does not look at. Raises Conflict where one of them has been written to since it was read.
        Of `dropped` ones no note is left that they were there.
        """
        mark, known = Forgotten(at=self._clock.now(), reason=reason, actor=actor), dict[str, int]()
        erasure = await self._engine.erase(lambda: erasing(heads, rewritten, dropped, mark, known))
        noted = {each.id: each.payload["forgotten"] for each in erasure.left if "forgotten" in each.payload}
        found = (noted.get(tombstone_id(record_id(head.namespace, head.key))) for head in heads)
        return [each and Forgotten.model_validate_json(each) for each in found]

    async def import_(
        self,
        lines: Iterable[str] | AsyncIterable[str],
        *,
        within: Namespace = (),
        check: Callable[[Value], None] | None = None,
    ) -> ImportReport:
        """Bring exported lines in, identical in every respect; a second time changes nothing.

        A broken line is reported with its number and its record left as it was; the rest goes on.
        What has been forgotten here stays forgotten. Lines outside the prefix `within` are refused, and
        those for whose value `check` raises BadInput.
        """
        return await import_lines(self._engine, self._embedder, lines, Accepted(within, check))

    async def _one(self, **fields: Any) -> Version:
        return (await self.write([make_write(**fields)]))[0]

    async def _prepare(self, writes: Sequence[Write]) -> list[Prepared]:
        texts = [await self._text(write) for write in writes]
        vectors = await vectors_of(self._embedder, texts)
        return [
            Prepared(write, key_of(write), vectors.get(text), words_of(text) if text.strip() else None)
            for write, text in zip(writes, texts, strict=True)
        ]

    async def _text(self, write: Write) -> str:
        """Return the text to embed: none for a retirement; the record's own where it is kept."""
        if write.event == "retire":
            return ""
        if write.text is not None or write.key is None:
            return write.text or ""
        head = await self.get(write.namespace, write.key)
        return head.text if head else ""


async def open_ledger(
    location: str, embedder: Embedder, *, api_key: str = "", reading: bool = False
) -> Ledger:
    """Open a folder (Qdrant Edge) or an http(s) URL (Qdrant server) as a ledger; make it where new.

    What was written while the embedder was absent gets its vectors now. Whoever is only `reading` can open a
    folder that cannot be written, too: a copy of it, whose writes raise NotWritable. Raises LedgerInUse,
    LedgerMismatch or StorageFailure.
    """
    if is_server(location):
        return await _ready(await _open_server(location, embedder, api_key), embedder)
    place = (Path(location), embedder.name, embedder.dimension)
    try:
        return await _ready(await _open_folder(place, embedder), embedder)
    except NotWritable as why:
        if not reading:
            raise
        copy = await asyncio.to_thread(ReadingEngine.open_copy, *place, why)
        ledger = await _ready(copy, embedder)
        copy.refuse_writes(why)
        return ledger


async def _ready(engine: Engine, embedder: Embedder) -> Ledger:
    """Bring a ledger up to date; close it where that fails."""
    await upgrade(engine)
    try:
        await embed_what_waits(engine, embedder)
    except BaseException:
        await engine.close()
        raise
    return Ledger(engine, embedder)


def is_server(location: str) -> bool:
    """Return whether a ledger's location is a server's address, not a folder."""
    return location == ":memory:" or location.startswith(("http://", "https://"))


async def _open_folder(place: tuple[Path, str, int], embedder: Embedder) -> Engine:
    try:
        return await asyncio.to_thread(EdgeEngine.open, *place)
    except PowerCut:
        await settle(str(place[0]), embedder)
    return await asyncio.to_thread(EdgeEngine.open, *place)


async def _open_server(location: str, embedder: Embedder, api_key: str) -> Engine:
    with needs("A Qdrant server", "qdrant"):
        module = await asyncio.to_thread(import_module, "mneme.stores.ledger.server")  # slow
    opened: Engine = await module.ServerEngine.open(
        location, embedder.name, embedder.dimension, api_key=api_key
    )
    return opened


def _check(write: Write) -> None:
    check_namespace(write.namespace)
    for name, what in ((write.key, "key"), (write.idempotency_key, "idempotency key")):
        if name is not None:
            check_name(name, what)
    if write.value is not None or write.text is not None:
        check_value(write.value or {}, write.text or "")
