"""The life of G-Memory's insights: added, edited, agreed with, removed; paid by use; merged at times.

Each knows the trials that bear it out: those that were compared when it was added, edited or agreed with.

A new insight has score 2. It gains 1 by agreement, by an edit, and by use in a success; it loses 2 by use
in a failure and 1 by a removal (3 where the list is full). At 0 it is deleted.
"""

from collections.abc import Sequence
from random import Random
from typing import NamedTuple, Protocol

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
POINTS = 5
"""Trials that a revision draws."""
SUCCESSES, FAILURES = 3, 1
"""Trials nearest to a drawn one that it is compared with."""
Compared = tuple[Sequence[TrialRecord], Sequence[TrialRecord]]
"""Successes and failures that are compared."""


class Asker(Protocol):
    """A memory that puts questions at its own cost."""

    means: Means

    async def ask(self, question: Prompt[Given, Answer], given: Given) -> Answer: ...

    def change(self, trial: FinishedTask) -> Change: ...


async def pay(trials: Trials, used: Sequence[str], change: Change, success: bool) -> None:
    """Raise the scores of the insights that were shown where the task was done, and lower them else."""
    standing = [each for each in await trials.insights() if each.id in used]
    reason = "used in a success" if success else "used in a failure"
    paid = [(each, scored(each, USED[success])) for each in standing]
    await trials.revise(paid, change.model_copy(update={"reason": reason}))


async def revise(memory: Asker, trial: FinishedTask) -> None:
    """Revise the insights: some trials are drawn, and compared with what is nearest to each (G-Memory, §4).

    A success beside a failure first, in pairs; then the successes together; failures alone teach nothing.
    Only the insights that half of the trials concerned confirm are offered.
    """
    trials = memory.means.trials
    if await trials.count() < FEWEST_TRIALS:
        return
    drawn = Random(f"insights {trial.id}").choices(await trials.latest(await trials.count()), k=POINTS)  # noqa: S311
    for point, chosen in enumerate(drawn):
        succeeded = await trials.nearest(chosen.goal, SUCCESSES, shelf="succeeded")
        failed = await trials.nearest(chosen.goal, FAILURES, shelf="failed")
        concerned = {each.id: each for each in (*succeeded, *failed, chosen)}.values()
        won, lost = (
            [each for each in concerned if each.success],
            [each for each in concerned if not each.success],
        )
        pairs = [([one], [other]) for one, other in zip(won, lost, strict=False)]
        together: list[Compared] = [(won, [])] if won else []
        for number, compared in enumerate([*pairs, *together]):
            await _compare(memory, trial, compared, list(concerned), f"{point}.{number}")


async def _compare(
    memory: Asker, trial: FinishedTask, compared: Compared, concerned: Sequence[TrialRecord], place: str
) -> None:
    """Let trials be compared, and carry out what that changes; `place` tells one comparison from another."""
    trials, change = memory.means.trials, memory.change(trial)
    ids = {each.id for each in concerned}
    standing = await trials.insights()
    offered = [each for each in standing if 2 * len(ids.intersection(each.trials)) >= len(ids)]
    won, lost = compared
    is_pair = bool(won and lost)
    given = Rulebook(
        rules=[each.text for each in offered],
        succeeded=[_telling(each, whole=is_pair) for each in won],
        failed=[_telling(each, whole=is_pair) for each in lost],
        most=MOST,
    )
    revision: Revision = await memory.ask(revise_insights, given)
    related = [each.id for each in (*won, *lost)]
    named = Standing(standing, related, f"{trial.id}-{place}")
    changed = carried_out(offered, revision.operations, named)
    await trials.revise(changed, change.model_copy(update={"reason": f"revised by trials ({place})"}))


class Standing(NamedTuple):
    """All insights that stand, the trials that an operation rests on, and how new insights are called."""

    insights: Sequence[Insight]
    related: Sequence[str]
    name: str


def carried_out(
    offered: Sequence[Insight], operations: Sequence[Operation], standing: Standing
) -> list[tuple[Insight | None, Insight | None]]:
    """Return what becomes of the insights: changes of those offered, and those that are new.

    An insight is changed by one operation only: the first. New ones beyond the bound are left out.
    """
    full = len(standing.insights) >= MOST
    changed: dict[str, tuple[Insight | None, Insight | None]] = {}
    for each in operations:
        if each.kind != "ADD":
            before = offered[each.rule]
            changed.setdefault(before.id, (before, operated(before, each, standing.related, full)))
    gone = sum(after is None for _, after in changed.values())
    texts = list(dict.fromkeys(each.text.strip() for each in operations if each.kind == "ADD"))
    new = [text for text in texts if text not in {known.text for known in standing.insights}]
    added = [
        Insight(id=f"{standing.name}-{number}", text=text, trials=list(standing.related))
        for number, text in enumerate(new[: max(0, MOST - len(standing.insights) + gone)], start=1)
    ]
    return [*changed.values(), *((None, each) for each in added)]


def operated(before: Insight, operation: Operation, related: Sequence[str], full: bool) -> Insight | None:
    """Return what an operation makes of an insight; None where that deletes it.

    The trials that an agreement or an edit rests on bear it out from then on.
    """
    if operation.kind == "REMOVE":
        return scored(before, REMOVED_WHEN_FULL if full else REMOVED)
    edited = operation.text.strip() if operation.kind == "EDIT" else before.text
    trials = list(dict.fromkeys([*before.trials, *related]))
    return scored(before.model_copy(update={"text": edited, "trials": trials}), 1)


def scored(insight: Insight, points: int) -> Insight | None:
    """Return the insight with another score; None at 0."""
    score = insight.score + points
    return insight.model_copy(update={"score": score}) if score > 0 else None


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


def _telling(kept: TrialRecord, *, whole: bool) -> str:
    """Say a trial for a comparison; `whole` with what was done."""
    done = ["What was done:", *kept.trajectory] if whole else []
    if kept.success:
        return "\n".join([f"Goal: {kept.goal}", f"Key steps: {'; '.join(kept.key_steps)}", *done])
    lesson = [f"Reached: {kept.reward:.0%}", f"Why it failed: {kept.fail_reason}"]
    return "\n".join([f"Goal: {kept.goal}", *lesson, *done])
