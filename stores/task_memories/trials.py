"""What a team keeps of its tasks for later ones: trials, found by similarity, and insights with a score.

Every memory of a team has a namespace of its own (`teams/<team>/task_memory/<memory>`), so that no
memory of a team reads another's. A trial is written once under the id of its run, on the
shelf `succeeded` or `failed`; an insight is a record whose versions are its revisions.
"""

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change, Namespace, Version, Write, make_write

Shelf = Literal["succeeded", "failed"]
SIMILAR = 0.7
"""Cosine from which two tasks are neighbours in the graph of tasks (G-Memory)."""
FIRST_SCORE = 2


class TrialRecord(BaseModel):
    """A trial as a memory keeps it. `key` is what it is found by: the goal, or a summary."""

    model_config = ConfigDict(frozen=True)

    id: str
    key: str
    goal: str
    trajectory: list[str]
    """One text a turn, in order: what was done and what came of it."""
    reward: float
    success: bool
    domain: str = ""
    key_steps: list[str] = []
    fail_reason: str = ""
    neighbours: list[str] = []
    """Trials of similar tasks that were there before this one; edges hold both ways."""

    @classmethod
    def of(cls, version: Version) -> Self:
        """Read a trial back from its record."""
        return cls.model_validate(version.value)

    @property
    def shelf(self) -> Shelf:
        return "succeeded" if self.success else "failed"


class Insight(BaseModel):
    """A rule that a team has drawn from its trials."""

    model_config = ConfigDict(frozen=True)

    id: str
    text: str
    score: int = FIRST_SCORE
    trials: list[str] = Field([], description="Ids of the trials that it was drawn from or proved by.")
    version: int = 1

    @classmethod
    def of(cls, version: Version) -> Self:
        """Read an insight back from its record."""
        return cls.model_validate({**version.value, "version": version.version})


class Trials:
    """The trials and insights that one memory of one team keeps."""

    def __init__(self, ledger: Ledger, team: str, memory: str) -> None:
        self._ledger = ledger
        self._within: Namespace = team_namespace(team, "task_memory", memory)

    @property
    def _trials(self) -> Namespace:
        return (*self._within, "trials")

    @property
    def _insights(self) -> Namespace:
        return (*self._within, "insights")

    async def keep(self, kept: TrialRecord, change: Change) -> TrialRecord:
        """Store a trial; under an id that was stored before, return the trial that was stored then."""
        write = make_write(
            event="insert",
            namespace=self._trials,
            key=kept.id,
            value=kept.model_dump(mode="json"),
            text=kept.key,
            change=change,
            idempotency_key=kept.id,
            shelf=kept.shelf,
        )
        (version,) = await self._ledger.write([write])
        return TrialRecord.of(version)

    async def get(self, trial: str) -> TrialRecord | None:
        """Return a trial, or None where there is none of that id."""
        version = await self._ledger.get(self._trials, trial)
        return TrialRecord.of(version) if version and version.live else None

    async def count(self) -> int:
        """Return how many trials are stored."""
        return await self._ledger.count(self._trials)

    async def latest(self, number: int) -> list[TrialRecord]:
        """Return the trials that were stored last, oldest first."""
        count = await self.count()
        offset = max(0, count - number)
        found = await self._ledger.records(self._trials, limit=number, offset=offset)
        return [TrialRecord.of(version) for version in found]

    async def nearest(
        self, query: str, limit: int, *, shelf: Shelf | None = None, min_score: float | None = None
    ) -> list[TrialRecord]:
        """Return the trials whose keys are nearest in meaning, best first."""
        hits = await self._ledger.search(
            self._trials, query, limit=limit, mode="dense", shelf=shelf or "", min_score=min_score
        )
        return [TrialRecord.of(hit.version) for hit in hits]

    async def neighbours(self, kept: TrialRecord) -> list[TrialRecord]:
        """Return the trials that share an edge with this one: those it names, and those that name it."""
        named = [await self.get(each) for each in kept.neighbours]
        naming = await self._ledger.records(
            self._trials, filter={"neighbours": kept.id}, limit=max(1, await self.count())
        )
        found = [each for each in named if each] + [TrialRecord.of(version) for version in naming]
        return list({each.id: each for each in found}.values())

    async def insights(self) -> list[Insight]:
        """Return the insights in use, best first; of equals, the older first."""
        count = await self._ledger.count(self._insights)
        found = await self._ledger.records(self._insights, limit=max(1, count))
        return sorted(map(Insight.of, found), key=lambda each: -each.score)

    async def clusters(self) -> list[list[Insight]]:
        """Return the insights that belong together, where more than one does.

        Each is linked with its nearest one, as FINCH does, where that is similar at all.
        """
        standing = await self.insights()
        group = {each.id: {each.id} for each in standing}
        for each in standing:
            for near in await self._nearest_insights(each):
                joined = group[each.id] | group[near]
                group.update(dict.fromkeys(joined, joined))
        distinct = {frozenset(members) for members in group.values() if len(members) > 1}
        found = [[each for each in standing if each.id in members] for members in distinct]
        return sorted(found, key=lambda cluster: standing.index(cluster[0]))

    async def _nearest_insights(self, insight: Insight) -> list[str]:
        hits = await self._ledger.search(
            self._insights, insight.text, limit=2, mode="dense", min_score=SIMILAR
        )
        return [hit.version.key for hit in hits if hit.version.key != insight.id][:1]

    async def revise(self, revised: Sequence[tuple[Insight | None, Insight | None]], change: Change) -> None:
        """Write revisions (before, after) as one batch: a new insight has no before, a deleted one no after.

        The change's task names what led to it; the same revision for the same task is written once.
        """
        source = "/".join(change.source.tasks)
        writes = [self._revision(before, after, change, source) for before, after in revised]
        if writes:
            await self._ledger.write(writes)

    def _revision(self, before: Insight | None, after: Insight | None, change: Change, source: str) -> Write:
        known = after or before
        if known is None:
            raise ValueError("A revision needs an insight before it, or after it.")
        event: Any = "insert" if before is None else "retire" if after is None else "update"
        return make_write(
            event=event,
            namespace=self._insights,
            key=known.id,
            value=known.model_dump(mode="json", exclude={"version"}) if after else None,
            text=known.text if after else None,
            change=change,
            expected_version=before.version if before else None,
            idempotency_key=f"{change.reason}/{source}/{known.id}",
        )
