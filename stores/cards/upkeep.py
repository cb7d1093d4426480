"""What keeps a base of cards in order (§5, §10), a little after each task and never in its way.

*Inactivity.* Cards that none of the last 100 tasks was shown are archived. Nothing but what has left the
window of these tasks since the last time is looked at: the cards that were last written before it began, and
those that were last shown in a task before it. How far that came is a record of ("teams", team, "upkeep").

*Expiry.* Cards whose time is over are archived.

All of it may be stopped at any moment, and is finished by the next time.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime

from pydantic import Field

from mneme.core.errors import Conflict
from mneme.stores.cards.card import Card, Frozen
from mneme.stores.cards.card_records import SECONDS_A_DAY, CardRecords
from mneme.stores.cards.lifecycle import archived
from mneme.stores.cards.metrics import TaskLog
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.listing import Order
from mneme.stores.ledger.records import Change, Version, microseconds, team_namespace
from mneme.stores.shelf import Shelf, kind_of

ACTOR = "card lifecycle"


MARK = "inactivity"


class Kept(Frozen):
    """What upkeep did: the ids of the cards that it archived."""

    archived: list[str] = Field([])
    expired: list[str] = Field([])


class Mark(Frozen):
    """How far the search for inactive cards came: when its window began, and the tasks before that."""

    began: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    passed: int


class Upkeep:
    """The upkeep of one team's cards."""

    def __init__(self, ledger: Ledger, records: CardRecords, tasks: TaskLog) -> None:
        self._ledger, self._records, self._tasks = ledger, records, tasks
        namespace = team_namespace(records.team, "upkeep")
        self._marks = Shelf(ledger, namespace, kind_of(Mark))

    async def run(self) -> Kept:
        """Archive what is inactive or has expired."""
        idle = await self.archive_inactive()
        over = {"expires": {"$lte": datetime.now(UTC).timestamp() / SECONDS_A_DAY}}
        heads = await self._records.heads(filter=over, shelf="active")
        expired = await self._archive(heads, "its time is over")
        return Kept(archived=[card.id for card in idle], expired=[card.id for card in expired])

    async def archive_inactive(self) -> Sequence[Card]:
        """Archive the cards that none of the last 100 tasks was shown (§5), and return them.

        A card that was written to during these tasks is not inactive.
        """
        count, needed = await self._tasks.count(), self._records.settings.inactive_tasks
        if count < needed:
            return []
        window = await self._tasks.latest(needed)
        began, passed = window[0].at, count - needed
        assert began is not None
        mark = await self._marks.find(MARK) or Mark(passed=passed)
        # What was last written, or last shown, before the window, and not before the one of the last time.
        between = Order("updated", since=microseconds(mark.began), until=microseconds(began))
        heads = [*await self._records.heads(order=between)]
        left = await self._tasks.latest(max(0, passed - mark.passed), offset=needed)
        known = {head.key for head in heads}
        before = dict.fromkeys(card for task in left for card in task.retrieved if card not in known)
        heads += await self._records.by_keys([*before])
        shown = {card for task in window for card in task.retrieved}
        idle = [head for head in heads if head.key not in shown and head.at < began]
        done = await self._archive(idle, f"not retrieved in {needed} tasks")
        with suppress(Conflict):  # another process noted something meanwhile
            change = Change(reason="looked through", actor=ACTOR)
            await self._marks.put(MARK, Mark(began=began, passed=passed), change=change)
        return done

    async def _archive(self, heads: Sequence[Version], reason: str) -> list[Card]:
        """Archive those of the cards that are in use; return them."""
        change = Change(reason=reason, actor=ACTOR)
        idle = [head.key for head in heads if archived(Card.of(head), reason)]
        return [
            await self._records.change(card_id, lambda card: archived(card, reason), change)
            for card_id in idle
        ]
