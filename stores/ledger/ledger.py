"""The ledger: append-only versions of records, found by meaning and by words, on either engine.

On the embedded engine a batch is stored as a whole or not at all, and survives a power cut once it is
acknowledged. On a server each record of a batch is stored by itself, and a record can be searched for a
moment after its version is safe.
"""

import asyncio
import difflib
import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from itertools import chain, product
from pathlib import Path
from typing import Any

from mneme.core.errors import BadInput, Conflict, NotFound, NotWritable, PowerCut, StorageFailure, needs
from mneme.models.embedding.absent import Absent
from mneme.models.embedding.embedders import Embedder, vectors_of
from mneme.stores.ledger.blending import blended
from mneme.stores.ledger.deciding import Prepared, missing, step
from mneme.stores.ledger.edge import EdgeEngine
from mneme.stores.ledger.embedding_later import embed_what_waits
from mneme.stores.ledger.engine import (
    DENSE,
    SPARSE,
    Condition,
    Engine,
    EngineInfo,
    Mode,
    Payload,
    Query,
    Ranking,
    Scored,
    Where,
    likeness,
    namespace_of,
    scope,
)
from mneme.stores.ledger.filters import conditions
from mneme.stores.ledger.forgetting import Forgotten, erasing
from mneme.stores.ledger.hints import hints_of
from mneme.stores.ledger.reading import ReadingEngine
from mneme.stores.ledger.records import (
    Change,
    Clock,
    Hit,
    Namespace,
    Value,
    Version,
    Write,
    check_name,
    check_namespace,
    check_value,
    key_of,
    make_write,
    microseconds,
    record_id,
    tombstone_id,
    version_id,
)
from mneme.stores.ledger.transfer import Accepted, ImportReport, import_lines
from mneme.stores.ledger.upgrading import upgrade
from mneme.stores.ledger.verifying import settle
from mneme.stores.ledger.words import words_asked, words_of

PAGE = 500


