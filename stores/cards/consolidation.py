"""The consolidation cycle (§8): when it is due, the training data, and the archive of what was learned.

Fine-tuning a model on that data is not part of Mneme: the export is plain JSON Lines in the form of chat
messages, which the common trainers read.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel, ConfigDict, Field

from mneme.core.errors import BadInput
from mneme.stores.cards.card import Card
from mneme.stores.cards.check import findings
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import archived, is_in_service
from mneme.stores.cards.metrics import Metrics
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change

HELD_OUT = 0.20


class Consolidation(BaseModel):
    """§8's trigger conditions, and which verified cards are good enough to train on."""

    model_config = ConfigDict(frozen=True)

    most_verified: int = 10_000
    slowest_ms: float = 500
    precision: float = 0.70
    every: timedelta = timedelta(days=91)
    confidence_over: float = 0.8
    successes: int = Field(3, ge=1)


class TrainingData(BaseModel):
    """Lines of JSON, to train on and held out; 20 % of the verified cards are held out."""

    model_config = ConfigDict(frozen=True)

    train: list[str]
    held_out: list[str]


class Archive(BaseModel):
    """A knowledge base that was consolidated: its version tag, when, into which model, how many cards."""

    model_config = ConfigDict(frozen=True)

    tag: str
    at: datetime
    model: str = ""
    cards: int = 0
    kept: list[str] = []


class ConsolidationCycle:
    """The consolidations of one team's cards."""

    def __init__(self, ledger: Ledger, cards: KnowledgeCards) -> None:
        self._ledger, self._cards = ledger, cards
        self.namespace = team_namespace(cards.team, "archives")

    async def due(
        self, *, model: str = "", now: datetime | None = None, settings: Consolidation | None = None
    ) -> Sequence[str]:
        """Return why a consolidation is due; nothing where it is not.

        The quarter runs from the last consolidation, or from the first card. `model` is the base model
        that is used now.
        """
        at, archives = now or datetime.now(UTC), await self.archives()
        first = await self._ledger.records(self._cards.records.namespace, limit=1)
        last = archives[-1].at if archives else first[0].created if first else None
        return reasons_to_consolidate(
            await self._cards.metrics(now=at),
            now=at,
            last=last,
            trained_model=archives[-1].model if archives else "",
            model=model,
            settings=settings,
        )

    async def training_data(self, settings: Consolidation | None = None) -> TrainingData:
        """Return what a model can be tuned with, as JSON Lines (§8, step 1).

        Words of a task that read like an instruction to agents are left out, as flagged cards are.
        """
        tasks = {task.id: task.task for task in await self._cards.tasks.list() if task.task}
        plain = {name: text for name, text in tasks.items() if not any(findings(text))}
        return training_data(await self._cards.records.list(), plain, settings)

    async def archive(
        self, tag: str, *, change: Change, model: str = "", keep: Sequence[str] = ()
    ) -> Archive:
        """Archive every card in service under a version tag, except the cards to keep (§8, step 3).

        Nothing is lost: each can be restored, and its versions say when it was archived and why. `model`
        names the base model that has learned them. The tag is written last, so that an archiving that
        was killed is finished by asking again. Raises BadInput where the tag is taken.
        """
        if await self._ledger.get(self.namespace, tag):
            raise BadInput(f"There is an archive {tag} already.", "Choose another version tag.")
        records = self._cards.records
        leaving = [card for card in await records.list() if card.id not in keep and is_in_service(card)]
        reason = f"consolidated as {tag}: {change.reason}"
        for each in leaving:
            await records.change(each.id, lambda card: archived(card, reason, disputed=True), change)
        made = Archive(tag=tag, at=datetime.now(UTC), model=model, cards=len(leaving), kept=[*keep])
        value = made.model_dump(mode="json")
        await self._ledger.insert(self.namespace, value, text="", change=change, key=tag)
        return made

    async def archives(self) -> Sequence[Archive]:
        """Return the archives, oldest first."""
        count = await self._ledger.count(self.namespace)
        found = await self._ledger.records(self.namespace, limit=count)
        return [Archive.model_validate(version.value) for version in found]


