"""The search mode `blend`: meaning and words on one scale, hints, and what was told beside a good hit.

A record's own score is its cosine, plus half its share of the best BM25 sum, plus what the question's hints
add (see `hints`). Then the best records lend to those that were written just before and after them in the
same thread: a record at the distance d rises by 1 / (1 + d) of what it lacks to the lender's score. An answer
often stands beside the sentence that shares the question's words.

Fusion by rank (`hybrid`) throws the scores away, so that a weak match of one part counts as much as a strong
one of the other. The weights were chosen on three conversations of LoCoMo, which are no evidence for them.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC
from typing import NamedTuple

from mneme.stores.database import Cursor
from mneme.stores.ledger.filters import passes
from mneme.stores.ledger.hints import Hints
from mneme.stores.ledger.index import Scores
from mneme.stores.ledger.query import DENSE, SPARSE, Query
from mneme.stores.ledger.reading import around, heads_of, vectors_by_ids
from mneme.stores.ledger.records import Hit, Version

WORDS_WEIGHT = 0.5
NAME_WEIGHT = 0.1
DATE_WEIGHT = 0.2
KIND_WEIGHT = 0.05
LENDERS = 5
"""How many records lend; with more of them nothing more was found."""
REACH = 2
"""How far a record lends; three and four found no more."""


class Own(NamedTuple):
    """A record with its own score and the parts of that, before anything is lent."""

    score: float
    record: str
    thread: str
    parts: dict[str, float]
    head: Version


def blended(
    cursor: Cursor, pool: Mapping[str, Scores], query: Query, hints: Hints, heads: dict[str, Version]
) -> list[Hit]:
    """Search in the mode `blend`; a score's parts are `dense`, `bm25` and `words`, the hints, and `lent`.

    The cosine and BM25 propose their best records, the `pool`, and the best of these are weighed in full. A
    record that words did not propose counts as sharing none. What is read of the log is added to `heads`.
    """
    scoring = _Scoring(cursor, pool, query, hints, heads)
    own = {each.record: each for each in scoring.weigh(scoring.promising())}
    lenders = [each for each in sorted(own.values(), reverse=True)[:LENDERS] if each.thread]
    sides = around(cursor, [each.head for each in lenders], REACH)
    beside = {record for two in sides for side in two for record in side} - own.keys()
    every = own | {each.record: each for each in scoring.weigh(beside)}
    lent = dict.fromkeys(own, 0.0)
    for lender, (before, after) in zip(lenders, sides, strict=True):
        for record, rise in (*_loans(lender, before, every), *_loans(lender, after, every)):
            lent[record] = max(lent.get(record, 0.0), rise)
    ranked = sorted((-every[record].score - lent[record], record) for record in lent)
    least = -math.inf if query.min_score is None else query.min_score
    wanted = [(-score, record) for score, record in ranked if -score >= least]
    return [
        Hit(every[record].head, score, every[record].parts | {"lent": lent[record]})
        for score, record in wanted[query.offset : query.offset + query.limit]
    ]


class _Scoring:
    """The scores of records by themselves, for one query."""

    def __init__(
        self,
        cursor: Cursor,
        pool: Mapping[str, Scores],
        query: Query,
        hints: Hints,
        heads: dict[str, Version],
    ) -> None:
        self._cursor, self._query, self._hints, self._heads = cursor, query, hints, heads
        self._cosines, self._words = pool.get(DENSE, {}), pool.get(SPARSE, {})
        best = max(self._words.values(), default=0.0) or 1.0
        self._shares = {record: WORDS_WEIGHT * score / best for record, score in self._words.items()}
        self._worth: float | None = None

    def promising(self) -> Collection[str]:
        """Return the records that can be among the best; all where a date in the question may lift any.

        The cosine of a record that the cosine did not propose is at most the lowest of those that it did.
        """
        proposed = self._cosines | self._words
        if self._hints.periods:
            return proposed
        lowest, shares = min(self._cosines.values(), default=0.0), self._shares
        most = [(self._cosines.get(each, lowest) + shares.get(each, 0.0), each) for each in proposed]
        return [record for _, record in sorted(most, reverse=True)[: self._query.weighed]]

    def weigh(self, records: Collection[str]) -> list[Own]:
        """Score the records that search looks at and the query's conditions let through.

        One without a vector is not found by a query that has one.
        """
        self._heads |= heads_of(self._cursor, [each for each in records if each not in self._heads])
        heads = {
            record: head
            for record in records
            if (head := self._heads.get(record))
            and head.is_searched
            and passes(head.value, self._query.where.conditions)
        }
        named = {record: self._hints.names(head.value) for record, head in heads.items()}
        if self._worth is None:  # what a name is worth: little where most of the records carry it
            self._worth = NAME_WEIGHT * (1 - sum(named.values()) / max(len(heads), 1))
        cosines = self._cosines | self._computed([each for each in heads if each not in self._cosines])
        found: list[Own] = []
        for record, head in heads.items():
            if self._query.dense is not None and record not in cosines:
                continue
            value, thread = head.value, head.value.get("thread")
            hinted = {"names": self._worth * named[record], "kind": KIND_WEIGHT * self._hints.suits(value)}
            if self._hints.periods:
                written = head.created.astimezone(UTC).date()
                hinted["dates"] = DATE_WEIGHT * self._hints.dates(value, written)
            parts = {
                name: of[record] for name, of in ((DENSE, cosines), (SPARSE, self._words)) if record in of
            }
            parts |= {"words": self._shares.get(record, 0.0)} | hinted
            score = cosines.get(record, 0.0) + parts["words"] + sum(hinted.values())
            found.append(Own(score, record, thread if isinstance(thread, str) else "", parts, head))
        return found

    def _computed(self, records: Sequence[str]) -> Scores:
        """Return the cosines of records that the cosine did not propose, by their vectors."""
        if self._query.dense is None or not (found := vectors_by_ids(self._cursor, records)):
            return {}
        import numpy as np  # noqa: PLC0415  (slow to import)

        rows = np.frombuffer(b"".join(found.values()), np.float32).reshape(len(found), -1)
        vectors, asked = rows.astype(float), np.array(self._query.dense, dtype=float)
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
        return dict(zip(found, (vectors @ asked / np.where(lengths, lengths, 1.0)).tolist(), strict=True))


def _loans(lender: Own, side: Sequence[str], every: Mapping[str, Own]) -> Iterator[tuple[str, float]]:
    """Yield what a record lends to its neighbours on one side, up to where another thread begins.

    One that the query's filters exclude was not weighed, and ends it too: its thread is not known.
    """
    for distance, record in enumerate(side, 1):
        if record not in every or every[record].thread != lender.thread:
            return
        yield record, (lender.score - every[record].score) / (1 + distance)
