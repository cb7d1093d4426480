"""What a ledger is asked: records as they are and as they were, found by meaning and by words."""

import asyncio
import difflib
import json
import logging
import math
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import product
from operator import mul
from typing import Any

from mneme.core.errors import BadInput, NotFound, StorageFailure
from mneme.models.embedding.absent import Absent
from mneme.models.embedding.embedders import Embedder
from mneme.stores.ledger import reading
from mneme.stores.ledger.blending import Hints, blended, hints_of
from mneme.stores.ledger.opening import Store
from mneme.stores.ledger.query import (
    MAX_QUERY,
    LedgerInfo,
    Mark,
    Mode,
    Query,
    Ranking,
    Where,
    conditions,
    likeness,
    namespace_of,
    scope,
    section_name,
)
from mneme.stores.ledger.reading import (
    CREATED,
    Order,
    entries_after,
    heads_of,
    state_of,
)
from mneme.stores.ledger.records import (
    Clock,
    Forgotten,
    Hit,
    Namespace,
    Version,
    check_name,
    check_namespace,
    microseconds,
    missing,
    record_id,
)
from mneme.stores.ledger.words import words_asked, words_of

log = logging.getLogger(__name__)
PAGE_SIZE = 500
COMPARED_KEPT = 1024
"""Texts of which `scores` keeps the vectors: synopses and agreements are compared with every question."""
ATTEMPTS = 10
"""How often a search is done where records change at the same moment."""
CLOSING_SECONDS = 2.0
"""Seconds that work beside has to end in where a ledger is closed."""


