"""A team's knowledge cards (§3 to §6): retrieved by weights, kept by rules, stored in the ledger.

Each team's cards are records of ("teams", team, "cards"), keyed by the claim and its scope, so that two
tasks which learn the same lesson meet in one card: the second reinforces the first. Every change is a
version with its reason. A verified card is never overwritten: it is reinforced, merged by a resolution,
deprecated, restored or rolled back, each by name.

A card is on one of three shelves of its namespace, which are searched separately: `active` cards are
retrieved; `pitfall`s are the deprecated ones, for the devil's advocate alone; those set `aside` (archived,
flagged, of a confidence under 0.5) are found by no search.

Upkeep (§5, §10) runs after each task, without delaying it. *Inactivity*: cards that none of the last 100
tasks was shown are archived. Its progress is a record of ("teams", team, "upkeep"). *Expiry*: cards past
their expiry date are archived. Upkeep may be stopped at any moment; the next one finishes it.

Deviations from the paper: the weights rank the `candidates` cards most similar to the task (128 by
default), not all cards, so that a card about something else cannot rank first by its confidence and success
alone.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from mneme.core.errors import BadInput, Conflict, NotFound
from mneme.stores.cards.card import (
    SECONDS_A_DAY,
    SIMILARITY,
    Card,
    CardRecords,
    CardSettings,
    Decision,
    Frozen,
    Lesson,
    Rating,
    Retrieved,
    TaskOutcome,
    ranking,
)
from mneme.stores.cards.card_files import CardFiles
from mneme.stores.cards.disputes import Dispute, DisputeRecords, Resolution
from mneme.stores.cards.lifecycle import (
    Approval,
    Care,
    archived,
    cared_for,
    deprecated,
    promoted,
    rated,
    reinforced,
    restored,
    superseded,
    untested_card,
    with_details,
    with_outcomes,
)
from mneme.stores.cards.metrics import (
    MONTH,
    Metrics,
    Period,
    TaskLog,
    TaskRecord,
    Thresholds,
    Unit,
    compute,
    periods,
)
from mneme.stores.cards.sharing import SharedFiles
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.reading import Order
from mneme.stores.ledger.records import Change, Hit, Version, microseconds, team_namespace
from mneme.stores.shelf import Shelf, kind_of

Fits = Callable[[Card], bool]
"""Returns whether a card is useful for a task."""
NO_CARE = Care()
MIN_CARD_COSINE = 0.22
"""The cosine below which a card of another scope, or of none, is about something else.

Of floors from 0 to 0.5, the best by F2 on the twenty questions of `tests/stores/relevance.yaml` that set it.
"""
UNTESTED_CONFIDENCE = 0.5
"""Confidence in a lesson that no task has tested: the minimum for retrieval."""


class Learned(Frozen):
    """The result of storing a lesson: a new card, support for an existing one, or no change."""

    event: Literal["created", "reinforced", "unchanged"]
    card: Card


class Kept(Frozen):
    """The result of upkeep: the ids of the archived cards."""

    archived: list[str] = Field([])
    expired: list[str] = Field([])


class Mark(Frozen):
    """Progress of the search for inactive cards: its window's start, and the number of tasks before."""

    began: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    passed: int


INACTIVITY_MARK = "inactivity"
UPKEEP_ACTOR = "card lifecycle"


