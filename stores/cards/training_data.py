"""What a model can be tuned with (§8, step 1): verified cards as answers, deprecated ones as warnings."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

from mneme.stores.cards.card import Card, DeprecatedApproach
from mneme.stores.cards.settings import Consolidation

HELD_OUT = 0.20


class TrainingData(BaseModel):
    """Lines of JSON, to train on and held out; 20 % of the verified cards are held out."""

    model_config = ConfigDict(frozen=True)

    train: list[str]
    held_out: list[str]


def training_data(
    cards: Sequence[Card], tasks: Mapping[str, str], settings: Consolidation | None = None
) -> TrainingData:
    """Return input-output pairs of the verified cards, and of the deprecated ones what is wrong with them.

    What is asked is the latest logged task that a card rests on (`tasks`: id to words), or its conditions.
    A card falls on one side by a digest of its id, whatever other cards there are, so that what was once
    held out stays so. Only verified cards are held out: the others teach what not to do.
    """
    limits = settings or Consolidation()
    good = [card for card in cards if is_good(card, limits)]
    bad = [card for card in cards if card.status == "deprecated" and not card.flags]
    train = [_positive(card, tasks) for card in good if not is_held_out(card)]
    held_out = [_positive(card, tasks) for card in good if is_held_out(card)]
    return TrainingData(train=[*train, *map(_negative, bad)], held_out=held_out)


def is_held_out(card: Card) -> bool:
    """Say on which side a card falls: a fifth of all ids is held out."""
    digest = hashlib.sha256(card.id.encode()).digest()
    return int.from_bytes(digest[:8], "big") < HELD_OUT * 2**64


def is_good(card: Card, limits: Consolidation) -> bool:
    """Say whether a card is proven well enough to be trained on."""
    return (
        card.status == "verified"
        and not card.flags
        and card.confidence > limits.confidence_over
        and card.evidence.success_count >= limits.successes
    )


def _positive(card: Card, tasks: Mapping[str, str]) -> str:
    logged = [tasks[task] for task in card.evidence.task_ids if task in tasks]
    return _line(card, "positive", logged[-1] if logged else situation_of(card), lesson_of(card))


def _negative(card: Card) -> str:
    return _line(card, "negative", f"Is this right? {card.claim}", warning_of(card))


def _line(card: Card, label: str, asked: str, answer: str) -> str:
    messages = [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
    pair = {"card": card.id, "version": card.version, "label": label, "messages": messages}
    return json.dumps(pair, ensure_ascii=False)


def situation_of(card: Card) -> str:
    """Return a question that a card answers, where no task of it was logged."""
    conditions = "; ".join(rule.condition for rule in card.rules)
    about = ", ".join(filter(None, [card.scope, *card.tags]))
    return "\n".join(
        [
            f"How is this best approached: {about or 'the following'}?",
            *([f"Conditions: {conditions}"] if conditions else []),
        ]
    )


def lesson_of(card: Card) -> str:
    """Return the reasoning first, then what follows from it."""
    return "\n".join(
        [
            *([f"Reasoning: {card.rationale.strip()}"] if card.rationale.strip() else []),
            f"Lesson: {card.claim}",
            *(f"When {rule.condition}: {rule.pattern}" for rule in card.rules),
            *(_not(each) for each in card.deprecated_approaches),
            *(f"Fails when {f.condition}: {f.impact}. {f.mitigation}".strip() for f in card.failure_modes),
        ]
    )


def _not(dead_end: DeprecatedApproach) -> str:
    when = f" when {dead_end.condition}" if dead_end.condition else ""
    return f"Not{when}: {dead_end.approach} ({dead_end.reason})"


def warning_of(card: Card) -> str:
    """Return what is wrong with a deprecated card."""
    evidence = card.evidence
    failures = [f"It fails when {mode.condition}: {mode.impact}." for mode in card.failure_modes]
    counted = f"It succeeded {evidence.success_count} times and failed {evidence.failure_count} times."
    why = [f"It was given up: {card.deprecated_because}."] if card.deprecated_because else []
    in_vain = map(_not, card.deprecated_approaches)
    return "\n".join(["Do not rely on it.", *why, counted, *in_vain, *failures])
