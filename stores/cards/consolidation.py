"""The consolidation cycle (§8): when it is due, the training data, and the archive of what was learned.

The export is plain JSON Lines in the form of chat messages, which the common trainers read; the graph
`consolidation` tunes a model itself (`nodes/learning/consolidation/`).

What a promotion changes is one write: the cards that the tuned model has learned are archived under the
version's tag, and the model answers for the team. So is what takes it back.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mneme.core.errors import BadInput
from mneme.stores.cards.card import Card
from mneme.stores.cards.card_records import retry_on_conflict
from mneme.stores.cards.check import findings
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import archived, is_in_service
from mneme.stores.cards.metrics import Metrics
from mneme.stores.cards.settings import Consolidation
from mneme.stores.cards.training_data import TrainingData, training_data
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change, Namespace, Value, Write, make_write

CONSOLIDATED = "consolidated as {tag}"
SERVING = "serving"
DELTA = 2
"""Cards at most that a task is shown where a tuned model serves (§8: 1 to 2, and 5 to 10 before)."""


class Archive(BaseModel):
    """A knowledge base that was consolidated: its version tag, when, into which model, how many cards."""

    model_config = ConfigDict(frozen=True)

    tag: str
    at: datetime
    model: str = ""
    cards: int = 0
    kept: list[str] = []
    ids: list[str] = Field([], description="The cards that were archived.")
    serves: str = Field("", description="The tuned model that answers for the team since then.")
    before: str = Field("", description="The tuned model that answered until then.")
    taken_back: bool = False


class Attempt(BaseModel):
    """One consolidation that came to its end: promoted or not, why, and every figure that it rests on."""

    model_config = ConfigDict(frozen=True)

    tag: str
    promoted: bool
    why: str
    base: str = ""
    model: str = Field("", description="The tuned model; empty where none was served.")
    due: list[str] = []
    figures: dict[str, JsonValue] = {}


class ConsolidationCycle:
    """The consolidations of one team's cards."""

    def __init__(self, ledger: Ledger, cards: KnowledgeCards) -> None:
        self._ledger, self._cards = ledger, cards
        self.namespace = team_namespace(cards.team, "archives")
        self._attempts = team_namespace(cards.team, "consolidations")
        self._pointer = team_namespace(cards.team, "model")

    async def due(
        self, *, model: str = "", now: datetime | None = None, settings: Consolidation | None = None
    ) -> Sequence[str]:
        """Return why a consolidation is due; nothing where it is not.

        The quarter runs from the last consolidation, or from the first card. `model` is the base model
        that is used now.
        """
        at, archives = (
            now or datetime.now(UTC),
            [each for each in await self.archives() if not each.taken_back],
        )
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

    @retry_on_conflict
    async def archive(  # noqa: PLR0913 (one name for each thing a caller may say)
        self,
        tag: str,
        *,
        change: Change,
        model: str = "",
        keep: Sequence[str] = (),
        only: Sequence[str] | None = None,
        serves: str = "",
    ) -> Archive:
        """Archive the cards in service under a version tag, except those to keep (§8, step 3).

        `only` names the cards that may go; `serves` the tuned model that answers for the team from now on.
        `model` is the base model. All of it is one write. Nothing is lost: `take_back` undoes it, each card
        can be restored, and its versions say when it was archived and why. Raises BadInput where the tag is
        taken.
        """
        if await self._ledger.get(self.namespace, tag):
            raise BadInput(f"There is an archive {tag} already.", "Choose another version tag.")
        records = self._cards.records
        serving, earlier = await self._serving()
        before = earlier if serves and serving == serves else serving  # it was begun by a write that was cut
        name = CONSOLIDATED.format(tag=tag)
        reason = f"{name}: {change.reason}"
        heads = await self._ledger.records(records.namespace, limit=await records.count())
        allowed = [head for head in heads if head.key not in keep and (only is None or head.key in only)]
        leaving = [head for head in allowed if is_in_service(Card.of(head))]
        # On a Qdrant server a write that met another's may be there in part: what it archived belongs here.
        gone = [head.key for head in heads if head.change.reason.startswith(f"{name}:")]
        writes = [
            records.next_write(head, lambda card: archived(card, reason, disputed=True), change)
            for head in leaving
        ]
        made = Archive(
            tag=tag,
            at=datetime.now(UTC),
            model=model,
            cards=len(leaving) + len(gone),
            kept=[*keep],
            ids=[*gone, *(head.key for head in leaving)],
            serves=serves,
            before=before,
        )
        noted = await self._noted(self.namespace, tag, made.model_dump(mode="json"), change)
        points = [await self._pointed(serves, before, change)] if serves else []
        await self._ledger.write([*filter(None, writes), *points, noted])
        return made

    @retry_on_conflict
    async def take_back(self, *, change: Change) -> Archive:
        """Undo the latest archiving: its cards are as they were, and so is who answers for the team.

        All of it is one write. A card that changed since then stays as it is. Raises BadInput where there is
        none to undo.
        """
        standing = [each for each in await self.archives() if not each.taken_back]
        if not standing:
            raise BadInput(
                "There is no consolidation to take back.", "See `mneme cards consolidate --status`."
            )
        last = standing[-1]
        writes = [await self._brought_back(each, last.tag, change) for each in last.ids]
        undone = last.model_copy(update={"taken_back": True})
        noted = await self._noted(self.namespace, last.tag, undone.model_dump(mode="json"), change)
        points = [await self._pointed(last.before, "", change)] if last.serves else []
        await self._ledger.write([*filter(None, writes), *points, noted])
        return undone

    async def _brought_back(self, card_id: str, tag: str, change: Change) -> Write | None:
        """Return the write that makes a card what it was before an archiving; None where it changed since."""
        records = self._cards.records
        head = await records.head(card_id)
        if not head.change.reason.startswith(f"{CONSOLIDATED.format(tag=tag)}:"):
            return None
        was = (await records.history(card_id))[-2].card
        reason = f"consolidation {tag} taken back: {change.reason}"
        return records.next_write(head, lambda _: (was, reason), change)

    async def learned(self) -> set[str]:
        """Return the cards that the standing consolidations archived: each trains the same base anew."""
        return {each for one in await self.archives() if not one.taken_back for each in one.ids}

    async def serving(self) -> str:
        """Return the tuned model that answers for the team; empty where none was promoted."""
        return (await self._serving())[0]

    async def _serving(self) -> tuple[str, str]:
        """Return the tuned model that answers, and the one that did before it."""
        head = await self._ledger.get(self._pointer, SERVING)
        return (str(head.value["model"]), str(head.value["before"])) if head else ("", "")

    async def _pointed(self, model: str, before: str, change: Change) -> Write:
        return await self._noted(self._pointer, SERVING, {"model": model, "before": before}, change)

    async def _noted(self, namespace: Namespace, key: str, value: Value, change: Change) -> Write:
        """Return the write of a record that is not searched, new or again."""
        head = await self._ledger.get(namespace, key)
        return make_write(
            event="update" if head else "insert",
            namespace=namespace,
            key=key,
            value=value,
            text="",
            change=change,
            expected_version=head.version if head else None,
        )

    async def note(self, attempt: Attempt, *, change: Change) -> None:
        """Keep how a consolidation ended; noting it again changes nothing."""
        if await self._ledger.get(self._attempts, attempt.tag) is None:
            value = attempt.model_dump(mode="json")
            await self._ledger.insert(self._attempts, value, text="", change=change, key=attempt.tag)

    async def attempts(self) -> Sequence[Attempt]:
        """Return the consolidations that came to their end, oldest first."""
        count = await self._ledger.count(self._attempts)
        found = await self._ledger.records(self._attempts, limit=count)
        return [Attempt.model_validate(version.value) for version in found]

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
