"""The search mode `blend`: meaning and words on one scale, hints, and what was told beside a good hit.

A record's own score is its cosine, plus half its share of the best BM25 sum, plus what the question's hints
add (see `hints`). Then the best records lend to those that were written just before and after them in the
same thread: a record at the distance d rises by 1 / (1 + d) of what it lacks to the lender's score. An answer
often stands beside the sentence that shares the question's words.

Fusion by rank (`hybrid`) throws the scores away, so that a weak match of one part counts as much as a strong
one of the other. The weights were chosen on three conversations of LoCoMo, which are no evidence for them.
"""

import heapq
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, NamedTuple

from mneme.stores.ledger.engine import DENSE, SPARSE, Engine, Payload, Query, Scored, Sides, Weighed
from mneme.stores.ledger.hints import Hints

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
    payload: Payload

    @property
    def score(self) -> float:
        return self.parts.get(DENSE, 0.0) + self.parts["words"] + self.parts["hints"]

    @property
    def thread(self) -> str:
        thread = _value(self.payload).get("thread")
        return thread if isinstance(thread, str) else ""


async def blended(engine: Engine, query: Query, hints: Hints) -> list[Scored]:
    """Search in the mode `blend`; a score's parts are `dense`, `bm25`, `words`, `hints` and `lent`.

    The cosine and BM25 propose their best records, and the best of these are weighed in full. A record that
    words did not propose counts as sharing none.
    """
    pool = await engine.pool(query)
    words = {point: parts[SPARSE] for point, parts in pool.items() if SPARSE in parts}
    weighed = await engine.weigh(query, _promising(pool, words, query, hints))
    worth = _worth(weighed, hints)
    own = _owned(weighed, words, hints, worth)
    best = heapq.nlargest(LENDERS, own, key=lambda point: (own[point].score, point))
    lenders = [point for point in best if own[point].thread]
    around, near = await engine.around(query, [own[point].payload for point in lenders], REACH)
    own |= _owned(near, words, hints, worth)
    lent = _lent(own, dict(zip(lenders, around, strict=True)))
    total = {point: own[point].score + lent.get(point, 0.0) for point in weighed.keys() | lent.keys()}
    ranked = sorted(total, key=lambda point: (-total[point], point))
    wanted = [point for point in ranked if query.min_score is None or total[point] >= query.min_score]
    wanted = wanted[query.offset : query.offset + query.limit]
    return [
        Scored(own[point].payload["event"], total[point], own[point].parts | {"lent": lent.get(point, 0.0)})
        for point in wanted
    ]


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
    most = {point: parts.get(DENSE, lowest) + share.get(point, 0.0) for point, parts in pool.items()}
    return heapq.nlargest(query.weighed, most, key=lambda point: (most[point], point))


def _shares(words: Mapping[str, float]) -> dict[str, float]:
    """Return what the words of each record add to its score."""
    best = max(words.values(), default=0.0) or 1.0
    return {point: WORDS * score / best for point, score in words.items()}


def _worth(weighed: Mapping[str, Weighed], hints: Hints) -> float:
    """Return what a name in the question adds: little where most of the records carry one."""
    named = sum(hints.names(_value(each.payload)) for each in weighed.values())
    return NAMED * (1 - named / max(len(weighed), 1))


def _owned(
    weighed: Mapping[str, Weighed], words: Mapping[str, float], hints: Hints, worth: float
) -> dict[str, Own]:
    """Score records by themselves."""
    share = _shares(words)
    owned: dict[str, Own] = {}
    for point, (cosine, payload) in weighed.items():
        parts = {} if cosine is None else {DENSE: cosine}
        parts |= {SPARSE: words[point]} if point in words else {}
        parts |= {"words": share.get(point, 0.0), "hints": _hinted(payload, hints, worth)}
        owned[point] = Own(parts, payload)
    return owned


def _hinted(payload: Payload, hints: Hints, worth: float) -> float:
    value = _value(payload)
    hinted = worth * hints.names(value) + HAPPENS * hints.suits(value)
    if hints.periods:
        written = datetime.fromtimestamp(payload["created"] / 1_000_000, UTC).date()
        hinted += DATED * hints.dates(value, written)
    return hinted


def _value(payload: Payload) -> Mapping[str, Any]:
    value: Mapping[str, Any] = payload.get("value", {})
    return value


def _lent(own: Mapping[str, Own], around: Mapping[str, Sides]) -> dict[str, float]:
    """Return what the best records lend to the others."""
    lent: dict[str, float] = {}
    for lender, sides in around.items():
        for point, distance in chain.from_iterable(_told_beside(own, lender, side) for side in sides):
            rise = (own[lender].score - own[point].score) / (1 + distance)
            lent[point] = max(lent.get(point, 0.0), rise)
    return lent


def _told_beside(own: Mapping[str, Own], lender: str, side: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield the neighbours on one side with their distance, up to where another thread begins.

    One that the query's filters exclude was not weighed, and ends it too: its thread is not known.
    """
    for distance, point in enumerate(side, 1):
        if point not in own or own[point].thread != own[lender].thread:
            return
        yield point, distance