class Lookup:
    """The reading half of a `Ledger`."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store, self._embedder = store, embedder
        self.goes_by_words = isinstance(embedder, Absent)
        """Whether every search goes by words, as the embedder is absent."""
        self._log = store.log
        self.read = store.log.read
        """Calls one of the functions of `reading` with a cursor, and with what else it is given."""
        self._clock = Clock()
        self._closed = False
        self._last_query: tuple[str | None, Sequence[float]] = (None, ())
        self._compared: dict[str, Sequence[float]] = {}
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
        states = (version_in(history, number).model_dump(include=shown) for number in (older, newer))
        before, after = (
            json.dumps(each, indent=2, sort_keys=True, ensure_ascii=False).splitlines() for each in states
        )
        names = (f"version {older}", f"version {newer}")
        return "\n".join(difflib.unified_diff(before, after, *names, lineterm=""))

    async def as_of(self, namespace_prefix: Namespace, at: datetime) -> list[Version]:
        """Return the records that were live at that time, as they were; forgotten ones are gone."""
        if at.tzinfo is None:
            raise BadInput("A time needs its zone, e.g. 2026-01-31T12:00:00+00:00.")
        then: list[Version] = []
        existing = Order(until=microseconds(at) + 1)
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

        Without a limit (None) all are returned. With `newest_first` it is the opposite order; an `order` can
        name the last change in place of the first writing, and from when to when that was. All take the
        longer the more are passed over.
        """
        where = where_below(namespace_prefix, filter, retired=include_retired, shelf=shelf)
        if limit is not None and limit <= 0:
            return []
        order = order or Order(descending=newest_first)
        return await self.read(reading.records, where, limit, offset, order)

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
        sections: Sequence[str] = (),
        vector: Sequence[float] | None = None,
    ) -> list[Hit]:
        """Return the live records that fit best.

        A score is the cosine (dense), the BM25 sum (bm25), the reciprocal-rank fusion of both
        (hybrid), the sum of `blending` (blend: the cosine, words, hints and what was told beside it), or the
        ranking's formula, which starts from the cosine; then the parts are its terms.
        `min_score` is in the same measure. A `shelf` narrows the search to that part of a namespace.
        `sections` of it hold all that the filter lets through, where any are named: then the engine need not
        test the filter. `vector` is the query's, where it is known already.

        Of a query its first MAX_QUERY characters are compared. Where the embedder is absent, every
        search goes by words. Then the likeness of BM25's sum stands for the score and in the ranking for the
        cosine, and no record reaches a `min_score`.
        """
        prefix, query = check_namespace(namespace_prefix, prefix=True), query[:MAX_QUERY]
        if ranking is not None and mode != "dense":
            raise BadInput('A ranking starts from the similarity: use it with mode="dense".')
        by_words = mode != "bm25" and self.goes_by_words
        if not query.strip() or limit <= 0 or (by_words and min_score is not None):
            return []
        mode = "bm25" if by_words and mode != "blend" else mode
        dense = None if mode == "bm25" else vector or await self.vector_of(query)
        words = None if mode == "dense" else words_asked(query)
        now = self._clock.now()
        scopes = (scope("+", prefix, shelf),) if prefix else ()
        where = Where(scopes, conditions(filter), sections=tuple(map(section_name, sections)))
        asked = Query(where, mode, dense, words, limit, offset, min_score, ranking, now.timestamp() / 86_400)
        hints = hints_of(query, now.astimezone().date()) if mode == "blend" else None
        try:
            hits = await self._log.thread(lambda: self._found(asked, hints))
        except StorageFailure as failure:
            raise await self._unrankable(asked) or failure from None
        if by_words and hints is None and ranking is None:
            return [hit._replace(score=likeness(hit.score)) for hit in hits]
        return hits

    def _found(self, asked: Query, hints: Hints | None) -> list[Hit]:
        """Search, and join what was found with the log: one that changed just now is looked for again.

        Where the log ends at the entry to which the index had followed it, the index had all of it.
        """
        index, hits = self._store.index, list[Hit]()
        for attempt in range(ATTEMPTS):
            followed = index.follow() if attempt else index.opened().state.seq
            ranked, parts = index.opened().search(asked)
            with self._log.database.reading(snapshot=True) as cursor:
                changed = {record for _, record in entries_after(cursor, followed)}
                if changed and not attempt:
                    continue
                if hints is not None:
                    return blended(cursor, parts, asked, hints)
                heads = heads_of(cursor, ranked)
            hits = [
                Hit(heads[record], score, {name: of[record] for name, of in parts.items() if record in of})
                for record, score in ranked.items()
                if record in heads and record not in changed
            ]
            if len(hits) == len(ranked):
                break
        if (ranking := asked.ranking) is not None:
            return [hit._replace(parts=ranking.parts(hit, asked.now)) for hit in hits]
        return hits

    async def _unrankable(self, asked: Query) -> BadInput | None:
        """Return the error for a record that has several numbers to be ranked by, over which engines fail."""
        fields = asked.ranking.paths if asked.ranking is not None else ()
        where = asked.where if asked.where.scopes else where_below(())
        heads = await self.read(reading.records, where._replace(conditions=())) if fields else []
        for head, name in product(heads, fields):
            if isinstance(head.value.get(name), list):
                place = "/".join(head.namespace)
                return BadInput(
                    f"{head.key} in {place} cannot be ranked: its {name} is a list.",
                    "Give it one number, or a filter that leaves it out.",
                )
        return None

    async def vector_of(self, query: str) -> Sequence[float] | None:
        """Return the vector of a query, for several searches; None where the embedder is absent.

        The last one is kept: a message is looked up among the user's memories and among the team's.
        """
        if self.goes_by_words:
            return None
        last, vector = self._last_query
        if last != query:
            vector = await self._embedder.embed_query(query)
            self._last_query = query, vector
        return vector

    async def scores(
        self,
        queries: Iterable[str],
        texts: Sequence[str],
        *,
        known: Sequence[Sequence[float] | None] = (),
    ) -> list[float]:
        """Return how well texts that no index has fit the query of several that each fits best.

        That is the cosine plus half the text's share of the query's words. Vectors of texts are computed
        where they are not `known`.
        """
        words = [{*words_of(each).indices} for each in texts]
        vectors = [*known, *[None] * (len(texts) - len(known))]
        made = await self.embedded(text for text, each in zip(texts, vectors, strict=True) if each is None)
        best = [-math.inf] * len(texts)
        for query in queries:
            asked, asking = {*words_asked(query).indices}, await self.vector_of(query)
            for number, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
                share = len(asked & words[number]) / max(1, len(asked))
                if asking is not None:
                    share = share / 2 + sum(map(mul, asking, made[text] if vector is None else vector))
                best[number] = max(best[number], share)
        return best

    async def embedded(self, texts: Iterable[str]) -> Mapping[str, Sequence[float]]:
        """Return the vectors of texts; none where the embedder is absent.

        The latest are kept, since one recall compares what the last did.
        """
        if self.goes_by_words:
            return {}
        wanted, known = {*texts}, self._compared
        if new := [*wanted - known.keys()]:
            known = known | dict(zip(new, await self._embedder.embed_documents(new), strict=True))
            self._compared = dict([*known.items()][-COMPARED_KEPT:])
        return {text: known[text] for text in wanted}

    async def vectors(self, namespace: Namespace, shelf: str) -> Mapping[str, Sequence[float]]:
        """Return the vectors of the live records on a shelf, by the ids of the records."""
        where = where_below(namespace, shelf=shelf)
        return await self.read(reading.vectors_by_ids, await self.read(reading.column, "h.record", where))

    async def derived(self, namespace_prefix: Namespace) -> list[Version]:
        """Return the live records below a prefix that were made from others."""
        return await self.read(reading.derived, where_below(namespace_prefix))

    async def filled(self, namespace_prefix: Namespace, fields: Sequence[str]) -> list[Version]:
        """Return the live records in whose value one of these fields is neither missing nor empty.

        The database looks for them: a second for a million records, of which only those few are read.
        """
        read = self._log.database.field
        return await self._log.read(reading.filled, where_below(namespace_prefix), fields, read)

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
        """Return the log of erasures."""
        below = scope("x", check_namespace(namespace_prefix, prefix=True))
        notes = await self.read(reading.tombstones, below)
        return [*map(Forgotten.model_validate_json, notes)]

    async def export(self, namespace_prefix: Namespace = ()) -> AsyncIterator[str]:
        """Yield every version as a line of JSON, record by record, oldest first."""
        async for versions in self._histories(where_below(namespace_prefix, retired=True)):
            for version in versions:
                yield f'{{"of":{len(versions)},{version.model_dump_json()[1:]}'

    async def info(self) -> LedgerInfo:
        """Return what the ledger says of itself."""
        store, state = self._store, await self.read(state_of)
        return LedgerInfo(
            kind="server" if store.place.index else "edge",
            location=store.origin.shown,
            entries=state.seq,
            layout=await self._log.thread(store.index.layout),
            **state._asdict(),
        )

    def begin(self, work: Coroutine[object, object, object]) -> "asyncio.Task[object]":
        """Do work beside what the caller goes on with: work that may be stopped, and is done again then."""
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

        Work that goes on beside gets a moment to end, and is stopped then.
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

    async def _histories(self, where: Where, order: Order = CREATED) -> AsyncIterator[list[Version]]:
        """Yield the histories of records in the order of their creation; some are read at a time."""
        ids = await self.read(reading.column, "h.record", where, order)
        for start in range(0, len(ids), PAGE_SIZE):
            page = await self.read(reading.histories, ids[start : start + PAGE_SIZE])
            for versions in page.values():
                yield versions


def where_below(
    prefix: Namespace, filter: Mapping[str, Any] | None = None, *, retired: bool = False, shelf: str = ""
) -> Where:
    """Return which records are meant: those below a prefix, or on a shelf, the live ones or all."""
    check_namespace(prefix, prefix=True)
    marks: tuple[Mark, ...] = ("+", "-") if retired and not shelf else ("+",)
    return Where(tuple(scope(mark, prefix, shelf) for mark in marks), conditions(filter))


def version_in(history: Sequence[Version], number: int) -> Version:
    """Return the version of that number. Raises NotFound."""
    found = next((each for each in history if each.version == number), None)
    if found is None:
        first, last = history[0], history[-1]
        spread = f"it has {first.version} to {last.version}"
        raise NotFound(f"Record {last.key} has no version {number}; {spread}.")
    return found