class Ledger:
    """Everything that any workflow remembers. Open one with `open_ledger`; close it when done."""

    def __init__(self, engine: Engine, embedder: Embedder) -> None:
        self._engine, self._embedder = engine, embedder
        self._clock = Clock()
        self._closed = False

    @property
    def goes_by_words(self) -> bool:
        """Whether every search goes by words, as the embedder is absent."""
        return isinstance(self._embedder, Absent)

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

    async def get(self, namespace: Namespace, key: str) -> Version | None:
        """Return the record as it is now, live or retired."""
        record = record_id(check_namespace(namespace), check_name(key, "key"))
        found = await self._engine.read([record])
        return _version(found[record]) if record in found else None

    async def history(self, namespace: Namespace, key: str) -> list[Version]:
        """Return every version, oldest first. Raises NotFound."""
        return await self._many([await self._head(namespace, key)])

    async def diff(self, namespace: Namespace, key: str, older: int, newer: int) -> str:
        """Return what changed between two versions, as a unified diff of their values and texts."""
        versions = {version.version: version for version in await self.history(namespace, key)}
        before, after = (_known(versions, key, number) for number in (older, newer))
        lines = difflib.unified_diff(
            _lines(before), _lines(after), f"version {older}", f"version {newer}", lineterm=""
        )
        return "\n".join(lines)

    async def as_of(self, namespace_prefix: Namespace, at: datetime) -> list[Version]:
        """Return the records that were live at that time, as they were; forgotten ones are gone."""
        if at.tzinfo is None:
            raise BadInput("A time needs its zone, e.g. 2026-01-31T12:00:00+00:00.")
        prefix = check_namespace(namespace_prefix, prefix=True)
        existing = Condition("created", "lte", microseconds(at))
        then: list[Version] = []
        async for heads in self._pages(_where(prefix, (existing,), retired=True)):
            changed = [head for head in heads if head.at > at]
            older = {(v.namespace, v.key): v for v in await self._many(changed) if v.at <= at}
            then += [older.get((head.namespace, head.key), head) for head in heads]
        return [version for version in then if version.live]

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
        """Write a new version that equals an older one. Raises Conflict, NotFound."""
        history = await self.history(namespace, key)
        target = _known({version.version: version for version in history}, key, to_version)
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

    async def records(  # noqa: PLR0913 (one name for each thing a caller may say)
        self,
        namespace_prefix: Namespace,
        *,
        filter: Mapping[str, Any] | None = None,
        limit: int = 100,
        offset: int = 0,
        include_retired: bool = False,
        shelf: str = "",
        newest_first: bool = False,
    ) -> list[Version]:
        """Return records in the order in which they were first written; a shelf's are always live.

        With `newest_first` it is the opposite order. Both take the longer the more are passed over.
        """
        prefix = check_namespace(namespace_prefix, prefix=True)
        if limit <= 0:
            return []
        where = _where(prefix, conditions(filter), retired=include_retired)
        if shelf:
            where = where._replace(scopes=(scope("+", prefix, shelf),))
        found = await self._engine.scan(where, limit, offset, newest_first=newest_first)
        return [_version(payload) for payload in found]

    async def search(  # noqa: PLR0913 (one name for each thing a caller may say)
        self,
        namespace_prefix: Namespace,
        query: str,
        *,
        limit: int = 10,
        offset: int = 0,
        mode: Mode = "hybrid",
        filter: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        ranking: Ranking | None = None,
        shelf: str = "",
        groups: Sequence[str] | None = None,
        vector: Sequence[float] | None = None,
    ) -> list[Hit]:
        """Return the live records that fit best.

        A score is the cosine (dense), the BM25 sum (bm25), the reciprocal-rank fusion of both
        (hybrid), the sum of `blending` (blend: the cosine, words, hints and what was told beside it), or the
        ranking's formula, which starts from the cosine; then the parts are its terms.
        `min_score` is in the same measure. A `shelf` narrows the search to that part of a namespace,
        `groups` to those of its groups. `vector` is the query's, where it is known already.

        Where the embedder is absent, every search goes by words. Then the likeness of BM25's sum stands
        for the score and in the ranking for the cosine, and no record reaches a `min_score`.
        """
        prefix = check_namespace(namespace_prefix, prefix=True)
        if ranking is not None and mode != "dense":
            raise BadInput('A ranking starts from the similarity: use it with mode="dense".')
        by_words = mode != "bm25" and self.goes_by_words
        if not query.strip() or limit <= 0 or (by_words and min_score is not None):
            return []
        mode = "bm25" if by_words and mode != "blend" else mode
        dense = None if mode == "bm25" else vector or await self.vector_of(query)
        words = None if mode == "dense" else words_asked(query)
        now = self._clock.now()
        days = now.timestamp() / 86_400
        wanted = [None] if groups is None else groups
        scopes = tuple(scope("+", prefix, shelf, group) for group in wanted) if prefix else ()
        where = Where(scopes, conditions(filter))
        asked = Query(where, mode, dense, words, limit, offset, min_score, ranking, days)
        if mode == "blend":
            found = await blended(self._engine, asked, hints_of(query, now.astimezone().date()))
            return [_hit(each, None, days) for each in found]
        found = await self._found(asked)
        if by_words and ranking is None:
            found = [each._replace(score=likeness(each.score)) for each in found]
        return [_hit(each, ranking, days) for each in found]

    async def _found(self, asked: Query) -> list[Scored]:
        try:
            return await self._engine.search(asked)
        except StorageFailure as failure:
            raise await self._unrankable(asked) or failure from None

    async def _unrankable(self, asked: Query) -> BadInput | None:
        """Return the error for a record that has several numbers to be ranked by, over which engines fail."""
        fields = asked.ranking.paths if asked.ranking is not None else ()
        where = asked.where if asked.where.scopes else _where(())
        heads = [head async for page in self._pages(where) for head in page] if fields else []
        for head, name in product(heads, fields):
            if isinstance(head.value.get(name), list):
                place = "/".join(head.namespace)
                return BadInput(
                    f"{head.key} in {place} cannot be ranked: its {name} is a list.",
                    "Give it one number, or a filter that leaves it out.",
                )
        return None

    async def vector_of(self, query: str) -> Sequence[float] | None:
        """Return the vector of a query, for several searches; None where the embedder is absent."""
        return None if self.goes_by_words else await self._embedder.embed_query(query)

    async def shelved(self, namespace: Namespace, shelf: str, group: str | None = None) -> int:
        """Return how many live records are on a shelf, or in one group of it."""
        return await self._engine.count(Where((scope("+", check_namespace(namespace), shelf, group),)))

    async def vectors(self, namespace: Namespace, shelf: str) -> dict[str, Sequence[float]]:
        """Return the vectors of the live records on a shelf, by the ids that `group` takes."""
        return await self._engine.vectors(Where((scope("+", check_namespace(namespace), shelf),)))

    async def vectors_by_ids(self, ids: Sequence[str]) -> dict[str, Sequence[float]]:
        """Return the vectors of these records, by their ids; those that have none are left out."""
        return await self._engine.vectors_by_ids(ids)

    async def by_ids(self, ids: Sequence[str]) -> dict[str, Version]:
        """Return records by the ids that `vectors` gives; those that are gone are left out."""
        return {point: _version(payload) for point, payload in (await self._engine.read(ids)).items()}

    async def group(self, namespace: Namespace, shelf: str, groups: Mapping[str, Sequence[str]]) -> None:
        """Divide a shelf into groups that can be searched by themselves; no version is made of it.

        A record that is written to afterwards is in no group (the group "") until the next time.
        """
        below = check_namespace(namespace)
        scopes = {scope("+", below, shelf, group): ids for group, ids in groups.items()}
        await self._engine.place(scope("+", below, shelf), scopes)

    async def namespaces(self, prefix: Namespace = (), *, include_retired: bool = False) -> list[Namespace]:
        """Return the namespaces that hold records, sorted."""
        where = _where(check_namespace(prefix, prefix=True), retired=include_retired)
        return sorted({namespace_of(word) for word in await self._engine.scopes(where)})

    async def count(
        self,
        prefix: Namespace = (),
        *,
        filter: Mapping[str, Any] | None = None,
        include_retired: bool = False,
    ) -> int:
        """Return the number of records."""
        below = check_namespace(prefix, prefix=True)
        return await self._engine.count(_where(below, conditions(filter), retired=include_retired))

    async def forget(self, namespace: Namespace, key: str, *, reason: str, actor: str) -> Forgotten:
        """Erase a record and its whole history from the disk. Raises NotFound.

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
        where = _where(check_namespace(namespace_prefix), retired=True)
        heads = [head async for page in self._pages(where) for head in page]
        if not (heads or dropped):
            return 0
        marks = await self.forget_records(heads, reason=reason, actor=actor, dropped=dropped)
        return sum(each is not None for each in marks)

    async def drop(self, heads: Sequence[Version]) -> None:
        """Erase records without a note that they were there."""
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

    async def forgotten(self, namespace_prefix: Namespace = ()) -> list[Forgotten]:
        """Return the log of erasures."""
        where = Where((scope("x", check_namespace(namespace_prefix, prefix=True)),))
        count = await self._engine.count(where)
        found = await self._engine.scan(where, count) if count else []
        return [Forgotten.model_validate_json(payload["forgotten"]) for payload in found]

    async def export(self, namespace_prefix: Namespace = ()) -> AsyncIterator[str]:
        """Yield every version as a line of JSON, record by record, oldest first."""
        where = _where(check_namespace(namespace_prefix, prefix=True), retired=True)
        async for heads in self._pages(where):
            of = {(head.namespace, head.key): head.version for head in heads}
            for version in await self._many(heads):
                number = of[version.namespace, version.key]
                yield f'{{"of":{number},{version.model_dump_json()[1:]}'

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

    async def info(self) -> EngineInfo:
        return await self._engine.info()

    async def close(self) -> None:
        """Flush and close the engine; a second time does nothing."""
        if not self._closed:
            self._closed = True
            await self._engine.close()

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

    async def _head(self, namespace: Namespace, key: str) -> Version:
        head = await self.get(namespace, key)
        if head is None:
            raise missing(namespace, key)
        return head

    async def _many(self, heads: Sequence[Version]) -> list[Version]:
        """Return the histories of these records, each oldest first."""
        ids = list(chain.from_iterable(map(_version_ids, heads)))
        found = await self._engine.read(ids)
        return [_version(found[version]) for version in ids if version in found]

    async def _pages(self, where: Where) -> AsyncIterator[list[Version]]:
        """Go through records in the order of their creation, also where some share a moment."""
        since, skipped = 0, 0
        while True:
            following = Condition("created", "gte", since)
            page = where._replace(conditions=(*where.conditions, following))
            found = await self._engine.scan(page, PAGE, skipped)
            if found:
                yield [_version(payload) for payload in found]
            if len(found) < PAGE:
                return
            last = found[-1]["created"]
            skipped = (skipped if last == since else 0) + sum(p["created"] == last for p in found)
            since = last


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


def _where(prefix: Namespace, extra: tuple[Condition, ...] = (), *, retired: bool = False) -> Where:
    scopes = (scope("+", prefix), scope("-", prefix)) if retired else (scope("+", prefix),)
    return Where(scopes, extra)


def _hit(scored: Scored, ranking: Ranking | None, now: float) -> Hit:
    version, parts = Version.model_validate_json(scored.event), scored.parts
    if ranking is not None:
        updated = version.at.timestamp() / 86_400
        similarity = parts[DENSE] if DENSE in parts else likeness(parts[SPARSE])
        parts = ranking.parts(similarity, version.value, updated, now)
    return Hit(version=version, score=scored.score, parts=parts)


def _version(payload: Payload) -> Version:
    return Version.model_validate_json(payload["event"])


def _version_ids(head: Version) -> list[str]:
    record = record_id(head.namespace, head.key)
    return [version_id(record, number) for number in range(1, head.version + 1)]


def _known(versions: Mapping[int, Version], key: str, number: int) -> Version:
    if number not in versions:
        raise NotFound(f"Record {key} has no version {number}; it has 1 to {max(versions)}.")
    return versions[number]


def _lines(version: Version) -> list[str]:
    shown = {"value": version.value, "text": version.text, "live": version.live}
    return json.dumps(shown, indent=2, sort_keys=True, ensure_ascii=False).splitlines()
