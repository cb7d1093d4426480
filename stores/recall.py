"""Recall over every kind of record that the asker may see: relevance, validity and origin.

Each kind is searched separately, so that none crowds out another. All hits are compared with the question on
one scale: the cosine of text and question, plus half the share of the question's words that occur in the
text. Hits below their kind's floor are dropped; this test also compares the question's sentences one by one
and uses the best, since a record may answer only one of them. The other hits are ordered by relevance to the
whole question, times standing (the kind's confidence in the record), times validity (a half where it does not
hold now), times recency (the oldest hit of a kind weighs up to a fifth less than the newest, whether days or
years lie between). The best hit is shown first; the rest of the budget is filled by score per token, and each
record shown lowers the weight of its kind, except facts, of which a question may need many. A record that
rests on a corrected or retired source is left out, or marked.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from mneme.stores.access import RECALLABLE, Asker, Recallable
from mneme.stores.discussions.discussions import Discussion
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.query import number_in
from mneme.stores.ledger.reading import vectors_by_ids, versions_of
from mneme.stores.ledger.records import (
    LOCAL,
    Namespace,
    Version,
    record_id,
    team_namespace,
    unescaped,
    user_namespace,
)
from mneme.stores.pools.memory_pool import Pair
from mneme.stores.provenance import everything, outdated, stale
from mneme.stores.users.memory import Past, holding
from mneme.stores.users.traces import third_person

TEXT_REFERENCE = re.compile(r"([^@#]+)@(\d+)#(\d+)")
QUESTION_PART_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
MIN_RELEVANCE = 0.3
"""Minimum relevance of a recalled record."""
MIN_PAIR_RELEVANCE = 0.6
"""Minimum relevance of a recalled pair: at 0.3, 3 of 4 turns of LoCoMo are shown a riddle or a poem."""
ONE_TEXT = ("fact", "card", "pair")
"""Kinds whose records have one current text, so that the record's vector is also that text's; earlier states
of a fact are further parts."""
CANDIDATES_PER_KIND = 24
"""Number of records of each kind that are compared with the question."""
SEARCHED_RECORDS = 1000
"""Number of latest records of each place that are searched for contradictions."""
ANSWER_MARK = " Answered: "
RECENCY = 0.2
CROWD_PENALTY = 0.5
"""Penalty on the weight of a kind, other than facts, for each of its records that is shown."""
OUT_OF_TIME = 0.5
"""Factor for a fact that no longer holds, or does not hold yet."""
STATUS_FACTORS = {"verified": 1.0, "provisional": 0.8, "disputed": 0.5}
"""Factor for a card's status, beside its confidence."""


class Recalled(BaseModel):
    """A recalled text: its kind, owner, origin and score.

    `reference` names the version, so that new records can name it as a source; `part` is the number of the
    text in the record; `stale` is the reason why the record is out of date, or empty. The score is the
    product of `scores`, at most 1: `relevance` to the question, `standing` with validity, and `recency`.
    """

    model_config = ConfigDict(frozen=True)

    kind: Recallable
    owner: str
    key: str
    reference: str
    part: int = 0
    text: str
    origin: str
    score: float = 0.0
    scores: Mapping[str, float] = {}
    stale: str = ""

    @property
    def name(self) -> str:
        """The name of this text: its version's reference and its part."""
        return f"{self.reference}#{self.part}"

    def is_in(self, namespace: Namespace) -> bool:
        """Whether its record is in this namespace."""
        return self.reference.partition("@")[0] == record_id(namespace, self.key)

    @property
    def is_whole(self) -> bool:
        """Whether this text is all that its record says now."""
        return self.kind in ONE_TEXT and self.part == 0

    @property
    def line(self) -> str:
        """The text with its origin, for a reader who is shown several."""
        return f"{self.text} [{self.origin}{'; out of date: ' + self.stale if self.stale else ''}]"


Keep = Literal["newer", "older", "both", "trial"]
"""How a contradiction is settled; `trial`, for cards, opens a dispute that tries both on tasks."""


