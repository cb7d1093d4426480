"""What a team has learned: knowledge cards (§3 to §6), retrieved by weights, kept by rules, on the ledger.

Each team's cards are records of ("teams", team, "cards"), keyed by the claim and its scope, so that two
tasks which learn the same lesson meet in one card: the second reinforces the first. Every change is a
version with its reason. A verified card is never overwritten: it is reinforced, merged by a resolution,
deprecated, restored or rolled back, each by name.

A card is on one of three shelves of its namespace, which are searched separately: `active` cards are
retrieved; `pitfall`s are the deprecated ones, for the devil's advocate alone; those set `aside` (archived,
flagged, of a confidence under 0.5) are found by no search.

Deviations from the paper: the weights rank the `candidates` cards most similar to the task (128 by
default), not all cards, so that a card about something else cannot rank first by its confidence and success
alone.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from mneme.core.errors import BadInput, Conflict, NotFound
from mneme.stores.cards.card import (
    Card,
    Lesson,
    Part,
    Provenance,
    Retrieved,
    TaskOutcome,
    normalised,
)
from mneme.stores.cards.card_files import CardFiles
from mneme.stores.cards.card_records import CardRecords
from mneme.stores.cards.check import flags_of
from mneme.stores.cards.clusters import Clusters
from mneme.stores.cards.dispute_records import DisputeRecords, merged
from mneme.stores.cards.disputes import DeprecateOld, Dispute, Merge, Resolution
from mneme.stores.cards.lifecycle import (
    Approval,
    Decision,
    archived,
    deprecated,
    is_in_service,
    promoted,
    reinforced,
    restored,
    with_outcomes,
)
from mneme.stores.cards.metrics import MONTH, Metrics, Thresholds, compute
from mneme.stores.cards.ranking import ranking
from mneme.stores.cards.settings import CardSettings
from mneme.stores.cards.task_log import TaskLog
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change

ACTOR = "card lifecycle"
UNTESTED = 0.5
"""The confidence in a lesson that no task has tested: the least with which a card is retrieved."""


class Learned(BaseModel):
    """What became of a lesson: a new card, support for one that was there, or nothing new."""

    model_config = ConfigDict(frozen=True)

    event: Literal["created", "reinforced", "unchanged"]
    card: Card


class KnowledgeCards:
    """One team's knowledge: its card records, disputes, task log, clusters and YAML files.

    Every write names its reason and actor in a `Change`.
    """

    def __init__(self, ledger: Ledger, team: str, settings: CardSettings | None = None) -> None:
        self._ledger, self.team = ledger, team
        self.settings = settings or CardSettings()
        self.records = CardRecords(ledger, team, self.settings)
        self.disputes = DisputeRecords(ledger, self.records)
        self.tasks = TaskLog(ledger, team)
        self.clusters = Clusters(ledger, team, self.settings)
        self.files = CardFiles(ledger, self.records)

    async def create(self, lesson: Lesson, outcome: TaskOutcome, *, change: Change) -> Learned:
        """Make a provisional card of a lesson, or reinforce the card that it already is.

        One task teaches a lesson once, however often it is asked. A deprecated card stays so.
        """
        write = self.records.write_of(_card(lesson, outcome, change), change, 0, f"learn:{outcome.task}")
        try:
            [made] = await self._ledger.write([write])
        except Conflict:
            return await self._learned_again(lesson, outcome, change)
        return Learned(event="created", card=Card.of(made))

    async def propose(self, lesson: Lesson, *, change: Change) -> Learned:
        """Make a provisional card of a lesson that no task has tested; a card that is there already stays."""
        write = self.records.write_of(_untested(lesson, change, UNTESTED), change, 0)
        try:
            [made] = await self._ledger.write([write])
        except Conflict:
            return Learned(event="unchanged", card=await self.records.get(lesson.card_id))
        return Learned(event="created", card=Card.of(made))

    async def _learned_again(self, lesson: Lesson, outcome: TaskOutcome, change: Change) -> Learned:
        before = await self.records.get(lesson.card_id)
        if before.status == "deprecated":
            return Learned(event="unchanged", card=before)

        def decide(card: Card) -> Decision:
            return reinforced(_with_details(card, lesson), outcome, change.reason, self.settings)

        after = await self.records.change(before.id, decide, change)
        return Learned(event="unchanged" if after.version == before.version else "reinforced", card=after)

    async def reinforce(self, card_id: str, outcome: TaskOutcome, *, change: Change) -> Card:
        """Add a task's outcome to a card: counts, confidence, window; a task counts once.

        A card that fails too often (under 30 % of a full window) is deprecated in the same version.
        A success brings an archived card back. Raises NotFound.
        """

        def decide(card: Card) -> Decision:
            return reinforced(card, outcome, change.reason, self.settings)

        return await self.records.change(card_id, decide, change)

    async def promote(self, card_id: str, approval: Approval, *, change: Change) -> Card:
        """Make a provisional card verified (§5). Raises BadInput with every reason against it."""

        def decide(card: Card) -> Decision:
            return promoted(card, approval, change.reason, self.settings)

        return await self.records.change(card_id, decide, change)

    async def deprecate(self, card_id: str, *, change: Change) -> Card:
        """Take a card out of retrieval for good reason; the devil's advocate still sees it."""
        return await self.records.change(card_id, lambda card: deprecated(card, change.reason), change)

    async def restore(self, card_id: str, *, change: Change) -> Card:
        """Bring a deprecated or archived card back to the standing it had, with an empty window."""
        return await self.records.change(card_id, lambda card: restored(card, change.reason), change)

    async def merge(self, card_id: str, merge: Merge, *, change: Change) -> Card:
        """Widen a card into conditional rules, keeping its standing. Raises BadInput for one out of use."""

        def decide(card: Card) -> Decision:
            if not is_in_service(card):
                raise BadInput(f"{card.id} is {card.status}.", "Restore it first.")
            return merged(card, merge), f"merged: {merge.reason}"

        return await self.records.change(card_id, decide, change)

    async def rollback(self, card_id: str, to_version: int, *, change: Change) -> Card:
        """Give a card again what it was at an older version, as a new version. Raises NotFound.

        Whether it is disputed does not go back with it: that is for its disputes to say.
        """
        versions = {each.card.version: each.card for each in await self.records.history(card_id)}
        if to_version not in versions:
            known = f"{min(versions)} to {max(versions)}"
            raise NotFound(f"{card_id} has no version {to_version}; it has {known}.")
        reason = f"rolled back to version {to_version}: {change.reason}"
        return await self.records.change(
            card_id, lambda card: (_as_it_was(versions[to_version], card), reason), change
        )

    async def clear_flag(self, card_id: str, *, change: Change) -> Card:
        """Let a flagged card be retrieved, on a person's word; a later change is checked anew."""

        def decide(card: Card) -> Decision:
            cleared = [*card.cleared, *card.flags]
            return (card.model_copy(update={"cleared": cleared}), change.reason) if card.flags else None

        return await self.records.change(card_id, decide, change)

    async def retrieve(self, text: str, k: int = 5) -> Sequence[Retrieved]:
        """Return the k cards that score best for a task, with the parts of each score (§4).

        Where there are clusters, only the cards of the nearest ones are looked at, and those in none. Where
        the embedder is absent all cards are looked at, since a search by words is fast in any case.
        """
        vector = await self._ledger.vector_of(text)
        near = await self.clusters.nearest(text, vector, self.settings.probed)
        hits = await self._ledger.search(
            self.records.namespace,
            text,
            limit=k,
            mode="dense",
            ranking=ranking(self.settings),
            shelf="active",
            groups=[*near, ""] if near else None,
            vector=vector,
        )
        return [Retrieved(card=Card.of(hit.version), score=hit.score, parts=hit.parts) for hit in hits]

    async def pitfalls(self, text: str, k: int = 5) -> Sequence[Retrieved]:
        """Return the deprecated cards most similar to a task or a draft, for the devil's advocate."""
        found = await self._ledger.search(
            self.records.namespace, text, limit=k, mode="dense", shelf="pitfall"
        )
        return [
            Retrieved(card=Card.of(hit.version), score=hit.score, parts={"similarity": hit.score})
            for hit in found
        ]

    async def resolve(self, dispute_id: str, resolution: Resolution) -> Dispute:
        """End a dispute as `disputes.end` does; a lesson that replaces the card becomes a card first."""
        if isinstance(resolution, DeprecateOld) and resolution.lesson is not None:
            await self._replacement(dispute_id, resolution, resolution.lesson)
        return await self.disputes.end(dispute_id, resolution)

    async def _replacement(self, dispute_id: str, resolution: DeprecateOld, lesson: Lesson) -> None:
        dispute = await self.disputes.get(dispute_id)
        if lesson.card_id == dispute.card_id:
            raise BadInput(f"{dispute.card_id} cannot replace itself.", "Keep it, or merge.")
        first, *more = resolution.outcomes or [TaskOutcome(task=dispute.new.task or dispute_id, success=True)]
        change = Change(reason=f"{dispute_id}: {resolution.reason}", actor=resolution.by)
        learned = await self.create(lesson, first, change=change)
        for outcome in more:
            await self.reinforce(learned.card.id, outcome, change=change)

    async def archive_inactive(self) -> Sequence[Card]:
        """Archive the cards that none of the last 100 tasks was shown (§5), and return them.

        A card that was written to during these tasks is not inactive.
        """
        count, needed = await self.tasks.count(), self.settings.inactive_tasks
        if count < needed:
            return []
        last = await self.tasks.list(limit=needed, offset=count - needed)
        began, shown = last[0].at, {card for task in last for card in task.retrieved}
        assert began is not None
        heads = await self._ledger.records(self.records.namespace, limit=await self.records.count())
        reason = f"not retrieved in {needed} tasks"
        unshown = [head for head in heads if head.key not in shown and head.at < began]
        idle = [head.key for head in unshown if archived(Card.of(head), reason)]
        change = Change(reason=reason, actor=ACTOR)
        return [await self.records.change(key, lambda card: archived(card, reason), change) for key in idle]

    async def metrics(self, *, now: datetime | None = None, thresholds: Thresholds | None = None) -> Metrics:
        """Compute every metric of §10, with the alerts that they raise."""
        at = now or datetime.now(UTC)
        before = await self._ledger.as_of(self.records.namespace, at - MONTH)
        return compute(
            await self.tasks.list(),
            {card.id: card for card in await self.records.list()},
            {version.key: Card.of(version) for version in before},
            await self.disputes.list(),
            now=at,
            thresholds=thresholds or Thresholds(),
        )


