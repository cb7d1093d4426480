"""The life of G-Memory's insights: added, edited, agreed with, removed; paid by use; merged at times.

A new insight has score 2. It gains 1 by agreement, by an edit, and by use in a success; it loses 2 by use
in a failure and 1 by a removal (3 where the list is full). At 0 it is deleted.
"""

from collections.abc import Sequence
from itertools import count
from typing import Protocol

from mneme.nodes.task_memories.interface import FinishedTask, Means
from mneme.prompts.prompt import Answer, Given, Prompt
from mneme.prompts.task_memories.task_memories import (
    Alike,
    Merged,
    Operation,
    Revision,
    Rulebook,
    merge_insights,
    revise_insights,
)
from mneme.stores.ledger.records import Change
from mneme.stores.task_memories.trials import Insight, TrialRecord, Trials

MOST = 10
FEWEST_TRIALS = 5
REVISED_EVERY = 5
MERGED_EVERY = 20
USED = {True: 1, False: -2}
REMOVED, REMOVED_WHEN_FULL = -1, -3


class Asker(Protocol):
    """A memory that puts questions at its own cost."""

    means: Means

    async def ask(self, question: Prompt[Given, Answer], given: Given) -> Answer: ...

    def change(self, trial: FinishedTask) -> Change: ...


async def pay(trials: Trials, used: Sequence[str], change: Change, success: bool) -> None:
    """Raise the scores of the insights that were shown where the task was done, and lower them else."""
    standing = [each for each in await trials.insights() if each.id in used]
    reason = "used in a success" if success else "used in a failure"
    paid = [(each, scored(each, USED[success], change)) for each in standing]
    await trials.revise(paid, change.model_copy(update={"reason": reason}))


async def revise(memory: Asker, trial: FinishedTask) -> None:
    """Revise the insights by the latest trials, where there are enough of these."""
    trials, change = memory.means.trials, memory.change(trial)
    latest = await trials.latest(REVISED_EVERY)
    if await trials.count() < FEWEST_TRIALS:
        return
    standing = await trials.insights()
    given = Rulebook(
        rules=[each.text for each in standing],
        succeeded=[_telling(each) for each in latest if each.success],
        failed=[_telling(each) for each in latest if not each.success],
        most=MOST,
    )
    revision: Revision = await memory.ask(revise_insights, given)
    changed = carried_out(standing, revision.operations, change)
    await trials.revise(changed, change.model_copy(update={"reason": "revised by the latest trials"}))


def carried_out(
    standing: Sequence[Insight], operations: Sequence[Operation], change: Change
) -> list[tuple[Insight | None, Insight | None]]:
    """Return what becomes of the insights: changes of those that stand, and those that are new.

    An insight is changed by one operation only: the first. New ones beyond the bound are left out.
    """
    full = len(standing) >= MOST
    ids = (f"{'-'.join(change.source.tasks)}-{number}" for number in count(1))
    changed: dict[str, tuple[Insight | None, Insight | None]] = {}
    for each in operations:
        if each.kind != "ADD":
            before = standing[each.rule]
            changed.setdefault(before.id, (before, operated(before, each, change, full)))
    gone = sum(after is None for _, after in changed.values())
    texts = list(dict.fromkeys(each.text.strip() for each in operations if each.kind == "ADD"))
    new = [text for text in texts if text not in {known.text for known in standing}]
    added = [
        Insight(id=next(ids), text=text, trials=change.source.tasks)
        for text in new[: max(0, MOST - len(standing) + gone)]
    ]
    return [*changed.values(), *((None, each) for each in added)]


def operated(before: Insight, operation: Operation, change: Change, full: bool) -> Insight | None:
    """Return what an operation makes of an insight; None where that deletes it."""
    if operation.kind == "REMOVE":
        return scored(before, REMOVED_WHEN_FULL if full else REMOVED, change)
    edited = operation.text.strip() if operation.kind == "EDIT" else before.text
    return scored(before.model_copy(update={"text": edited}), 1, change)


def scored(insight: Insight, points: int, change: Change) -> Insight | None:
    """Return the insight with another score, and the trial that changed it; None at 0."""
    score = insight.score + points
    seen = list(dict.fromkeys([*insight.trials, *change.source.tasks]))
    return insight.model_copy(update={"score": score, "trials": seen}) if score > 0 else None


async def merge(memory: Asker, trial: FinishedTask) -> None:
    """Merge what is about the same thing: clusters of insights that are each other's nearest."""
    trials, change = memory.means.trials, memory.change(trial)
    for cluster in await trials.clusters():
        merged: Merged = await memory.ask(merge_insights, Alike(rules=[each.text for each in cluster]))
        kept = into(cluster, [text.strip() for text in merged.rules], change)
        await trials.revise(kept, change.model_copy(update={"reason": "merged with others"}))


def into(
    cluster: Sequence[Insight], texts: Sequence[str], change: Change
) -> list[tuple[Insight | None, Insight | None]]:
    """Let the strongest of a cluster carry the merged words; the others are deleted."""
    strongest = sorted(cluster, key=lambda each: -each.score)
    seen = list(dict.fromkeys([*(task for each in cluster for task in each.trials), *change.source.tasks]))
    words = dict(zip((each.id for each in strongest), texts, strict=False))
    return [
        (each, each.model_copy(update={"text": words[each.id], "trials": seen}) if each.id in words else None)
        for each in strongest
    ]


def _telling(kept: TrialRecord) -> str:
    if kept.success:
        return f"Goal: {kept.goal}\nKey steps: {'; '.join(kept.key_steps)}"
    return f"Goal: {kept.goal}\nReached: {kept.reward:.0%}\nWhy it failed: {kept.fail_reason}"