class KnowledgeCards:
    """One team's knowledge: its card records, disputes, task log and YAML files.

    Every write names its reason and actor in a `Change`.
    """

    def __init__(self, ledger: Ledger, team: str, settings: CardSettings | None = None) -> None:
        self._ledger, self.team = ledger, team
        self.settings = settings or CardSettings()
        self.records = CardRecords(ledger, team, self.settings)
        self.tasks = TaskLog(ledger, team)

    @cached_property
    def disputes(self) -> DisputeRecords:
        """The disputes about the team's cards."""
        return DisputeRecords(self._ledger, self.records)

    @cached_property
    def files(self) -> CardFiles:
        """The team's cards as files."""
        return CardFiles(self.records)

    @cached_property
    def shared(self) -> SharedFiles:
        """The team's cards for other organisations."""
        return SharedFiles(self._ledger, self.records)

    async def task_behind(self, dispute: Dispute) -> TaskRecord | None:
        """Return the task that made a dispute's finding; None if no task did, or its record is gone."""
        return await self.tasks.find(dispute.new.task) if dispute.new.task else None

    async def create(self, lesson: Lesson, outcome: TaskOutcome, *, change: Change) -> Learned:
        """Create a provisional card from a lesson, or reinforce its existing card.

        A task teaches a lesson only once, even if the call is repeated. A deprecated card stays deprecated,
        but gets further dead ends.
        """
        card = with_outcomes(untested_card(lesson, change, 0.0), [outcome])  # sets the confidence
        once = f"learn:{outcome.task}"
        try:
            made = await self.records.insert(card, change=change, key=card.id, idempotency_key=once)
        except Conflict:  # the id is made of claim and scope: the lesson has a card
            before = await self.records.get(card.id)
        else:
            return Learned(event="created", card=made)

        def decide(card: Card) -> Decision:
            detailed = with_details(card, lesson)
            if card.status == "deprecated":
                return None if detailed == card else (detailed, change.reason)
            return reinforced(detailed, outcome, change.reason, self.settings)

        after = await self.records.change(before.id, decide, change)
        return Learned(event="unchanged" if after.version == before.version else "reinforced", card=after)

    async def propose(self, lesson: Lesson, *, change: Change, care: Care = NO_CARE) -> Learned:
        """Create a provisional card from an untested lesson; an existing card stays as it is."""
        made = care.of(untested_card(lesson, change, UNTESTED_CONFIDENCE))
        is_new = await self.records.add_new(made.id, made, change=change)
        return Learned(event="created" if is_new else "unchanged", card=await self.records.get(made.id))

    async def reinforce(
        self, card_id: str, outcome: TaskOutcome, *, change: Change, details: Lesson | None = None
    ) -> Card:
        """Add a task's outcome to a card: counts, confidence, window; a task counts once.

        Of `details`, the dead ends and failure modes are added. A card that fails too often (under 30 % of a
        full window) is deprecated in the same version. A success brings an archived card back.
        Raises NotFound.
        """

        def decide(card: Card) -> Decision:
            detailed = with_details(card, details) if details else card
            return reinforced(detailed, outcome, change.reason, self.settings)

        return await self.records.change(card_id, decide, change)

    async def promote(self, card_id: str, approval: Approval, *, change: Change) -> Card:
        """Verify a provisional card (§5). Raises BadInput with every reason against it."""
        settings = self.settings
        return await self.records.change(
            card_id, lambda card: promoted(card, approval, change.reason, settings), change
        )

    async def deprecate(self, card_id: str, *, change: Change) -> Card:
        """Take a card out of retrieval for a reason; the devil's advocate still sees it."""
        return await self.records.change(card_id, lambda card: deprecated(card, change.reason), change)

    async def restore(self, card_id: str, *, change: Change) -> Card:
        """Return a deprecated or archived card to its earlier status, with an empty window."""
        return await self.records.change(card_id, lambda card: restored(card, change.reason), change)

    async def supersede(self, card_id: str, by: str, *, change: Change) -> Card:
        """Replace a card by a better one (§5, obsolescence). Raises NotFound, BadInput."""
        better = await self.records.get(by)
        return await self.records.change(
            card_id, lambda card: superseded(card, better, change.reason), change
        )

    async def rate(self, card_id: str, rating: Rating, *, change: Change) -> Card:
        """Add a person's rating to a card, as `lifecycle.rated` does. Raises NotFound."""
        return await self.records.change(card_id, lambda card: rated(card, rating, self.settings), change)

    async def care_for(self, card_id: str, care: Care, *, change: Change) -> Card:
        """Change a card's maintainer, expiry date and versions. Raises NotFound, BadInput."""
        return await self.records.change(card_id, lambda card: cared_for(card, care, change.reason), change)

    async def rollback(self, card_id: str, to_version: int, *, change: Change) -> Card:
        """Restore the content of an older version of a card, as a new version. Raises NotFound.

        Whether it is disputed is not rolled back: its disputes decide that.
        """
        versions = {card.version: card for card in await self.records.versions(card_id)}
        if to_version not in versions:
            known = f"{min(versions)} to {max(versions)}"
            raise NotFound(f"{card_id} has no version {to_version}; it has {known}.")
        then, reason = versions[to_version], f"rolled back to version {to_version}: {change.reason}"
        stood = then.returns_to if then.disputed else then.status

        def decide(card: Card) -> Decision:
            status = "disputed" if card.disputed else stood
            return then.model_copy(update={"status": status, "version": card.version}), reason

        return await self.records.change(card_id, decide, change)

    async def clear_flag(self, card_id: str, *, change: Change) -> Card:
        """Let a flagged card be retrieved, because a person cleared it; a later change is checked anew."""

        def decide(card: Card) -> Decision:
            cleared = [*card.cleared, *card.flags]
            return (card.model_copy(update={"cleared": cleared}), change.reason) if card.flags else None

        return await self.records.change(card_id, decide, change)

    async def retrieve(
        self, text: str, k: int = 5, *, scope: str | None = None, fits: Fits = lambda _: True
    ) -> Sequence[Retrieved]:
        """Return the k cards that score best for a task, with the parts of each score (§4).

        With a `scope`, only cards of that scope or of none are searched. If cards do not fit, all candidates
        are searched for others. Expired cards never fit.
        """
        vector, now = await self._ledger.vector_of(text), datetime.now(UTC)
        found = await self._fitting(
            ("active", text, scope),
            k,
            lambda card: not card.expired(now) and fits(card),
            MIN_CARD_COSINE * SIMILARITY,  # weighted, like the part of the score that it is compared with
            ranking=ranking(self.settings),
            vector=vector,
        )
        return [Retrieved(card=card, score=hit.score, parts=hit.parts) for card, hit in found]

    async def pitfalls(
        self, text: str, k: int = 5, *, scope: str | None = None, fits: Fits = lambda _: True
    ) -> Sequence[Retrieved]:
        """Return the deprecated cards that fit and are most similar to a task or a draft: past failures."""
        vector = await self._ledger.vector_of(text)
        found = await self._fitting(("pitfall", text, scope), k, fits, MIN_CARD_COSINE, vector=vector)
        return [Retrieved(card=card, score=hit.score, parts={"similarity": hit.score}) for card, hit in found]

    async def _fitting(
        self, asked: tuple[str, str, str | None], k: int, fits: Fits, least: float, **options: Any
    ) -> list[tuple[Card, Hit]]:
        """Return the k cards of a shelf, of a scope or of none, that fit and are most similar to a text.

        With vectors, cards of a similarity below `least` count as unrelated, except cards of the same scope.
        """
        shelf, text, scope = asked
        if scope is not None:
            options |= {"filter": {"scope": {"$in": ["", scope]} if scope else ""}}
            options |= {"sections": tuple({"", scope})}  # each scope's cards are one
        found: list[tuple[Card, Hit]] = []
        for limit in (k, max(k, self.settings.candidates)):  # the nearest, then all candidates
            hits = await self.records.search(text, limit=limit, mode="dense", shelf=shelf, **options)
            read = [(Card.of(hit.version), hit) for hit in hits]
            near = [
                (card, hit)
                for card, hit in read
                if not options["vector"]  # without an embedder no similarity is known
                or (scope and card.scope == scope)  # its conditions say whether it applies, not its words
                or hit.parts.get("similarity", hit.score) >= least
            ]
            found = [(card, hit) for card, hit in near if fits(card)][:k]
            if len(found) == k or len(hits) < limit:
                break
        return found

    async def resolve(self, dispute_id: str, resolution: Resolution) -> Dispute:
        """End a dispute as `disputes.end` does; first make a card of a lesson that replaces the old one."""
        lesson, reason = resolution.lesson, f"{dispute_id}: {resolution.reason}"
        # The new card first: after a kill between the two the dispute is still open, and can be ended again.
        if lesson:
            dispute = await self.disputes.get(dispute_id)
            if lesson.card_id == dispute.card_id:
                raise BadInput(f"{dispute.card_id} cannot replace itself.", "Keep it, or merge.")
            served = TaskOutcome(task=dispute.new.task or dispute_id, success=True)
            change = Change(reason=reason, actor=resolution.by)
            for outcome in resolution.outcomes or [served]:
                await self.create(lesson, outcome, change=change)
        return await self.disputes.end(dispute_id, resolution)

    async def keep_up(self) -> Kept:
        """Archive the cards that are inactive or have expired."""
        idle = await self.archive_inactive()
        over = {"expires": {"$lte": datetime.now(UTC).timestamp() / SECONDS_A_DAY}}
        heads = await self.records.heads(filter=over, shelf="active")
        expired = await self._archive(heads, "its time is over")
        return Kept(archived=[card.id for card in idle], expired=[card.id for card in expired])

    async def archive_inactive(self) -> Sequence[Card]:
        """Archive the cards that none of the last 100 tasks was shown (§5), and return them.

        A card that was changed during these tasks is not inactive.
        """
        count, needed = await self.tasks.count(), self.settings.inactive_tasks
        if count < needed:
            return []
        window = await self.tasks.latest(needed)
        began, passed = window[0].at, count - needed
        assert began is not None  # the log sets it
        marks = Shelf(self._ledger, team_namespace(self.team, "upkeep"), kind_of(Mark))
        mark = await marks.find(INACTIVITY_MARK) or Mark(passed=passed)
        # Only what has left the window since the last upkeep can have become inactive: cards last written, or
        # last shown, between the beginnings of the previous window and of this one.
        between = Order("updated", since=microseconds(mark.began), until=microseconds(began))
        heads = [*await self.records.heads(order=between)]
        left = await self.tasks.latest(max(0, passed - mark.passed), offset=needed)  # since the last upkeep
        known = {head.key for head in heads}
        before = dict.fromkeys(card for task in left for card in task.retrieved if card not in known)
        heads += await self.records.by_keys([*before])
        shown = {card for task in window for card in task.retrieved}
        idle = [head for head in heads if head.key not in shown and head.at < began]
        done = await self._archive(idle, f"not retrieved in {needed} tasks")
        # The mark last: upkeep that is stopped before it looks through the same cards again.
        with suppress(Conflict):  # another process has noted its progress
            change = Change(reason="looked through", actor=UPKEEP_ACTOR)
            await marks.put(INACTIVITY_MARK, Mark(began=began, passed=passed), change=change)
        return done

    async def _archive(self, heads: Sequence[Version], reason: str) -> list[Card]:
        """Archive the cards that are in use; return them."""
        change = Change(reason=reason, actor=UPKEEP_ACTOR)
        idle = [head.key for head in heads if archived(Card.of(head), reason)]
        return [
            await self.records.change(card_id, lambda card: archived(card, reason), change)
            for card_id in idle
        ]

    async def metrics(self, *, now: datetime | None = None, thresholds: Thresholds | None = None) -> Metrics:
        """Compute every metric of §10, with the alerts that the metrics raise."""
        at = now or datetime.now(UTC)
        before = await self._ledger.as_of(self.records.namespace, at - MONTH)
        return compute(
            await self.tasks.all(),
            {card.id: card for card in await self.records.list()},
            {version.key: Card.of(version) for version in before},
            await self.disputes.list(),
            now=at,
            thresholds=thresholds or Thresholds(),
        )

    async def trend(self, by: Unit | int, *, last: int = 12, now: datetime | None = None) -> list[Period]:
        """Return the last periods, oldest first; each is a calendar unit (UTC) or a number of tasks."""
        histories = [await self.records.history(each.id) for each in await self.records.list()]
        return periods(await self.tasks.all(), histories, by, now or datetime.now(UTC), last)