class Contradiction(BaseModel):
    """Two records that may contradict each other, and the reason for the suspicion."""

    model_config = ConfigDict(frozen=True)

    key: str
    newer: Recalled
    older: Recalled
    why: str


class _Kind(NamedTuple):
    """Search and rendering of one kind of record."""

    section: str
    """The section of a team's namespace that holds its records."""
    texts: Callable[[Version], Sequence[str]]
    """Returns the texts of a record, each of which can be shown alone."""
    origin: Callable[[Version], str]
    standing: Callable[[Version], float] = lambda _: 1.0
    shelf: str = ""
    filter: Mapping[str, Any] = {}
    """The filter that selects its records among others below the same namespace."""
    floor: float = MIN_RELEVANCE
    about: Callable[[str], str] = str
    """Returns the part of a text that is compared with the question."""


def _fact(version: Version) -> Sequence[str]:
    value, state = version.value, _holding(version)
    ends = {"past": f" (until {value.get('until')})", "later": f" (from {value.get('since')})", "now": ""}
    before: Any = value.get("past") or []
    return [f"{value.get('content', version.text)}{ends[state]}", *(Past(**each).text for each in before)]


def _holding(version: Version) -> Literal["now", "later", "past"]:
    since, until = (str(version.value.get(name) or "") for name in ("since", "until"))
    return holding(since, until, date.today())


def _card(version: Version) -> Sequence[str]:
    value: Any = version.value
    rules = "; ".join(f"{each['condition']}: {each['pattern']}" for each in value.get("rules", []))
    return [f"{value['claim']}{f' ({rules})' if rules else ''}"]


def _synopses(version: Version) -> Sequence[str]:
    found: Any = version.value.get("synopses") or []
    return found or [version.text]


def _pair(version: Version) -> Sequence[str]:
    pair = Pair.model_validate(version.value)
    return [] if pair.is_rated_down else [f"Asked: {pair.asks}{ANSWER_MARK}{pair.answer}"]


def _day(version: Version) -> date:
    """Return the day on which a fact was told (not imported), or another record's version was written."""
    with suppress(ValueError):
        return date.fromisoformat(str(version.value.get("time") or "")[: len("2026-01-01")])
    return version.at.date()


def _said_by(version: Version) -> str:
    """Return who said a fact and on which day; for a team's fact, also who shared it."""
    is_own = version.namespace[0] == "users"
    return f"{_owner(version)}{' said' if is_own else f', {version.change.reason}'}, {_day(version)}"


RECORD_KINDS: Mapping[Recallable, _Kind] = {
    "fact": _Kind("facts", _fact, _said_by),
    "card": _Kind(
        "cards",
        _card,
        lambda each: f"{each.key}, {each.value['status']}",
        lambda of: STATUS_FACTORS.get(str(of.value["status"]), 0.0) * number_in(of.value, "confidence", 1.0),
        "active",
    ),
    "agreement": _Kind(
        "discussions",
        lambda each: Discussion.of(each).agreements,
        lambda each: f"discussion {each.key}, {each.value['ended']}, {_day(each)}",
        filter={"turns": {"$gte": 0}},  # turns and the agents' memories lie below their discussion
    ),
    "synopsis": _Kind(
        "household", _synopses, lambda each: f"household {each.value.get('episode')}, {_day(each)}"
    ),
    "pair": _Kind(
        "pools",
        _pair,
        lambda each: f"pool {unescaped(each.namespace[-2])}, score {each.value['score']}",
        lambda each: number_in(each.value, "score", 1.0) / 100,
        filter={"score": {"$gte": 0}},  # a retriever's lessons lie in pools, too
        floor=MIN_PAIR_RELEVANCE,
        about=lambda text: text.partition(ANSWER_MARK)[0],
    ),
}  # fmt: skip


