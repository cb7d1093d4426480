"""A team's cards and pools, as a model reads them."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from mneme.api.pools import RetrieverState
from mneme.integrations.brief import Brief, alike, short
from mneme.stores.cards.card import Card, Retrieved
from mneme.stores.cards.knowledge_cards import Learned
from mneme.stores.pools.memory_pool import Pooled

MOST = 50
"""Pools that are listed."""
SEVERAL = 10
"""Rules, failures and other parts that are shown of one card."""


class CardLine(BaseModel):
    """A knowledge card: its id for other tools, the lesson, and what it stands on."""

    id: str
    claim: str
    status: str = Field(description="verified, or provisional: no person or leader has approved it yet.")
    confidence: float
    score: float | None = Field(None, description="How well it fits the task; none: not searched for.")

    @property
    def line(self) -> str:
        score = "" if self.score is None else f", score {self.score:.2f}"
        return f"[{self.id}] {self.claim} ({self.status}, confidence {self.confidence:.2f}{score})"


class CardLines(Brief):
    """Cards that fit a task, the best first."""

    cards: list[CardLine]

    def lines(self) -> list[str]:
        return [each.line for each in self.cards] or ["No cards."]


class CardShown(Brief):
    """A card with its reasons, rules, failures and evidence."""

    card: CardLine
    rationale: str
    scope: str
    rules: list[str]
    failures: list[str]
    avoid: list[str] = Field(description="Approaches that were tried before, and why not to try them again.")
    successes: int
    failed: int

    def lines(self) -> list[str]:
        said = {"Rationale": [self.rationale], "Scope": [self.scope], "Rule": self.rules}
        said |= {"Fails": self.failures, "Avoid": self.avoid}
        more = [f"{name}: {each}" for name, texts in said.items() for each in texts if each]
        return [self.card.line, *more, f"Evidence: {self.successes} successes, {self.failed} failures."]


class Proposed(Brief):
    """A card that was proposed, or was there already."""

    is_new: bool
    card: CardLine

    def lines(self) -> list[str]:
        did = "Stored for a person to review" if self.is_new else "It is there already, unchanged"
        return [f"{did}: {self.card.line}"]


class PairLine(BaseModel):
    """A question and its answer from a pool."""

    key: str
    question: str
    answer: str
    agent: str
    score: int = Field(description="What the answer was worth, of 100.")
    similarity: float | None = None


class PairLines(Brief):
    """Pairs of questions and answers, the best first."""

    pairs: list[PairLine]

    def lines(self) -> list[str]:
        return [
            f"[{each.key}] Question: {each.question or '(none)'} Answer: {each.answer} "
            f"({each.agent}, score {each.score}{alike(each.similarity)})"
            for each in self.pairs
        ] or ["No pairs."]


class PoolLine(BaseModel):
    """A pool and how many pairs it holds."""

    name: str
    pairs: int


class PoolLines(Brief):
    """The team's pools."""

    pools: list[PoolLine]

    def lines(self) -> list[str]:
        return [f"{each.name}: {each.pairs} pairs" for each in self.pools] or ["No pools."]


def cards(found: Sequence[Retrieved]) -> CardLines:
    return CardLines(cards=[_card(each.card, each.score) for each in found])


def card(found: Card) -> CardShown:
    rules = [f"when {each.condition}: {each.pattern}" for each in found.rules]
    failures = [_joined(each.condition, each.impact, each.mitigation) for each in found.failure_modes]
    avoid = [_joined(each.approach, each.reason) for each in found.deprecated_approaches]
    return CardShown(
        card=_card(found),
        rationale=short(found.rationale),
        scope=short(found.scope),
        rules=_several(rules),
        failures=_several(failures),
        avoid=_several(avoid),
        successes=found.evidence.success_count,
        failed=found.evidence.failure_count,
    )


def proposed(learned: Learned) -> Proposed:
    return Proposed(is_new=learned.event == "created", card=_card(learned.card))


def pairs(found: Sequence[Pooled]) -> PairLines:
    return PairLines(
        pairs=[
            PairLine(
                key=each.key,
                question=short(each.pair.prompt),
                answer=short(each.pair.answer),
                agent=short(each.pair.agent),
                score=each.pair.score,
                similarity=each.similarity,
            )
            for each in found
        ]
    )


def pools(found: Sequence[RetrieverState]) -> PoolLines:
    return PoolLines(pools=[PoolLine(name=each.pool, pairs=each.memories) for each in found[:MOST]])


def _card(found: Card, score: float | None = None) -> CardLine:
    claim = short(found.claim)
    return CardLine(id=found.id, claim=claim, status=found.status, confidence=found.confidence, score=score)


def _several(texts: Sequence[str]) -> list[str]:
    return [short(each) for each in texts[:SEVERAL]]


def _joined(*parts: str) -> str:
    return "; ".join(each for each in parts if each)
