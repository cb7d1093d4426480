"""One recall over every kind of record that somebody may see: what is relevant, holds, and where it is from.

Each kind is searched by itself, so that none crowds out another. What was found is compared with the question
on one scale: the cosine of text and question, plus half the share of the question's words that the text has.
What is below `FLOOR` is not shown. The rest is ordered by relevance times standing (how sure the kind is of
the record), times validity (what holds no longer, or not yet, counts half), times recency (a fifth of it,
with a half-life of a year). What rests on something that was corrected or taken back is left out, or marked.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict

from mneme.stores.ledger.lookup import Lookup
from mneme.stores.ledger.namespaces import team_namespace, unescaped, user_namespace
from mneme.stores.ledger.records import Namespace, Version
from mneme.stores.provenance import stale
from mneme.stores.users.valid_time import holding

Recallable = Literal["fact", "card", "agreement", "synopsis", "pair"]
RECALLABLE: tuple[Recallable, ...] = get_args(Recallable)
FLOOR = 0.35
"""The least relevance with which something is shown."""
CANDIDATES = 12
"""Records of each kind that are compared with the question."""
HALF_LIFE_DAYS = 365.0
RECENCY = 0.2
OUT_OF_TIME = 0.5
"""What a fact counts that holds no longer or not yet."""
STANDING = {"verified": 1.0, "provisional": 0.8, "disputed": 0.5}
"""What a card's status counts, beside its confidence."""


@dataclass(frozen=True)
class Asker:
    """Whose question it is: the user whose facts, and the teams whose findings it may be answered from."""

    user: str = ""
    teams: tuple[str, ...] = ()


class Recalled(BaseModel):
    """One thing that was recalled: what it says, of which kind and whose it is, and how sure it is.

    `reference` names the version, for what is made from it; `stale` says why it no longer rests on what it
    was made from, where that is so.
    """

    model_config = ConfigDict(frozen=True)

    kind: Recallable
    owner: str
    key: str
    reference: str
    text: str
    origin: str
    score: float
    stale: str = ""

    @property
    def line(self) -> str:
        """The text with its origin, for a reader who is shown several."""
        return f"{self.text} [{self.origin}{'; out of date: ' + self.stale if self.stale else ''}]"


class _Kind(NamedTuple):
    """How one kind is searched, and what is shown of a record of it."""

    where: Callable[[Asker], Iterable[Namespace]]
    texts: Callable[[Version], Sequence[str]]
    """What a record says, in parts that can be shown by themselves."""
    origin: Callable[[Version], str]
    standing: Callable[[Version], float] = lambda _: 1.0
    shelf: str = ""


def _of_teams(*below: str) -> Callable[[Asker], Iterable[Namespace]]:
    return lambda asker: [team_namespace(team, *below) for team in asker.teams]


def _facts(asker: Asker) -> Iterable[Namespace]:
    own = [user_namespace(asker.user, "memories")] if asker.user else []
    return [*own, *_of_teams("facts")(asker)]


def _fact(version: Version) -> Sequence[str]:
    value, state = version.value, _holding(version)
    ends = {"past": f" (until {value.get('until')})", "later": f" (from {value.get('since')})", "now": ""}
    return [f"{value.get('content', version.text)}{ends[state]}"]


def _holding(version: Version) -> Literal["now", "later", "past"]:
    since, until = (str(version.value.get(name) or "") for name in ("since", "until"))
    return holding(since, until, date.today())


def _card(version: Version) -> Sequence[str]:
    value: Any = version.value
    rules = "; ".join(f"{each['condition']}: {each['pattern']}" for each in value.get("rules", []))
    return [f"{value['claim']}{f' ({rules})' if rules else ''}"]


def _agreement(version: Version) -> Sequence[str]:
    document: Any = version.value.get("document") or {}
    return [text for name, part in document.items() if (text := _said(name, part))]


def _said(name: str, part: Any) -> str:
    """Return one part of a discussion's document as a line; empty for what says nothing of the matter."""
    if isinstance(part, str):
        return f"{name}: {part}"
    if not isinstance(part, Mapping) or "name" not in part:
        return ""
    told = "; ".join(str(each) for field, each in part.items() if field not in ("name", "turns"))
    return f"{part['name']}: {told}"


