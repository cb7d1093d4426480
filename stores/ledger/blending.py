"""The search mode `blend`: meaning and words on one scale, hints, and what was told beside a good hit.

A record's own score is its cosine, plus half its share of the best BM25 sum, plus what the question hints
at: a name, a day, a month or a year, "when". Then the best records lend to those that were written just
before and after them in the same thread: a record at the distance d rises by 1 / (1 + d) of what it lacks to
the lender's score. An answer often stands beside the sentence that shares the question's words.

Fusion by rank (`hybrid`) throws the scores away, so that a weak match of one part counts as much as a strong
one of the other. The weights were chosen on three conversations of LoCoMo, which are no evidence for them.

A record answers hints with the fields `entities`, `time` and `kind` of its value; without a time it answers
with the day on which it was first written. Hints only raise a record's score. They exclude nothing, since a
question may well name another day than the one on which its answer was told.
"""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from mneme.stores.database import Cursor
from mneme.stores.ledger.index import Scores
from mneme.stores.ledger.query import DENSE, SPARSE, Query, passes
from mneme.stores.ledger.reading import Read, heads_of, neighbours_of, vectors_by_ids
from mneme.stores.ledger.records import Hit, Version
from mneme.stores.ledger.words import words_in

WORDS_WEIGHT = 0.5
NAME_WEIGHT = 0.1
DATE_WEIGHT = 0.2
KIND_WEIGHT = 0.05
SCORE_DIGITS = 6
LENDERS = 5
"""Number of records that raise their neighbours; with more of them no further answers were found."""
LENDING_TURNS = 2
"""Maximum distance of raised neighbours; three and four found no more answers."""
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
DATE_WORDS = frozenset([*MONTHS, "today", "yesterday", "last", "this"])
"""Each name of a period has one of these words, or a year."""
TIMELESS = "semantic"
"""The kind of record that "when" does not ask for: a lasting fact."""

_ISO = re.compile(r"\b((?:19|20)\d\d)-(\d\d)(?:-(\d\d))?\b")
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_BEFORE = r"\b(?:(\d{1,2})(?:st|nd|rd|th)?(?:\s+of)?\s+)?"
_AFTER = r"(?:\s+(\d{1,2})(?:st|nd|rd|th)?)?\b(?:,?\s+(?:of\s+)?((?:19|20)\d\d))?\b"
_DATED = re.compile(f"{_BEFORE}({'|'.join(MONTHS)}){_AFTER}", re.IGNORECASE)
# "may" and "march" in lower case are verbs, except beside a day or after a word such as "in" or "last".
_MODAL = re.compile(
    r"(?<!in )(?<!on )(?<!of )(?<!last )(?<!this )(?<!since )(?<!\d )\b(?:may|march)\b(?! \d)"
)
_RELATIVE = re.compile(r"\b(today|yesterday|(?:last|this) (?:week|month|year))\b", re.IGNORECASE)


class Period(NamedTuple):
    """A day, a month or a year; None stands for any."""

    year: int | None = None
    month: int | None = None
    day: int | None = None

    def holds(self, moment: date) -> bool:
        """Return whether a day is in this period."""
        found = (moment.year, moment.month, moment.day)
        return all(wanted in (None, is_) for wanted, is_ in zip(self, found, strict=True))


class Hints(NamedTuple):
    """The hints in a question; made by `hints_of`."""

    words: frozenset[str]
    periods: tuple[Period, ...]
    asks_when: bool

    def names(self, value: Mapping[str, Any]) -> bool:
        """Return whether the question names one of the record's entities."""
        named = value.get("entities")
        listed = named if isinstance(named, list) else []
        entities = [words_in(each) for each in listed if isinstance(each, str)]
        return any(words and words <= self.words for words in entities)

    def dates(self, value: Mapping[str, Any], written: date) -> bool:
        """Return whether the record is from a period that the question names."""
        moment = written
        if isinstance(time := value.get("time"), str):
            with suppress(ValueError):
                moment = date.fromisoformat(time[:10])
        return any(period.holds(moment) for period in self.periods)


@lru_cache(maxsize=64)  # a message is looked up in several places
def hints_of(question: str, today: date) -> Hints:
    """Return the hints in a question; `today` is the day that yesterday, last month and the like refer to."""
    words = words_in(question)
    asks_when = "when" in words or question.lower().startswith("what date")
    # Most questions name no period, and are spared the regular expressions.
    may_name_one = words & DATE_WORDS or "19" in question or "20" in question
    return Hints(words, tuple(_periods(question, today)) if may_name_one else (), asks_when)


def _periods(question: str, today: date) -> Iterator[Period]:
    for year, month, day in _ISO.findall(question):
        yield Period(int(year), int(month), int(day) if day else None)
    rest = _MODAL.sub("", _ISO.sub("", question))
    for before, month, after, year in _DATED.findall(rest):
        day, number = before or after, MONTHS.index(month.lower()) + 1
        yield Period(int(year) if year else None, number, int(day) if day else None)
    for year in _YEAR.findall(_DATED.sub("", rest)):
        yield Period(int(year))
    for words in _RELATIVE.findall(question):
        yield from _relative(words.lower(), today)


def _relative(words: str, today: date) -> Sequence[Period]:
    if words in ("today", "yesterday"):
        return [Period(*(today - timedelta(days=words == "yesterday")).timetuple()[:3])]
    which, unit = words.split()
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + 7 * (which == "last"))
        return [Period(*(monday + timedelta(days=number)).timetuple()[:3]) for number in range(7)]
    if unit == "year":
        return [Period(today.year - (which == "last"))]
    within = today.replace(day=1) - timedelta(days=which == "last")
    return [Period(within.year, within.month)]


