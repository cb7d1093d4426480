"""The search mode `blend`: meaning and words on one scale, hints, and what was told beside a good hit.

A record's own score is its cosine, plus half its share of the best BM25 sum, plus what the question's hints
add (see `hints`). Then the best records lend to those that were written just before and after them in the
same thread: a record at the distance d rises by 1 / (1 + d) of what it lacks to the lender's score. An answer
often stands beside the sentence that shares the question's words.

Fusion by rank (`hybrid`) throws the scores away, so that a weak match of one part counts as much as a strong
one of the other. The weights were chosen on three conversations of LoCoMo, which are no evidence for them.
"""

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from itertools import chain
from operator import mul
from typing import NamedTuple

from mneme.stores.database import Cursor
from mneme.stores.ledger.filters import passes
from mneme.stores.ledger.hints import Hints
from mneme.stores.ledger.index import Scores
from mneme.stores.ledger.listing import Sides, around, vectors_by_ids
from mneme.stores.ledger.log import Head, heads_of
from mneme.stores.ledger.query import DENSE, SPARSE, Query
from mneme.stores.ledger.records import Hit, Version, microseconds

WORDS_WEIGHT = 0.5
NAME_WEIGHT = 0.1
DATE_WEIGHT = 0.2
KIND_WEIGHT = 0.05
LENDERS = 5
"""How many records lend; with more of them nothing more was found."""
REACH = 2
"""How far a record lends; three and four found no more."""
OWN_PARTS = ("words", "names", "dates", "kind")
"""What adds to the cosine; the last three are the question's hints."""


class Own(NamedTuple):
    """A record with the parts of its own score, before anything is lent."""

    parts: dict[str, float]
    head: Head

    @property
    def score(self) -> float:
        return sum(self.parts.get(name, 0.0) for name in (DENSE, *OWN_PARTS))

    @property
    def thread(self) -> str:
        thread = self.head.version.value.get("thread")
        return thread if isinstance(thread, str) else ""


def blended(cursor: Cursor, pool: Scores, query: Query, hints: Hints) -> list[Hit]:
    """Search in the mode `blend`; a score is the sum of its parts `dense`, `OWN_PARTS` and `lent`.

    The cosine and BM25 propose their best records, the `pool`, and the best of these are weighed in full. A
    record that words did not propose counts as sharing none.
    """
    scoring = _Scoring(cursor, pool, query, hints)
    weighed = scoring.weigh(scoring.promising())
    own = scoring.own
    best = heapq.nlargest(LENDERS, own, key=lambda record: (own[record].score, record))
    lenders = {record: own[record].head for record in best if own[record].thread}
    places = {record: (head.scope, microseconds(head.version.created)) for record, head in lenders.items()}
    sides = around(cursor, places, REACH)
    scoring.weigh({record for two in sides.values() for side in two for record in side} - own.keys())
    lent = _lent(own, sides)
    total = {record: own[record].score + lent.get(record, 0.0) for record in {*weighed, *lent}}
    ranked = sorted(total, key=lambda record: (-total[record], record))
    wanted = [record for record in ranked if query.min_score is None or total[record] >= query.min_score]
    wanted = wanted[query.offset : query.offset + query.limit]
    return [
        Hit(
            version=own[record].head.version,
            score=total[record],
            parts=own[record].parts | {"lent": lent.get(record, 0.0)},
        )
        for record in wanted
    ]


class _Scoring:
    """The scores of records by themselves, for one query."""

    def __init__(self, cursor: Cursor, pool: Scores, query: Query, hints: Hints) -> None:
        self._cursor, self._pool, self._query, self._hints = cursor, pool, query, hints
        self._words = {record: parts[SPARSE] for record, parts in pool.items() if SPARSE in parts}
        best = max(self._words.values(), default=0.0) or 1.0
        self._shares = {record: WORDS_WEIGHT * score / best for record, score in self._words.items()}
        self._worth: float | None = None
        self.own: dict[str, Own] = {}

    def promising(self) -> list[str]:
        """Return the records that can be among the best; all where a date in the question may lift any.

        The cosine of a record that the cosine did not propose is at most the lowest of those that it did.
        """
        if self._hints.periods:
            return list(self._pool)
        lowest = min((parts[DENSE] for parts in self._pool.values() if DENSE in parts), default=0.0)
        most = {
            record: parts.get(DENSE, lowest) + self._shares.get(record, 0.0)
            for record, parts in self._pool.items()
        }
        return heapq.nlargest(self._query.weighed, most, key=lambda record: (most[record], record))

    def weigh(self, records: Iterable[str]) -> list[str]:
        """Score the records that search looks at and the query's conditions let through; return their ids.

        One without a vector is not found by a query that has one.
        """
        heads = {
            record: head
            for record, head in heads_of(self._cursor, records).items()
            if head.version.is_searched and passes(head.version.value, self._query.where.conditions)
        }
        if self._worth is None:  # what a name is worth: little where most of the records carry it
            named = sum(self._hints.names(head.version.value) for head in heads.values())
            self._worth = NAME_WEIGHT * (1 - named / max(len(heads), 1))
        compares = self._query.dense is not None
        cosines = self._cosines(heads) if compares else dict.fromkeys(heads, 0.0)
        for record in cosines:
            parts = {DENSE: cosines[record]} if compares else {}
            parts |= {SPARSE: self._words[record]} if record in self._words else {}
            parts |= {"words": self._shares.get(record, 0.0)} | self._hinted(heads[record].version)
            self.own[record] = Own(parts, heads[record])
        return list(cosines)

    def _cosines(self, heads: Mapping[str, Head]) -> dict[str, float]:
        """Return the cosine of each record; of those that the cosine did not propose, by their vectors."""
        dense = self._query.dense or ()
        known = {record: self._pool[record][DENSE] for record in heads if DENSE in self._pool.get(record, ())}
        others = vectors_by_ids(self._cursor, heads.keys() - known.keys())
        length = math.hypot(*dense) or 1.0
        return known | {
            record: sum(map(mul, dense, vector)) / (length * (math.hypot(*vector) or 1.0))
            for record, vector in others.items()
        }

    def _hinted(self, version: Version) -> dict[str, float]:
        hints, value = self._hints, version.value
        is_dated = hints.periods and hints.dates(value, version.created.astimezone(UTC).date())
        return {
            "names": (self._worth or 0.0) * hints.names(value),
            "dates": DATE_WEIGHT if is_dated else 0.0,
            "kind": KIND_WEIGHT * hints.suits(value),
        }


def _lent(own: Mapping[str, Own], around: Mapping[str, Sides]) -> dict[str, float]:
    """Return what the best records lend to the others."""
    lent: dict[str, float] = {}
    for lender, sides in around.items():
        for record, distance in chain.from_iterable(_neighbours(own, lender, side) for side in sides):
            rise = (own[lender].score - own[record].score) / (1 + distance)
            lent[record] = max(lent.get(record, 0.0), rise)
    return lent


def _neighbours(own: Mapping[str, Own], lender: str, side: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield the neighbours on one side with their distance, up to where another thread begins.

    One that the query's filters exclude was not weighed, and ends it too: its thread is not known.
    """
    for distance, record in enumerate(side, 1):
        if record not in own or own[record].thread != own[lender].thread:
            return
        yield record, distance
