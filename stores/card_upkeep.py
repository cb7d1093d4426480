"""A team's upkeep: the log of its tasks, metrics, what goes out of use, and consolidation (§5, §8, §10)."""

import asyncio
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
from pydantic import BaseModel, ConfigDict

from mneme.errors import BadInput, Conflict
from stores.card_check import findings
from stores.card_clusters import cluster, members
from stores.card_consolidation import Consolidation, TrainingData, reasons_to_consolidate, training_data
from stores.card_disputes import CardDisputes
from stores.card_metrics import MONTH, Metrics, Thresholds, compute
from stores.card_records import team_namespace
from stores.card_rules import CardSettings
from stores.cards import Card
from stores.disputes import out_of_service
from stores.ledger import Ledger
from stores.records import Change, Write, make_write
from stores.task_log import TaskRecord

ARCHIVIST = "card lifecycle"
AT_ONCE = 500


class Archive(BaseModel):
    """A knowledge base that was consolidated: its version tag, when, into which model, how many cards."""

    model_config = ConfigDict(frozen=True)

    tag: str
    at: datetime
    model: str = ""
    cards: int = 0
    kept: list[str] = []


class CardUpkeep(CardDisputes):
    """What looks after the cards, beside the tasks that use them."""

    def __init__(self, ledger: Ledger, team: str, settings: CardSettings | None = None) -> None:
        super().__init__(ledger, team, settings)
        self.task_namespace = team_namespace(team, "tasks")
        self.archive_namespace = team_namespace(team, "archives")
        self.cluster_namespace = team_namespace(team, "clusters")

    async def log_task(self, record: TaskRecord) -> bool:
        """Keep what a finished task was; return False where it is in the log already."""
        change = Change(reason="finished", actor="task log")
        try:
            await self._ledger.insert(
                self.task_namespace, record.model_dump(mode="json"), text="", change=change, key=record.id
            )
        except Conflict:
            return False
        return True

    async def task_count(self) -> int:
        """Return the number of finished tasks."""
        return await self._ledger.count(self.task_namespace)

    async def tasks(self, *, limit: int | None = None, offset: int = 0) -> Sequence[TaskRecord]:
        """Return finished tasks, oldest first; all of them without a limit."""
        wanted = await self.task_count() if limit is None else limit
        found = await self._ledger.records(self.task_namespace, limit=wanted, offset=offset)
        return [TaskRecord.of(version) for version in found]

    async def archive_inactive(self) -> Sequence[Card]:
        """Archive the cards that none of the last 100 tasks was shown, and return them.

        A card that was written to during these tasks is not inactive.
        """
        count, needed = await self.task_count(), self.settings.inactive_tasks
        if count < needed:
            return []
        last = await self.tasks(limit=needed, offset=count - needed)
        began, shown = last[0].at, {card for task in last for card in task.retrieved}
        assert began is not None
        heads = await self._ledger.records(self.namespace, limit=await self.count())
        reason = f"not retrieved in {needed} tasks"
        unshown = [head for head in heads if head.key not in shown and head.at < began]
        idle = [head for head in unshown if _archived(Card.of(head), reason)]
        change = Change(reason=reason, actor=ARCHIVIST)
        return [await self._change(head.key, lambda card: _archived(card, reason), change) for head in idle]

    async def cluster_if_large(self) -> int:
        """Cluster a base of more than 20,000 cards, anew when a tenth is in no cluster; see `cluster`."""
        count = await self._ledger.shelved(self.namespace, "active")
        if count <= self.settings.clustered_over:
            return 0
        loose = await self._ledger.shelved(self.namespace, "active", "")
        return await self.cluster() if loose > self.settings.recluster_at * count else 0

    async def cluster(self) -> int:
        """Divide the cards in use into clusters, which retrieval looks at first; return how many."""
        vectors = await self._ledger.vectors(self.namespace, "active")
        if not vectors:
            return 0
        rows = np.array(list(vectors.values()), dtype=np.float32)
        labels, medoids = await asyncio.to_thread(cluster, rows)
        before = await self._ledger.records(self.cluster_namespace, limit=len(vectors))
        made, points = uuid.uuid4().hex[:8], list(vectors)
        groups = {f"{made}-{name}": ids for name, ids in members(points, labels).items()}
        middle = {f"{made}-{number}": points[row] for number, row in enumerate(medoids.tolist())}
        known = await self._ledger.by_ids([*middle.values()])
        texts = {name: known[point].text for name, point in middle.items() if point in known}
        await self._ledger.write(
            [self._cluster(name, text, len(groups[name])) for name, text in texts.items()]
        )
        await self._ledger.group(self.namespace, "active", {name: groups[name] for name in texts})
        change = Change(reason="clustered anew", actor=ARCHIVIST)
        for old in before:
            await self._ledger.retire(
                self.cluster_namespace, old.key, change=change, expected_version=old.version
            )
        return len(texts)

    async def metrics(self, *, now: datetime | None = None, thresholds: Thresholds | None = None) -> Metrics:
        """Compute every metric of §10, with the alerts that they raise."""
        at = now or datetime.now(UTC)
        before = await self._ledger.as_of(self.namespace, at - MONTH)
        return compute(
            await self.tasks(),
            {card.id: card for card in await self.list()},
            {version.key: Card.of(version) for version in before},
            await self.disputes(),
            now=at,
            thresholds=thresholds or Thresholds(),
        )

    async def consolidation_due(
        self, *, model: str = "", now: datetime | None = None, settings: Consolidation | None = None
    ) -> Sequence[str]:
        """Return why a consolidation is due (§8); nothing where it is not.

        The quarter runs from the last consolidation, or from the first card. `model` is the base model
        that is used now.
        """
        at, archives = now or datetime.now(UTC), await self.archives()
        first = await self._ledger.records(self.namespace, limit=1)
        last = archives[-1].at if archives else first[0].created if first else None
        return reasons_to_consolidate(
            await self.metrics(now=at),
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
        told = {
            task.id: task.task for task in await self.tasks() if task.task and not any(findings(task.task))
        }
        return training_data(await self.list(), told, settings)

    async def consolidate(
        self, tag: str, *, change: Change, model: str = "", keep: Sequence[str] = ()
    ) -> Archive:
        """Archive every card in service under a version tag, but for the seeds kept (§8, step 3).

        Nothing is lost: each can be restored, and its versions say when it was archived and why. `model`
        names the base model that has learned them. Broken off, it can be asked again with the same tag,
        which is written last. Raises BadInput where the tag is taken.
        """
        if await self._ledger.get(self.archive_namespace, tag):
            raise BadInput(f"There is an archive {tag} already.", "Choose another version tag.")
        leaving = [card for card in await self.list() if card.id not in keep and is_in_service(card)]
        reason = f"consolidated as {tag}: {change.reason}"
        for each in leaving:
            await self._change(each.id, lambda card: _archived(card, reason, disputed=True), change)
        archive = Archive(tag=tag, at=datetime.now(UTC), model=model, cards=len(leaving), kept=[*keep])
        await self._ledger.insert(
            self.archive_namespace, archive.model_dump(mode="json"), text="", change=change, key=tag
        )
        return archive

    def _cluster(self, name: str, text: str, size: int) -> Write:
        return make_write(
            event="insert",
            namespace=self.cluster_namespace,
            key=name,
            value={"cards": size},
            text=text,
            change=Change(reason="clustered", actor=ARCHIVIST),
        )

    async def archives(self) -> Sequence[Archive]:
        """Return the consolidated knowledge bases, oldest first."""
        count = await self._ledger.count(self.archive_namespace)
        found = await self._ledger.records(self.archive_namespace, limit=count)
        return [Archive.model_validate(version.value) for version in found]


def is_in_service(card: Card) -> bool:
    """Say whether a card is neither deprecated nor archived."""
    return card.status not in ("deprecated", "archived")


def _archived(card: Card, reason: str, *, disputed: bool = False) -> tuple[Card, str] | None:
    in_use = card.status in ("provisional", "verified") or (disputed and card.disputed)
    return (out_of_service(card, "archived"), reason) if in_use else None