class Own(NamedTuple):
    """A record with its own score and the parts of it, before any neighbour raises it.

    Records sort by score, then by the time of their latest version, then by id.
    """

    score: float
    changed: float
    record: str
    thread: str
    parts: dict[str, float]
    head: Version


def blended(cursor: Cursor, read: Read, pool: Mapping[str, Scores], query: Query, hints: Hints) -> list[Hit]:
    """Search in the mode `blend`; a score's parts are `dense`, `bm25` and `words`, the hints, and `lent`.

    The cosine and BM25 propose their best records, the `pool`, and the best of these are scored in full. A
    record that BM25 did not propose counts as sharing no word.
    """
    words = pool.get(SPARSE, {})  # missing if the query has only stop words
    best = max(words.values(), default=0.0) or 1.0
    shares = {record: WORDS_WEIGHT * score / best for record, score in words.items()}
    scoring = _Scoring(cursor, read, query, hints, pool.get(DENSE, {}), words, shares)
    own = {each.record: each for each in scoring.weigh(scoring.promising())}
    lenders = [each for each in sorted(own.values(), reverse=True)[:LENDERS] if each.thread]
    around = neighbours_of(cursor, [each.head for each in lenders], LENDING_TURNS)
    sides = [(lender, side) for lender, two in zip(lenders, around, strict=True) for side in two]
    beside = {record for _, side in sides for record in side} - own.keys()
    every = own | {each.record: each for each in scoring.weigh(beside)}
    lent = dict.fromkeys(own, 0.0)
    for lender, side in sides:
        for distance, record in enumerate(side, 1):
            # A neighbour that the query's filters exclude ends the side, too: its thread is not known.
            if record not in every or every[record].thread != lender.thread:
                break
            rise = (lender.score - every[record].score) / (1 + distance)
            lent[record] = max(lent.get(record, 0.0), rise)
    scored = [(every[record].score + rise, every[record].changed, record) for record, rise in lent.items()]
    least = -math.inf if query.min_score is None else query.min_score
    ranked = sorted((each for each in scored if each[0] >= least), reverse=True)
    return [
        Hit(every[record].head, score, every[record].parts | {"lent": lent[record]})
        for score, _, record in ranked[query.offset : query.offset + query.limit]
    ]


@dataclass
class _Scoring:
    """The own scores of records, for one query."""

    cursor: Cursor
    read: Read
    query: Query
    hints: Hints
    cosines: Scores
    words: Scores
    shares: Scores
    worth: float | None = None  # of a name in the question

    def promising(self) -> Collection[str]:
        """Return the records that can be among the best; all of them if a date in the question may raise any.

        A record that the cosine did not propose has at most the lowest cosine of those that it did.
        """
        proposed = self.cosines | self.words
        if self.hints.periods:
            return proposed
        lowest, shares = min(self.cosines.values(), default=0.0), self.shares
        most = {each: self.cosines.get(each, lowest) + shares.get(each, 0.0) for each in proposed}
        # A power of two, so that neighbouring pages agree.
        weighed = max(32, 1 << (2 * (self.query.limit + self.query.offset) - 1).bit_length())
        first = sorted(most.values(), reverse=True)[:weighed]
        # With all that equal the last one: they are ordered by time, which is not known yet.
        return [record for record, score in most.items() if round(score - first[-1], SCORE_DIGITS) >= 0]

    def weigh(self, records: Collection[str]) -> list[Own]:
        """Score the searched records that pass the query's conditions.

        If the query has a vector, records without one are left out.
        """
        heads = {
            record: head
            for record, head in heads_of(self.cursor, records, self.read, searched=True).items()
            if all(passes(head.value, each) for each in self.query.where.conditions)
        }
        named = {record: self.hints.names(head.value) for record, head in heads.items()}
        if self.worth is None:  # a name counts little if most records have it
            self.worth = NAME_WEIGHT * (1 - sum(named.values()) / max(len(heads), 1))
        cosines = self.cosines | self._computed([each for each in heads if each not in self.cosines])
        found: list[Own] = []
        for record, head in heads.items():
            if self.query.dense is not None and record not in cosines:
                continue
            value, thread = head.value, head.value.get("thread")
            happened = self.hints.asks_when and value.get("kind", TIMELESS) != TIMELESS
            hinted = {"names": self.worth * named[record], "kind": KIND_WEIGHT * happened}
            if self.hints.periods:
                written = head.created.astimezone(UTC).date()
                hinted["dates"] = DATE_WEIGHT * self.hints.dates(value, written)
            parts = {
                name: of[record] for name, of in ((DENSE, cosines), (SPARSE, self.words)) if record in of
            }
            parts |= {"words": self.shares.get(record, 0.0)} | hinted
            score = cosines.get(record, 0.0) + parts["words"] + sum(hinted.values())
            # Rounded, since the engine's cosines are single-precision: noise would rank texts that are alike.
            score, thread = round(score, SCORE_DIGITS), thread if isinstance(thread, str) else ""
            found.append(Own(score, head.at.timestamp(), record, thread, parts, head))
        return found

    def _computed(self, records: Sequence[str]) -> Scores:
        """Return the cosines, by their vectors, of records that the cosine did not propose."""
        if self.query.dense is None or not (found := vectors_by_ids(self.cursor, records)):
            return {}
        import numpy as np  # noqa: PLC0415  (slow to import)

        rows = np.frombuffer(b"".join(found.values()), np.float32).reshape(len(found), -1)
        vectors, asked = rows.astype(float), np.array(self.query.dense, dtype=float)
        lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
        return dict(zip(found, (vectors @ asked / np.where(lengths, lengths, 1.0)).tolist(), strict=True))