async def recall(  # noqa: PLR0913 (one name for each thing a caller may say)
    ledger: Ledger,
    question: str,
    asker: Asker,
    *,
    kinds: Sequence[Recallable] = RECALLABLE,
    budget: int = 400,
    cost: Callable[[str], int] = lambda text: len(text) // 3,  # most tokens have more than 3 characters
    show_stale: bool = False,
) -> list[Recalled]:
    """Return what answers a question best, best first, within a budget of tokens, as `cost` counts them."""
    vector = await ledger.vector_of(question) if question.strip() else None  # once for all searches
    found = list[tuple[Recallable, Version]]()
    for kind in kinds:
        for place, only_verified in _places(kind, asker):
            of = RECORD_KINDS[kind]
            hits = await ledger.search(
                place, question, limit=CANDIDATES_PER_KIND, filter=of.filter, shelf=of.shelf, vector=vector
            )
            versions = [hit.version for hit in hits]
            found += [(kind, each) for each in versions if not only_verified or is_verified(each)]
    if not found:
        return []
    why = await stale(ledger, [version.record for _, version in found], asker.sees)
    if not show_stale:
        found = [each for each in found if each[1].record not in why]
    parts = [
        (part, version)
        for kind, version in found
        for part in _parts(kind, version, stale=why.get(version.record, ""))
    ]
    whole = [version.record for part, version in parts if part.is_whole]
    vectors = await ledger.read(vectors_by_ids, whole)
    known = [vectors.get(version.record) if part.is_whole else None for part, version in parts]
    texts = [RECORD_KINDS[part.kind].about(part.text) for part, _ in parts]
    alike = await ledger.scores([question], texts, known=known)
    in_part = await ledger.scores(_sentences(question), texts, known=known)
    recent = _recency(found)
    ranked = list[Recalled]()
    for (part, version), relevance, of_sentence in zip(parts, alike, in_part, strict=True):
        if max(relevance, of_sentence) >= RECORD_KINDS[part.kind].floor:
            standing, recency = _weight(part, version), recent[version.record]
            scores = {"relevance": relevance, "standing": standing, "recency": recency}
            score = relevance * standing * recency
            ranked.append(part.model_copy(update={"score": score, "scores": scores}))
    return _packed(ranked, budget, cost)


async def visible_records(ledger: Ledger, asker: Asker, kind: Recallable) -> list[tuple[Recalled, Version]]:
    """Return the latest records of a kind that the asker may see, without those that are out of date."""
    of, found = RECORD_KINDS[kind], list[Version]()
    for place, only_verified in _places(kind, asker):
        heads = await ledger.records(
            place, filter=of.filter, limit=SEARCHED_RECORDS, shelf=of.shelf, newest_first=True
        )
        found += [each for each in heads if not only_verified or is_verified(each)]
    why = await stale(ledger, [each.record for each in found])
    parts = [(part, each) for each in found if each.record not in why for part in _parts(kind, each)]
    return [each for each in parts if kind not in ONE_TEXT or each[0].is_whole]


def _sentences(question: str) -> Iterable[str]:
    """Return the first two and the last two sentences of a question."""
    said = list(filter(None, map(str.strip, QUESTION_PART_END.split(question))))
    return dict.fromkeys([*said[:2], *said[-2:]])  # each once: a short question has some twice


def _recency(found: Sequence[tuple[Recallable, Version]]) -> Mapping[str, float]:
    """Return the recency weight of each record, by its rank by age among the records of its kind."""
    weights = dict[str, float]()
    for kind in {kind for kind, _ in found}:
        aged = sorted((_day(each), each.at, each.record) for of, each in found if of == kind)
        weights |= {record: 1 - RECENCY * (1 - n / len(aged)) for n, (*_, record) in enumerate(aged, 1)}
    return weights


def _places(kind: Recallable, asker: Asker) -> Iterator[tuple[Namespace, bool]]:
    """Yield the namespaces whose records of a kind the asker may see, and whether only verified ones."""
    section = RECORD_KINDS[kind].section
    if kind not in asker.retrieves:
        if kind == "fact" and asker.user:
            yield user_namespace(asker.user, "memories"), False
        yield from ((team_namespace(team, section), False) for team in asker.teams)
    for each in asker.opened:
        if each.kind == kind:
            yield team_namespace(each.team, section), each.only_verified


def is_verified(version: Version) -> bool:
    """Return whether a record is a card with the status `verified`."""
    return version.value.get("status") == "verified"


