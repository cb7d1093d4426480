"""What the command line may do with a team's cards and disputes, here or through a running server."""

from collections.abc import Sequence
from typing import ClassVar

from mneme.errors import BadInput, NotFound
from nodes.dispute_resolution import Verdict, decided
from stores.cards import Card
from stores.disputes import Dispute
from stores.knowledge_cards import KnowledgeCards


class TeamOperations(KnowledgeCards):
    """A team's cards, disputes and metrics."""

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
        "tasks",
        "task_count",
        "open_dispute",
        "dispute",
        "disputes",
        "decide",
        "card_starting",
        "dispute_starting",
    )
    """The operations that a server does for the command line."""

    async def whose(self) -> str:
        """Return the team whose cards these are: a server answers with the caller's own of that name."""
        return self.team

    async def decide(self, dispute_id: str, verdict: Verdict) -> Dispute:
        """Resolve a dispute on a person's word, where no run waits for it."""
        dispute = await self.dispute(dispute_id)
        return await self.resolve(dispute_id, decided(verdict, dispute, await self.get(dispute.card_id)))

    async def card_starting(self, beginning: str) -> Card:
        """Return the one card whose id begins so, with or without `card_`. Raises NotFound, BadInput."""
        known = {card.id: card for card in await self.list()}
        return known[_only(beginning, "card_", list(known), self.team)]

    async def dispute_starting(self, beginning: str) -> Dispute:
        """Return the one dispute whose id begins so, with or without `disp_`. Raises NotFound, BadInput."""
        known = {dispute.id: dispute for dispute in await self.disputes()}
        return known[_only(beginning, "disp_", list(known), self.team)]


def _only(beginning: str, prefix: str, ids: Sequence[str], team: str) -> str:
    kind = {"card_": "card", "disp_": "dispute"}[prefix]
    if not beginning.strip():
        raise BadInput(
            f"Which {kind}?", f"Give its id, or enough of its beginning; see `mneme {kind}s list`."
        )
    if beginning in ids:
        return beginning
    found = [each for each in ids if each.removeprefix(prefix).startswith(beginning.removeprefix(prefix))]
    if not found:
        raise NotFound(f"The team {team} has no {kind} {beginning}.", f"See `mneme {kind}s list`.")
    if len(found) > 1:
        raise BadInput(f"{len(found)} ids begin with {beginning}.", "Give more of it.")
    return found[0]
