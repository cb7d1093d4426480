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
from typing import NamedTuple

from mneme.stores.ledger.engine import DENSE, SPARSE, Engine, Payload, Query, Scored, Weighed
from mneme.stores.ledger.hints import Hints

WORDS = 0.5
NAMED = 0.1
DATED = 0.2
HAPPENS = 0.05
LENDERS = 8
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
        thread = self.payload.get("value", {}).get("thread")
        return thread if isinstance(thread, str) else ""


async def blended(engine: Engine, query: Query, hints: Hints) -> list[Scored]:
    """Search in the mode `blend`; a score's parts are `dense`, `bm25`, `words`, `hints` and `lent`.

    The cosine and BM25 propose their best records, and the best of these are weighed in full. A record that
    words did not propose counts as sharing none.
    """
    pool = await engine.pool(query)
    words = {point: parts[SPARSE] for point, parts in pool.items() if SPARSE in parts}
    weighed = await engine.weigh(query, _promising(pool, words, query, hints))
    own = _owned(weighed, words, hints)
    lent = await _lent(engine, query, own, words, hints)
    total = {point: own[point].score + lent.get(point, 0.0) for point in weighed.keys() | lent.keys()}
    ranked = sorted(total, key=lambda point: (-total[point], point))
    wanted = [point for point in ranked if query.min_score is None or total[point] >= query.min_score]
    wanted = wanted[query.offset : query.offset + query.limit]
    found = await engine.read(wanted)
    return [
        Scored(found[point]["event"], total[point], own[point].parts | {"lent": lent.get(point, 0.0)})
        for point in wanted
        if found.get(point, {}).get("scope", "").startswith("+")  # not retired or forgotten since
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


def _owned(weighed: Mapping[str, Weighed], words: Mapping[str, float], hints: Hints) -> dict[str, Own]:
    """Score records by themselves. A name that most of the records carry says little, so it adds little."""
    named = {point for point, each in weighed.items() if hints.names(each.payload.get("value", {}))}
    worth = NAMED * (1 - len(named) / max(len(weighed), 1))
    share = _shares(words)
    owned: dict[str, Own] = {}
    for point, (cosine, payload) in weighed.items():
        parts = {} if cosine is None else {DENSE: cosine}
        parts |= {SPARSE: words[point]} if point in words else {}
        parts |= {"words": share.get(point, 0.0), "hints": worth * (point in named) + _timely(payload, hints)}
        owned[point] = Own(parts, payload)
    return owned


def _timely(payload: Payload, hints: Hints) -> float:
    value = payload.get("value", {})
    timely = HAPPENS * hints.suits(value)
    if hints.periods:
        written = datetime.fromtimestamp(payload["created"] / 1_000_000, UTC).date()
        timely += DATED * hints.dates(value, written)
    return timely


async def _lent(
    engine: Engine, query: Query, own: dict[str, Own], words: Mapping[str, float], hints: Hints
) -> dict[str, float]:
    """Return what the best records lend, and add to `own` those that were not weighed before."""
    best = heapq.nlargest(LENDERS, own, key=lambda point: (own[point].score, point))
    lenders = [point for point in best if own[point].thread]
    around = await engine.around([own[point].payload for point in lenders], REACH)
    near = {point for sides in around for side in sides for point in side}
    own |= _owned(await engine.weigh(query, list(near - own.keys())), words, hints)
    lent: dict[str, float] = {}
    for lender, sides in zip(lenders, around, strict=True):
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
