"""Operations on a team's cards and disputes, in this process or on a running server."""

from collections.abc import Sequence
from typing import ClassVar

from mneme.core.errors import BadInput, NotFound
from mneme.nodes.learning.dispute_resolution import Verdict, decided
from mneme.stores.cards.card import Card, CardVersion, Status
from mneme.stores.cards.card_files import Imported
from mneme.stores.cards.disputes import Approach, ConflictType, Dispute, DisputeStatus
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.task_log import TaskRecord
from mneme.stores.ledger.records import Change


class CardOperations(KnowledgeCards):
    """Operations on a team's cards, disputes and metrics."""

    ROUTE: ClassVar[str] = "teams"
    REMOTE: ClassVar[Sequence[str]] = (
        "whose",
        "list",
        "get",
        "history",
        "retrieve",
        "promote",
        "deprecate",
        "restore",
        "rollback",
        "clear_flag",
        "export_yaml",
        "import_yaml",
        "metrics",
        "list_tasks",
        "count_tasks",
        "open_dispute",
        "get_dispute",
        "list_disputes",
        "decide",
        "card_starting",
        "dispute_starting",
    )
    """The operations that a server offers to the command line."""

    async def whose(self) -> str:
        """Return the team's name; on a server with users it contains the caller's name."""
        return self.team

    async def list(
        self, status: Status | None = None, *, limit: int | None = None, offset: int = 0
    ) -> Sequence[Card]:
        """Return cards in the order in which they were first learned; all of them without a limit."""
        return await self.records.list(status, limit=limit, offset=offset)

    async def get(self, card_id: str) -> Card:
        """Return a card as it is now. Raises NotFound."""
        return await self.records.get(card_id)

    async def history(self, card_id: str) -> Sequence[CardVersion]:
        """Return every version of a card, oldest first. Raises NotFound."""
        return await self.records.history(card_id)

    async def export_yaml(self, card_ids: Sequence[str] | None = None, *, all_versions: bool = False) -> str:
        """Return cards as YAML, on request with every version. Raises NotFound."""
        return await self.files.export(card_ids, all_versions=all_versions)

    async def import_yaml(self, text: str, *, change: Change) -> Imported:
        """Take in exported cards, all of them or none. Raises BadInput."""
        return await self.files.import_(text, change=change)

    async def list_tasks(self, *, limit: int | None = None, offset: int = 0) -> Sequence[TaskRecord]:
        """Return finished tasks, oldest first."""
        return await self.tasks.list(limit=limit, offset=offset)

    async def count_tasks(self) -> int:
        """Return the number of finished tasks."""
        return await self.tasks.count()

    async def open_dispute(
        self,
        card_id: str,
        *,
        old: Approach,
        new: Approach,
        change: Change,
        conflict_type: ConflictType = "contradiction",
    ) -> Dispute:
        """Open a dispute against a card. Raises NotFound, BadInput."""
        return await self.disputes.open(card_id, old=old, new=new, change=change, conflict_type=conflict_type)

    async def get_dispute(self, dispute_id: str) -> Dispute:
        """Return a dispute as it is now. Raises NotFound."""
        return await self.disputes.get(dispute_id)

    async def list_disputes(
        self, status: DisputeStatus | None = None, *, card_id: str | None = None
    ) -> Sequence[Dispute]:
        """Return disputes, oldest first."""
        return await self.disputes.list(status, card_id=card_id)

    async def decide(self, dispute_id: str, verdict: Verdict) -> Dispute:
        """Resolve a dispute as a person decided, where no run waits for the decision."""
        dispute = await self.disputes.get(dispute_id)
        card = await self.records.get(dispute.card_id)
        return await self.resolve(dispute_id, decided(verdict, dispute, card))

    async def card_starting(self, beginning: str) -> Card:
        """Return the card whose id begins so, with or without `card_`. Raises NotFound, BadInput."""
        known = {card.id: card for card in await self.records.list()}
        return known[_only(beginning, "card_", list(known), self.team)]

    async def dispute_starting(self, beginning: str) -> Dispute:
        """Return the dispute whose id begins so, with or without `disp_`. Raises NotFound, BadInput."""
        known = {dispute.id: dispute for dispute in await self.disputes.list()}
        return known[_only(beginning, "disp_", list(known), self.team)]


def _only(beginning: str, prefix: str, ids: Sequence[str], team: str) -> str:
    kind = {"card_": "card", "disp_": "dispute"}[prefix]
    if not beginning.strip():
        raise BadInput(
            f"The {kind}'s id is missing.", f"Give the id or its first letters; see `mneme {kind}s list`."
        )
    if beginning in ids:
        return beginning
    found = [each for each in ids if each.removeprefix(prefix).startswith(beginning.removeprefix(prefix))]
    if not found:
        raise NotFound(f"The team {team} has no {kind} {beginning}.", f"See `mneme {kind}s list`.")
    if len(found) > 1:
        raise BadInput(f"{len(found)} ids begin with {beginning}.", "Give more letters of the id.")
    return found[0]
