"""What a team keeps of its tasks for later ones: trials, found by similarity, and insights with a score.

Every memory of a team has a namespace of its own (`teams/<team>/task_memory/<memory>`), so that no
memory of a team reads another's. A trial is written once under the id of its run, on the
shelf `succeeded` or `failed`; an insight is a record whose versions are its revisions.
"""

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Version, Write, team_namespace
from mneme.stores.shelf import RecordKind, Shelf, kind_of

Part = Literal["succeeded", "failed"]
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

    @property
    def shelf(self) -> Part:
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


TRIAL = kind_of(TrialRecord, text=lambda trial: trial.key, part=lambda trial: trial.shelf)
INSIGHT = RecordKind[Insight, Insight](
    Insight.of, text=lambda insight: insight.text, outside=frozenset({"version"})
)


class Trials(Shelf[TrialRecord, TrialRecord]):
    """The trials that one memory of one team keeps, and its insights."""

    def __init__(self, ledger: Ledger, team: str, memory: str) -> None:
        within = team_namespace(team, "task_memory", memory)
        super().__init__(ledger, (*within, "trials"), TRIAL)
        self._insights = Shelf(ledger, (*within, "insights"), INSIGHT)

    async def keep(self, kept: TrialRecord, change: Change) -> TrialRecord:
        """Store a trial; under an id that was stored before, return the trial that was stored then."""
        return await self.insert(kept, change=change, key=kept.id, idempotency_key=kept.id)

    async def nearest(
        self, query: str, limit: int, *, shelf: Part | None = None, min_score: float | None = None
    ) -> list[TrialRecord]:
        """Return the trials whose keys are nearest in meaning, best first."""
        hits = await self.search(query, limit=limit, mode="dense", shelf=shelf or "", min_score=min_score)
        return self.read(hit.version for hit in hits)

    async def neighbours(self, kept: TrialRecord) -> list[TrialRecord]:
        """Return the trials that share an edge with this one: those it names, and those that name it."""
        named = self.read(await self.by_keys(kept.neighbours))
        naming = await self.all(filter={"neighbours": kept.id})
        return list({each.id: each for each in (*named, *naming)}.values())

    async def insights(self) -> list[Insight]:
        """Return the insights in use, best first; of equals, the older first."""
        return sorted(await self._insights.all(), key=lambda each: -each.score)  # equals stay by age

    async def clusters(self) -> list[list[Insight]]:
        """Return the insights that belong together, where more than one does.

        Each is linked with its nearest one, as FINCH does, where that is similar at all.
        """
        standing = await self.insights()
        groups = list[set[str]]()
        for each in standing:
            hits = await self._insights.search(each.text, limit=2, mode="dense", min_score=SIMILAR)
            # Two hits, since the nearest to an insight is mostly the insight itself.
            for near in [hit.version.key for hit in hits if hit.version.key != each.id][:1]:
                # The link joins the groups of both ends.
                linked = {each.id, near}.union(*(group for group in groups if group & {each.id, near}))
                groups = [group for group in groups if not group & linked] + [linked]
        found = [[each for each in standing if each.id in members] for members in groups]
        return sorted(found, key=lambda cluster: standing.index(cluster[0]))

    async def revise(self, revised: Sequence[tuple[Insight | None, Insight | None]], change: Change) -> None:
        """Write revisions (before, after) as one batch: a new insight has no before, a deleted one no after.

        The change's task names what led to it; the same revision for the same task is written once.
        """
        source = "/".join(change.source.tasks)
        writes = list[Write]()
        for before, after in revised:
            known, seen = after or before, before.version if before else None
            if known is None:
                raise ValueError("A revision needs an insight before it, or after it.")
            once = f"{change.reason}/{source}/{known.id}"
            if after is None:
                writes.append(self._insights.retirement(known.id, change, seen, idempotency_key=once))
            else:
                writes.append(self._insights.write(known.id, after, change, seen, idempotency_key=once))
        if writes:
            await self.ledger.write(writes)
