"""The consolidation cycle (§8): when it is due, what a model learns from a card, and the archive.

The graph `consolidation` makes the training pairs and tunes a model (`nodes/learning/consolidation/`). What a
promotion changes is one write: the cards that the tuned model has learned are archived under the version's
tag, and the model answers for the team. So is what takes it back.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

from mneme.stores.cards.card import Card, Consolidation, Decision, DeprecatedApproach
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import archived
from mneme.stores.cards.metrics import Metrics
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Write, team_namespace
from mneme.stores.tuned_models import Archive, ArchiveWrites, TunedModels

HELD_OUT_SHARE = 0.20
"""Share of the verified cards that no model is trained on (§8, step 2)."""


def is_held_out(card: Card) -> bool:
    """Return whether a card is held out, by a digest of its id, so that the choice never changes."""
    digest = hashlib.sha256(card.id.encode()).digest()
    return int.from_bytes(digest[:8], "big") < HELD_OUT_SHARE * 2**64  # 8 bytes as a fraction of 1


def is_good(card: Card, limits: Consolidation) -> bool:
    """Return whether a card is proven well enough for training (§8, step 1)."""
    return (
        card.status == "verified"
        and not card.flags
        and card.confidence > limits.confidence_over
        and card.evidence.success_count >= limits.successes
    )


def situation_of(card: Card) -> str:
    """Return a question that a card answers, for cards without a logged task."""
    conditions = "; ".join(rule.condition for rule in card.rules)
    about = ", ".join(filter(None, [card.scope, *card.tags])) or "the following"
    asked = f"How is this best approached: {about}?"
    return f"{asked}\nConditions: {conditions}" if conditions else asked


def lesson_of(card: Card) -> str:
    """Return a card as an answer to train on: its reasoning first, then its conclusion."""
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
    """Return the text that warns of a deprecated card, with the reasons."""
    evidence = card.evidence
    failures = [f"It fails when {mode.condition}: {mode.impact}." for mode in card.failure_modes]
    counted = f"It succeeded {evidence.success_count} times and failed {evidence.failure_count} times."
    why = [f"It was given up: {card.deprecated_because}."] if card.deprecated_because else []
    in_vain = map(_not, card.deprecated_approaches)
    return "\n".join(["Do not rely on it.", *why, counted, *in_vain, *failures])


CONSOLIDATED = "consolidated as {tag}"
DELTA = 2
"""Maximum cards shown for a task where a tuned model serves (§8: 1 to 2, and 5 to 10 before)."""


class ConsolidationCycle(TunedModels):
    """The consolidations of one team's cards."""

    command = "cards consolidate"

    def __init__(self, ledger: Ledger, cards: KnowledgeCards, limits: Consolidation | None = None) -> None:
        super().__init__(ledger, team_namespace(cards.team))
        self._cards, self._limits = cards, limits or Consolidation()

    async def due(self, *, model: str = "", now: datetime | None = None) -> Sequence[str]:
        """Return the reasons for which a consolidation is due, if any.

        The quarter runs from the last consolidation, or from the first card. `model` is the base model
        that is used now.
        """
        at, archives = now or datetime.now(UTC), await self._standing()
        first = await self._ledger.records(self._cards.records.namespace, limit=1)
        last = archives[-1].at if archives else first[0].created if first else None
        return reasons_to_consolidate(
            await self._cards.metrics(now=at),
            now=at,
            last=last,
            trained_model=archives[-1].model if archives else "",
            model=model,
            limits=self._limits,
        )

    async def _learned(
        self, tag: str, keep: Sequence[str], only: Sequence[str] | None, change: Change
    ) -> ArchiveWrites:
        """Return the archived cards that were in service: each can be restored; its versions say why."""
        records = self._cards.records
        reason = f"{CONSOLIDATED.format(tag=tag)}: {change.reason}"

        def decide(card: Card) -> Decision:
            goes = card.id not in keep and (only is None or card.id in only)
            return archived(card, reason, disputed=True) if goes else None  # disputed ones, too

        decided = [records.decided(head, decide, change) for head in await records.heads()]
        writes = [write for write in decided if write is not None]
        return ArchiveWrites([str(write.key) for write in writes], len(writes), writes)

    async def _brought_back(self, undone: Archive, change: Change) -> Sequence[Write]:
        """Return the writes that restore archived cards; a card that changed since then stays as it is."""
        records, tag = self._cards.records, undone.tag
        change = change.model_copy(update={"reason": f"consolidation {tag} taken back: {change.reason}"})
        writes = []
        for head in await records.by_keys(undone.ids):  # only those whose last change is this archive
            if head.change.reason.startswith(f"{CONSOLIDATED.format(tag=tag)}:"):
                *_, before, now = await records.versions(head.key)
                restored = before.model_copy(update={"version": now.version + 1})
                writes.append(records.write(head.key, restored, change, head.version))
        return writes

    async def learned(self) -> set[str]:
        """Return the cards archived by the valid consolidations: each training starts from the same base."""
        return {each for one in await self._standing() for each in one.ids}


def reasons_to_consolidate(  # noqa: PLR0913 (one name for each condition)
    metrics: Metrics,
    *,
    now: datetime,
    last: datetime | None,
    trained_model: str = "",
    model: str = "",
    limits: Consolidation | None = None,
) -> list[str]:
    """Return the reasons for which a consolidation is due, if any.

    `last` is when the base was last consolidated, or begun; `trained_model` the base model then.
    """
    limits = limits or Consolidation()
    enough = metrics.tasks >= limits.of_tasks  # of fewer the slowest is the p95, and the first makes indexes
    slow = metrics.retrieval_p95_ms if enough else None
    precision = metrics.retrieval_precision if enough else None
    is_low = precision is not None and precision < limits.precision
    tests = [
        (metrics.verified > limits.most_verified, f"{metrics.verified} verified cards"),
        (bool(model and trained_model and model != trained_model), f"a new base model: {model}"),
        (slow is not None and slow > limits.slowest_ms, f"retrieval takes {slow or 0:.0f} ms (p95)"),
        (is_low, f"retrieval precision is {precision or 0:.0%}"),
        (last is not None and now - last >= limits.every, "a quarter has passed"),
    ]
    return [why for due, why in tests if due]