def reasons_to_consolidate(  # noqa: PLR0913 (one name for each condition)
    metrics: Metrics,
    *,
    now: datetime,
    last: datetime | None,
    trained_model: str = "",
    model: str = "",
    settings: Consolidation | None = None,
) -> list[str]:
    """Return why a consolidation is due; nothing where it is not.

    `last` is when the base was last consolidated, or begun; `trained_model` the base model then.
    """
    limits = settings or Consolidation()
    slow, precision = metrics.retrieval_p95_ms, metrics.retrieval_precision
    tests = [
        (metrics.verified > limits.most_verified, f"{metrics.verified} verified cards"),
        (bool(model and trained_model and model != trained_model), f"a new base model: {model}"),
        (slow is not None and slow > limits.slowest_ms, f"retrieval takes {slow or 0:.0f} ms (p95)"),
        (
            precision is not None and precision < limits.precision,
            f"retrieval precision is {precision or 0:.0%}",
        ),
        (last is not None and now - last >= limits.every, "a quarter has passed"),
    ]
    return [why for due, why in tests if due]


def training_data(
    cards: Sequence[Card], tasks: Mapping[str, str], settings: Consolidation | None = None
) -> TrainingData:
    """Return input-output pairs of the verified cards, and of the deprecated ones what is wrong with them.

    What is asked is the latest logged task that a card rests on (`tasks`: id to words), or its conditions.
    A card falls on one side by a digest of its id, whatever other cards there are, so that what was once
    held out stays so. Only verified cards are held out: the others teach what not to do.
    """
    limits = settings or Consolidation()
    good = [card for card in cards if _is_good(card, limits)]
    bad = [card for card in cards if card.status == "deprecated" and not card.flags]
    train = [_positive(card, tasks) for card in good if not is_held_out(card)]
    held_out = [_positive(card, tasks) for card in good if is_held_out(card)]
    return TrainingData(train=[*train, *map(_negative, bad)], held_out=held_out)


def is_held_out(card: Card) -> bool:
    """Say on which side a card falls: a fifth of all ids is held out."""
    digest = hashlib.sha256(card.id.encode()).digest()
    return int.from_bytes(digest[:8], "big") < HELD_OUT * 2**64


def _is_good(card: Card, limits: Consolidation) -> bool:
    return (
        card.status == "verified"
        and not card.flags
        and card.confidence > limits.confidence_over
        and card.evidence.success_count >= limits.successes
    )


def _positive(card: Card, tasks: Mapping[str, str]) -> str:
    logged = [tasks[task] for task in card.evidence.task_ids if task in tasks]
    return _line(card, "positive", logged[-1] if logged else _situation(card), _lesson(card))


def _negative(card: Card) -> str:
    return _line(card, "negative", f"Is this right? {card.claim}", _warning(card))


def _line(card: Card, label: str, asked: str, answer: str) -> str:
    messages = [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
    pair = {"card": card.id, "version": card.version, "label": label, "messages": messages}
    return json.dumps(pair, ensure_ascii=False)


def _situation(card: Card) -> str:
    conditions = "; ".join(rule.condition for rule in card.rules)
    about = ", ".join(filter(None, [card.scope, *card.tags]))
    return "\n".join(
        [
            f"How is this best approached: {about or 'the following'}?",
            *([f"Conditions: {conditions}"] if conditions else []),
        ]
    )


def _lesson(card: Card) -> str:
    """Return the reasoning first, then what follows from it."""
    return "\n".join(
        [
            *([f"Reasoning: {card.rationale.strip()}"] if card.rationale.strip() else []),
            f"Lesson: {card.claim}",
            *(f"When {rule.condition}: {rule.pattern}" for rule in card.rules),
            *(f"Not: {each.approach} ({each.reason})" for each in card.deprecated_approaches),
            *(f"Fails when {f.condition}: {f.impact}. {f.mitigation}".strip() for f in card.failure_modes),
        ]
    )


def _warning(card: Card) -> str:
    evidence = card.evidence
    failures = [f"It fails when {mode.condition}: {mode.impact}." for mode in card.failure_modes]
    counted = f"It succeeded {evidence.success_count} times and failed {evidence.failure_count} times."
    why = [f"It was given up: {card.deprecated_because}."] if card.deprecated_because else []
    return "\n".join(["Do not rely on it.", *why, counted, *failures])