def _synopses(version: Version) -> Sequence[str]:
    found: Any = version.value.get("synopses") or []
    return found or [version.text]


def _pair(version: Version) -> Sequence[str]:
    question = version.value.get("own_question") or version.value.get("prompt")
    return [f"Asked: {question} Answered: {version.value['answer']}"]


def _day(version: Version) -> str:
    return f"{version.at:%Y-%m-%d}"


def _number(version: Version, name: str) -> float:
    value = version.value.get(name)
    return float(value) if isinstance(value, int | float) else 1.0


KINDS: Mapping[Recallable, _Kind] = {
    "fact": _Kind(_facts, _fact, lambda each: f"{_owner(each)} said, {_day(each)}"),
    "card": _Kind(
        _of_teams("cards"),
        _card,
        lambda each: f"{each.key}, {each.value['status']}",
        lambda each: STANDING.get(str(each.value["status"]), 0.0) * _number(each, "confidence"),
        "active",
    ),
    "agreement": _Kind(
        _of_teams("discussions"),
        _agreement,
        lambda each: f"discussion {each.key}, {each.value['ended']}, {_day(each)}",
    ),
    "synopsis": _Kind(
        _of_teams("household"), _synopses, lambda each: f"household {each.value.get('episode')}, {_day(each)}"
    ),
    "pair": _Kind(
        _of_teams("pools"),
        _pair,
        lambda each: f"pool {unescaped(each.namespace[-2])}, score {each.value['score']}",
        lambda each: _number(each, "score") / 100,
    ),
}  # fmt: skip


async def recall(  # noqa: PLR0913 (one name for each thing a caller may say)
    ledger: Lookup,
    question: str,
    asker: Asker,
    *,
    kinds: Sequence[Recallable] = RECALLABLE,
    budget: int = 400,
    cost: Callable[[str], int] = lambda text: len(text) // 3,
    show_stale: bool = False,
) -> list[Recalled]:
    """Return what answers a question best, best first, within a budget of tokens, as `cost` counts them."""
    vector = await ledger.vector_of(question) if question.strip() else None
    found = list[tuple[Recallable, Version]]()
    for kind in kinds:
        for place in KINDS[kind].where(asker):
            hits = await ledger.search(
                place, question, limit=CANDIDATES, shelf=KINDS[kind].shelf, vector=vector
            )
            found += [(kind, hit.version) for hit in hits]
    why = await stale(ledger, [version.record for _, version in found])
    if not show_stale:
        found = [each for each in found if each[1].record not in why]
    parts = [(kind, version, text) for kind, version in found for text in KINDS[kind].texts(version)]
    alike = await ledger.scores(question, [text for _, _, text in parts])
    ranked = [
        Recalled(
            kind=kind,
            owner=_owner(version),
            key=version.key,
            reference=version.reference,
            text=text,
            origin=KINDS[kind].origin(version),
            score=relevance * _weight(kind, version),
            stale=why.get(version.record, ""),
        )
        for (kind, version, text), relevance in zip(parts, alike, strict=True)
        if relevance >= FLOOR
    ]
    ranked.sort(key=lambda each: (bool(each.stale), -each.score))
    return _packed(ranked, budget, cost)


def _weight(kind: Recallable, version: Version) -> float:
    """Return what a record counts beside its relevance: standing, validity and recency."""
    validity = 1.0 if kind != "fact" or _holding(version) == "now" else OUT_OF_TIME
    days = (datetime.now(UTC) - version.at).total_seconds() / 86_400
    recency = 1 - RECENCY + RECENCY * math.pow(0.5, max(0.0, days) / HALF_LIFE_DAYS)
    return KINDS[kind].standing(version) * validity * recency


def _packed(ranked: Iterable[Recalled], budget: int, cost: Callable[[str], int]) -> list[Recalled]:
    """Take the best that fit into the budget together; one that does not fit makes way for shorter ones."""
    shown = list[Recalled]()
    for each in ranked:
        if (tokens := cost(each.line)) <= budget:
            shown.append(each)
            budget -= tokens
    return shown


def _owner(version: Version) -> str:
    return unescaped(version.namespace[1])
