"""What a ledger is asked: records as they are and as they were, found by meaning and by words."""

import asyncio
import difflib
import json
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from datetime import datetime
from itertools import chain, product
from operator import mul
from typing import Any

from mneme.core.errors import BadInput, NotFound, StorageFailure
from mneme.models.embedding.absent import Absent
from mneme.models.embedding.embedders import Embedder
from mneme.stores.ledger.blending import blended
from mneme.stores.ledger.deciding import last_number, missing
from mneme.stores.ledger.engine import (
    CHANGED,
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
    section_name,
)
from mneme.stores.ledger.filters import conditions
from mneme.stores.ledger.forgetting import Forgotten
from mneme.stores.ledger.hints import hints_of
from mneme.stores.ledger.records import (
    Clock,
    Hit,
    Namespace,
    Version,
    check_name,
    check_namespace,
    microseconds,
    record_id,
    tombstone_id,
    version_id,
)
from mneme.stores.ledger.words import words_asked, words_of

PAGE = 500
MOMENT = 2.0
"""Seconds that work beside has to end in where a ledger is closed."""


class Lookup:
    """The reading half of a `Ledger`."""

    def __init__(self, engine: Engine, embedder: Embedder) -> None:
        self._engine, self._embedder = engine, embedder
        self._clock = Clock()
        self._closed = False
        self._beside = set[asyncio.Task[object]]()

    @property
    def goes_by_words(self) -> bool:
        """Whether every search goes by words, as the embedder is absent."""
        return isinstance(self._embedder, Absent)

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
        before, after = (known_version(versions, key, number) for number in (older, newer))
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
        async for heads in self._pages(where_below(prefix, (existing,), retired=True)):
            changed = [head for head in heads if head.at > at]
            older = {(v.namespace, v.key): v for v in await self._many(changed) if v.at <= at}
            then += [older.get((head.namespace, head.key), head) for head in heads]
        return [version for version in then if version.live]

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
        where = where_below(prefix, conditions(filter), retired=include_retired)
        if shelf:
            where = where._replace(scopes=(scope("+", prefix, shelf),))
        found = await self._engine.scan(where, limit, offset, newest_first=newest_first)
        return [_version(payload) for payload in found]

    async def changed(self, namespace: Namespace, since: datetime, until: datetime) -> list[Version]:
        """Return the live records that were last written from one moment on, and before another."""
        first, last = (moment.timestamp() / 86_400 for moment in (since, until))
        between = (Condition(CHANGED, "gte", first), Condition(CHANGED, "lt", last))
        where = where_below(check_namespace(namespace), between)
        return [version async for page in self._pages(where) for version in page]

    async def latest(self, namespace_prefix: Namespace, limit: int) -> list[Version]:
        """Return records, retired ones too, in the order of their last change, the latest first."""
        where = where_below(check_namespace(namespace_prefix, prefix=True), retired=True)
        return [_version(payload) for payload in await self._engine.latest(where, limit)] if limit > 0 else []

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
        sections: Sequence[str] = (),
        vector: Sequence[float] | None = None,
    ) -> list[Hit]:
        """Return the live records that fit best.

        A score is the cosine (dense), the BM25 sum (bm25), the reciprocal-rank fusion of both
        (hybrid), the sum of `blending` (blend: the cosine, words, hints and what was told beside it), or the
        ranking's formula, which starts from the cosine; then the parts are its terms.
        `min_score` is in the same measure. A `shelf` narrows the search to that part of a namespace,
        `groups` to those of its groups. `sections` of it hold all that the filter lets through, where any are
        named: then the engine need not test the filter. `vector` is the query's, where it is known already.

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
        where = Where(scopes, conditions(filter), sections=tuple(map(section_name, sections)))
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
        where = asked.where if asked.where.scopes else where_below(())
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

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return how well texts that no index has fit a query: the cosine plus half its share of words."""
        asked = {*words_asked(query).indices}
        shares = [len(asked.intersection(words_of(each).indices)) / max(1, len(asked)) for each in texts]
        vector = await self.vector_of(query)
        if vector is None or not texts:
            return shares
        vectors = await self._embedder.embed_documents(texts)
        cosines = (sum(map(mul, vector, each)) for each in vectors)
        return [cosine + share / 2 for cosine, share in zip(cosines, shares, strict=True)]

    async def shelved(self, namespace: Namespace, shelf: str, group: str | None = None) -> int:
        """Return how many live records are on a shelf, or in one group of it."""
        return await self._engine.count(Where((scope("+", check_namespace(namespace), shelf, group),)))

    async def vectors(
        self, namespace: Namespace, shelf: str, group: str | None = None
    ) -> dict[str, Sequence[float]]:
        """Return the vectors of the live records on a shelf or in a group, by the ids that `group` takes."""
        return await self._engine.vectors(Where((scope("+", check_namespace(namespace), shelf, group),)))

    async def vectors_by_ids(self, ids: Sequence[str]) -> dict[str, Sequence[float]]:
        """Return the vectors of these records, by their ids; those that have none are left out."""
        return await self._engine.vectors_by_ids(ids)

    async def by_ids(self, ids: Sequence[str]) -> dict[str, Version]:
        """Return records by the ids that `vectors` gives; those that are gone are left out."""
        return {point: _version(payload) for point, payload in (await self._engine.read(ids)).items()}

    async def namespaces(self, prefix: Namespace = (), *, include_retired: bool = False) -> list[Namespace]:
        """Return the namespaces that hold records, sorted."""
        where = where_below(check_namespace(prefix, prefix=True), retired=include_retired)
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
        return await self._engine.count(where_below(below, conditions(filter), retired=include_retired))

    async def last_forgotten(self, namespace: Namespace, key: str) -> int:
        """Return the highest number of a version that was forgotten under a name; 0 where there is none.

        A record that is inserted under the name begins with the next.
        """
        point = tombstone_id(record_id(namespace, key))
        return last_number((await self._engine.read([point])).get(point))

    async def forgotten(self, namespace_prefix: Namespace = ()) -> list[Forgotten]:
        """Return the log of erasures."""
        where = Where((scope("x", check_namespace(namespace_prefix, prefix=True)),))
        count = await self._engine.count(where)
        found = await self._engine.scan(where, count) if count else []
        return [Forgotten.model_validate_json(payload["forgotten"]) for payload in found]

    async def export(self, namespace_prefix: Namespace = ()) -> AsyncIterator[str]:
        """Yield every version as a line of JSON, record by record, oldest first."""
        where = where_below(check_namespace(namespace_prefix, prefix=True), retired=True)
        async for heads in self._pages(where):
            of = {(head.namespace, head.key): head.version - head.first + 1 for head in heads}
            for version in await self._many(heads):
                number = of[version.namespace, version.key]
                yield f'{{"of":{number},{version.model_dump_json()[1:]}'

    async def info(self) -> EngineInfo:
        return await self._engine.info()

    def begin(self, work: Coroutine[object, object, object]) -> "asyncio.Task[object]":
        """Do work beside what the caller goes on with: work that may be stopped, and is done again then."""
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[object]") -> None:
        self._beside.discard(task)
        if not task.cancelled() and (failure := task.exception()):
            logging.getLogger(__name__).warning("Upkeep failed, and is tried again later: %s", failure)

    async def close(self) -> None:
        """Flush and close the engine; a second time does nothing.

        Work that goes on beside gets a moment to end, and is stopped then.
        """
        if not self._closed:
            self._closed = True
            here = asyncio.get_running_loop()
            mine = [task for task in self._beside if task.get_loop() is here]
            _, late = await asyncio.wait(mine, timeout=MOMENT) if mine else (set(), set())
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
            await self._engine.close()

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


def where_below(prefix: Namespace, extra: tuple[Condition, ...] = (), *, retired: bool = False) -> Where:
    """Return which records are meant: those below a prefix, the live ones or all."""
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
    return [version_id(record, number) for number in range(head.first, head.version + 1)]


def known_version(versions: Mapping[int, Version], key: str, number: int) -> Version:
    """Return the version of that number. Raises NotFound."""
    if number not in versions:
        raise NotFound(f"Record {key} has no version {number}; it has {min(versions)} to {max(versions)}.")
    return versions[number]


def _lines(version: Version) -> list[str]:
    shown = {"value": version.value, "text": version.text, "live": version.live}
    return json.dumps(shown, indent=2, sort_keys=True, ensure_ascii=False).splitlines()