def _card(lesson: Lesson, outcome: TaskOutcome, change: Change) -> Card:
    return with_outcomes(_untested(lesson, change, outcome.worth), [outcome])


def _untested(lesson: Lesson, change: Change, confidence: float) -> Card:
    provenance = Provenance(created_by=change.actor, created_at=datetime.now(UTC), model_version=change.model)
    return Card(
        **{name: getattr(lesson, name) for name in Lesson.model_fields},
        id=lesson.card_id,
        provenance=provenance,
        confidence=confidence,
    )


def _as_it_was(then: Card, now: Card) -> Card:
    stood = then.returns_to if then.status == "disputed" else then.status
    return then.model_copy(update={"status": "disputed" if now.disputed else stood})


def _with_details(card: Card, lesson: Lesson) -> Card:
    """Add what a later lesson knows of failures and dead ends; claim, rationale and rules stay.

    Nothing is added of a lesson that reads like an instruction: it would take the card out of retrieval.
    """
    if flags_of(lesson):
        return card
    return card.model_copy(
        update={
            "deprecated_approaches": _joined(
                card.deprecated_approaches, lesson.deprecated_approaches, "approach"
            ),
            "failure_modes": _joined(card.failure_modes, lesson.failure_modes, "condition"),
            "tags": list(dict.fromkeys([*card.tags, *lesson.tags])),
        }
    )


def _joined(here: Sequence[Part], new: Sequence[Part], by: str) -> list[Part]:
    known = {normalised(getattr(part, by)) for part in here}
    return [*here, *(part for part in new if normalised(getattr(part, by)) not in known)]
