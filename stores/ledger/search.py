"""Search a ledger by meaning and by words; hits of the index are joined with the log."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from operator import mul
from typing import Any

from mneme.core.errors import BadInput, StorageFailure
from mneme.models.embedding.absent import Absent
from mneme.models.embedding.embedders import Embedder
from mneme.stores.ledger import reading
from mneme.stores.ledger.blending import Hints, blended, hints_of
from mneme.stores.ledger.opening import Store
from mneme.stores.ledger.query import (
    MAX_QUERY_CHARS,
    Mode,
    Query,
    Ranking,
    Where,
    conditions,
    likeness,
    scope,
    section_name,
    where_below,
)
from mneme.stores.ledger.reading import entries_after, heads_of
from mneme.stores.ledger.records import Clock, Hit, Namespace, check_namespace
from mneme.stores.ledger.words import words_asked, words_of

MAX_CACHED_VECTORS = 1024
"""Maximum texts whose vectors `scores` caches: synopses and agreements are compared with every question."""
SEARCH_ATTEMPTS = 10
"""Maximum attempts at a search while records change."""


class Search:
    """Searches of a `Ledger`, and comparisons with texts that are not in it."""

    def __init__(self, store: Store, embedder: Embedder) -> None:
        self._store, self._log, self._embedder = store, store.log, embedder
        self.goes_by_words = isinstance(embedder, Absent)
        """Whether every search goes by words, because the embedder is absent."""
        self.read = store.log.read
        """Calls a function of `reading` with a cursor and its other arguments."""
        self._clock = Clock()
        self._last_query: tuple[str | None, Sequence[float]] = (None, ())
        self._compared: dict[str, Sequence[float]] = {}

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

        A score is the cosine (dense), the BM25 sum (bm25), the reciprocal-rank fusion of both (hybrid), the
        sum of `blending` (blend: the cosine, words, hints and neighbours' scores), or the ranking's formula,
        which starts from the cosine; then the parts are its terms. `min_score` is on the same scale. A
        `shelf` limits the search to that part of a namespace. `sections`, if given, must hold all records
        that pass the filter, so that the engine need not test it. `vector` is the query's vector, if it is
        known.

        Only the first MAX_QUERY_CHARS characters of a query are compared. If the embedder is absent, every
        search goes by words: `likeness` of the BM25 sum replaces the score, and in a ranking the cosine; with
        a `min_score` nothing is found.
        """
        prefix, query = check_namespace(namespace_prefix, prefix=True), query[:MAX_QUERY_CHARS]
        if ranking is not None and mode != "dense":
            raise BadInput('A ranking starts from the similarity: use it with mode="dense".')
        by_words = mode != "bm25" and self.goes_by_words
        if not query.strip() or limit <= 0 or (by_words and min_score is not None):
            return []
        mode = "bm25" if by_words and mode != "blend" else mode
        dense = None if mode == "bm25" else vector or await self.vector_of(query)
        words = None if mode == "dense" else words_asked(query)
        now = datetime.now(UTC)
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
        """Search, and join the hits with the log; search again if a record has just changed."""
        index, hits = self._store.index, list[Hit]()
        for attempt in range(SEARCH_ATTEMPTS):
            if attempt:
                index.follow()
            engine = index.opened()
            followed = engine.state.seq
            ranked, parts = engine.search(asked)
            with self._log.database.reading(snapshot=hints is not None) as cursor:
                heads = heads_of(cursor, ranked, engine.read)
                # If the log ends where the index had followed it, the index was complete. This comes last, so
                # that the heads belong to that state also without a transaction.
                changed = {record for _, record in entries_after(cursor, followed)}
                if changed and not attempt:  # later attempts make do: some records change all the time
                    continue
                if hints is not None:
                    return blended(cursor, engine.read, parts, asked, hints)
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
        """Return the error if a ranked field is a list in some record, since engines fail on it."""
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
        """Return the vector of a query, for several searches; None if the embedder is absent.

        The last one is cached: a message is searched both in the user's memories and in the team's.
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
        """Return for each text, which need not be in an index, its best score over the queries.

        A score is the cosine plus half the share of the query's words that the text has. `known` vectors of
        texts are not computed again.
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
        """Return the vectors of texts; empty if the embedder is absent.

        The latest are cached, since successive recalls compare the same texts.
        """
        if self.goes_by_words:
            return {}
        wanted, known = {*texts}, self._compared
        if new := [*wanted - known.keys()]:
            known = known | dict(zip(new, await self._embedder.embed_documents(new), strict=True))
            self._compared = dict([*known.items()][-MAX_CACHED_VECTORS:])
        return {text: known[text] for text in wanted}