async def read_again(
    ledger: Ledger, names: Sequence[str], sees: Callable[[Namespace], bool] = everything
) -> list[Recalled]:
    """Return earlier recalled texts by their names, as they were then, marked if they are out of date now.

    Forgotten records are left out.
    """
    wanted = [TEXT_REFERENCE.fullmatch(each) for each in names]
    ids = [(each[1], int(each[2]), int(each[3])) for each in wanted if each]
    used = [(record, number) for record, number, _ in ids]
    versions, why = await ledger.read(versions_of, used), await outdated(ledger, used, sees)
    return [
        parts[part]
        for record, number, part in ids
        if (version := versions.get((record, number))) and (kind := kind_in(version.namespace))
        if part < len(parts := _parts(kind, version, why.get((record, number), "")))
    ]


def kind_in(namespace: Namespace) -> Recallable | None:
    """Return the kind of the records in a namespace; None if they are not recalled."""
    root, below = namespace[0], namespace[2:]
    if root == "users":
        return "fact" if below == ("memories",) else None
    if below[:1] == ("pools",):
        return "pair" if below[2:] == ("pairs",) else None
    if len(below) == 2 and below[0] == "household":
        return "synopsis"
    found: Mapping[Namespace, Recallable] = {
        ("facts",): "fact",
        ("cards",): "card",
        ("discussions",): "agreement",
    }
    return found.get(below)


def _parts(kind: Recallable, version: Version, stale: str = "") -> list[Recalled]:
    """Return the texts of a record, without scores."""
    owner, origin = _owner(version), RECORD_KINDS[kind].origin(version)
    if kind != "fact" and owner != LOCAL:  # a fact's origin names its team already
        origin = f"{owner}, {origin}"
    return [
        Recalled(
            kind=kind,
            owner=owner,
            key=version.key,
            reference=version.reference,
            part=part,
            text=text,
            origin=origin,
            stale=stale,
        )
        for part, text in enumerate(RECORD_KINDS[kind].texts(version))
    ]


def _weight(part: Recalled, version: Version) -> float:
    """Return the weight of a text apart from relevance and recency: standing times validity."""
    # An earlier state of a fact has a part of its own, and never holds now.
    holds_now = part.kind != "fact" or (part.is_whole and _holding(version) == "now")
    return RECORD_KINDS[part.kind].standing(version) * (1.0 if holds_now else OUT_OF_TIME)


def _packed(ranked: Sequence[Recalled], budget: int, cost: Callable[[str], int]) -> list[Recalled]:
    """Return the texts that fit into the budget together; one that does not fit is skipped for shorter ones.

    Each text shown lowers the weight of its kind, except facts. Scores above 1 become 1.
    """
    shown, of_kind, told = list[Recalled](), Counter[Recallable](), set[str]()
    by_kind = {
        kind: sorted((each for each in ranked if each.kind == kind), key=_order) for kind in RECORD_KINDS
    }

    def worth(each: Recalled) -> tuple[bool, float]:
        # The best text goes first, whatever its length. Then score per token decides: a long synopsis must
        # not displace several facts that fit as well.
        tokens = max(1, cost(each.line)) if shown else 1
        return bool(each.stale), -each.score / (1 + CROWD_PENALTY * of_kind[each.kind]) / tokens

    while waiting := [each[0] for each in by_kind.values() if each]:
        best = min(waiting, key=worth)
        by_kind[best.kind].pop(0)
        # A fact and its team's copy, which names the owner in the third person, are shown once.
        says = {best.text, third_person(best.text, best.owner)}
        if not says & told and (tokens := cost(best.line)) <= budget:
            shown.append(best)
            told |= says
            of_kind[best.kind] += best.kind != "fact"
            budget -= tokens
    best_first = sorted(shown, key=_order)
    # Above 1 is a text that repeats the question's words.
    return [each.model_copy(update={"score": min(each.score, 1.0)}) for each in best_first]


def _order(each: Recalled) -> tuple[bool, float]:
    return bool(each.stale), -each.score


def _owner(version: Version) -> str:
    return unescaped(version.namespace[1])
