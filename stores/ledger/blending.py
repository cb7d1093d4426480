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
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from itertools import chain
from operator import mul
from typing import NamedTuple

from mneme.stores.ledger.database import Cursor
from mneme.stores.ledger.filters import passes
from mneme.stores.ledger.hints import Hints
from mneme.stores.ledger.listing import Sides, around, vectors_by_ids
from mneme.stores.ledger.log import Head, heads_of
from mneme.stores.ledger.query import DENSE, SPARSE, Query
from mneme.stores.ledger.records import Hit, Value, Version, microseconds

WORDS = 0.5
NAMED = 0.1
DATED = 0.2
HAPPENS = 0.05
LENDERS = 5
"""How many records lend; with more of them nothing more was found."""
REACH = 2
"""How far a record lends; three and four found no more."""


class Own(NamedTuple):
    """A record with the parts of its own score, before anything is lent."""

    parts: dict[str, float]
    head: Head

    @property
    def score(self) -> float:
        return self.parts.get(DENSE, 0.0) + self.parts["words"] + self.parts["hints"]

    @property
    def thread(self) -> str:
        thread = self.head.version.value.get("thread")
        return thread if isinstance(thread, str) else ""


def blended(cursor: Cursor, pool: Mapping[str, Mapping[str, float]], query: Query, hints: Hints) -> list[Hit]:
    """Search in the mode `blend`; a score's parts are `dense`, `bm25`, `words`, `hints` and `lent`.

    The cosine and BM25 propose their best records, the `pool`, and the best of these are weighed in full. A
    record that words did not propose counts as sharing none.
    """
    words = {record: parts[SPARSE] for record, parts in pool.items() if SPARSE in parts}
    weighed = _weighed(cursor, _promising(pool, words, query, hints), query)
    cosines = _cosines(cursor, pool, weighed, query)
    named = sum(hints.names(head.version.value) for head in weighed.values())
    worth = NAMED * (1 - named / max(len(weighed), 1))  # little where most of the records carry the name
    own = _owned(weighed, cosines, words, hints, worth)
    weighed = {record: head for record, head in weighed.items() if record in own}
    best = heapq.nlargest(LENDERS, own, key=lambda record: (own[record].score, record))
    lenders = {record: own[record].head for record in best if own[record].thread}
    places = {record: (head.scope, microseconds(head.version.created)) for record, head in lenders.items()}
    sides = around(cursor, places, REACH)
    beside = {record for two in sides.values() for side in two for record in side} - weighed.keys()
    near = _weighed(cursor, [*beside], query)
    own |= _owned(near, _cosines(cursor, pool, near, query), words, hints, worth)
    lent = _lent(own, sides)
    total = {record: own[record].score + lent.get(record, 0.0) for record in weighed.keys() | lent.keys()}
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


def _weighed(cursor: Cursor, records: Sequence[str], query: Query) -> dict[str, Head]:
    """Return those of the records that search looks at, and the query's conditions let through."""
    heads = heads_of(cursor, records)
    return {
        record: head
        for record, head in heads.items()
        if head.version.is_searched and passes(head.version.value, query.where.conditions)
    }


def _cosines(
    cursor: Cursor, pool: Mapping[str, Mapping[str, float]], heads: Mapping[str, Head], query: Query
) -> dict[str, float] | None:
    """Return the cosine of each record; of those that the cosine did not propose, by their vectors."""
    if query.dense is None:
        return None
    known = {record: pool[record][DENSE] for record in heads if DENSE in pool.get(record, ())}
    others = vectors_by_ids(cursor, [record for record in heads if record not in known])
    length = math.hypot(*query.dense) or 1.0
    return known | {
        record: sum(map(mul, query.dense, vector)) / (length * (math.hypot(*vector) or 1.0))
        for record, vector in others.items()
    }


def _promising(
    pool: Mapping[str, Mapping[str, float]], words: Mapping[str, float], query: Query, hints: Hints
) -> list[str]:
    """Return the records that can be among the best; all where a date in the question may lift any.

    The cosine of a record that the cosine did not propose is at most the lowest of those that it did.
    """
    if hints.periods:
        return list(pool)
    lowest = min((parts[DENSE] for parts in pool.values() if DENSE in parts), default=0.0)
    share = _shares(words)
    most = {record: parts.get(DENSE, lowest) + share.get(record, 0.0) for record, parts in pool.items()}
    return heapq.nlargest(query.weighed, most, key=lambda record: (most[record], record))


def _shares(words: Mapping[str, float]) -> dict[str, float]:
    """Return what the words of each record add to its score."""
    best = max(words.values(), default=0.0) or 1.0
    return {record: WORDS * score / best for record, score in words.items()}


def _owned(
    weighed: Mapping[str, Head],
    cosines: Mapping[str, float] | None,
    words: Mapping[str, float],
    hints: Hints,
    worth: float,
) -> dict[str, Own]:
    """Score records by themselves; one without a vector is not found by one."""
    share = _shares(words)
    owned: dict[str, Own] = {}
    for record, head in weighed.items():
        if cosines is not None and record not in cosines:
            continue
        parts = {} if cosines is None else {DENSE: cosines[record]}
        parts |= {SPARSE: words[record]} if record in words else {}
        parts |= {"words": share.get(record, 0.0), "hints": _hinted(head.version, hints, worth)}
        owned[record] = Own(parts, head)
    return owned


def _hinted(version: Version, hints: Hints, worth: float) -> float:
    value: Value = version.value
    hinted = worth * hints.names(value) + HAPPENS * hints.suits(value)
    if hints.periods:
        hinted += DATED * hints.dates(value, version.created.astimezone(UTC).date())
    return hinted


def _lent(own: Mapping[str, Own], around: Mapping[str, Sides]) -> dict[str, float]:
    """Return what the best records lend to the others."""
    lent: dict[str, float] = {}
    for lender, sides in around.items():
        for record, distance in chain.from_iterable(_told_beside(own, lender, side) for side in sides):
            rise = (own[lender].score - own[record].score) / (1 + distance)
            lent[record] = max(lent.get(record, 0.0), rise)
    return lent


def _told_beside(own: Mapping[str, Own], lender: str, side: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield the neighbours on one side with their distance, up to where another thread begins.

    One that the query's filters exclude was not weighed, and ends it too: its thread is not known.
    """
    for distance, record in enumerate(side, 1):
        if record not in own or own[record].thread != own[lender].thread:
            return
        yield record, distance
