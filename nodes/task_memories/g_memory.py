"""G-Memory: a graph of tasks, their key steps or reasons of failure, and insights drawn from them.

As in the authors' program: recall follows the graph's edges from the nearest task to its neighbours; if they
have too few successes, the nearest successes of all tasks are used. A model ranks them; the best is shown
with its key steps and its trajectory, without the steps that had no effect. Failures are not shown: they only
teach insights. Shown are the insights that related tasks confirm. Insights are revised every five tasks and
merged every twenty.

Each insight stores the trials that confirm it: those that were compared when it was added, edited or agreed
with.

A new insight has score 2. It gains 1 for an agreement, an edit, and use in a success; it loses 2 for use in a
failure and 1 for a removal (3 if the list is full). At 0 it is deleted.
"""

from collections import Counter
from collections.abc import Sequence
from random import Random

from mneme.nodes.task_memories.interface import FinishedTask, Held, Task
from mneme.nodes.task_memories.recollecting import MEMORY_FIELD, SUCCESSES_PER_TASK, Recollecting, raw
from mneme.prompts.task_memories.task_memories import (
    Alike,
    Merged,
    Operation,
    Revision,
    Rulebook,
    explain_failure,
    extract_key_steps,
    merge_insights,
    revise_insights,
)
from mneme.stores.ledger.records import Change
from mneme.stores.task_memories.trials import SIMILAR, Insight, TrialRecord

INSIGHTS = 3
"""Maximum insights that are shown."""
RELATED_TRIALS = {"succeeded": 4, "failed": 2}
"""Number of nearest trials, by shelf, whose insights are related to a task."""
EDGES = 10
"""Maximum edges of a new task."""
MAX_RULES = 10
MIN_TRIALS = 5
REVISED_EVERY = 5
MERGED_EVERY = 20
USE_SCORES = {True: 1, False: -2}
REMOVED, REMOVED_WHEN_FULL = -1, -3
REVISED_TRIALS = 5
"""Number of trials that a revision draws."""
NEAR_SUCCESSES, NEAR_FAILURES = 3, 1
"""Number of nearest trials that a drawn trial is compared with."""
Compared = tuple[Sequence[TrialRecord], Sequence[TrialRecord]]
"""Successes and failures to compare."""
Edit = tuple[Insight | None, Insight | None]
"""An insight before and after a change; None: it did not exist, or is deleted."""


class GMemory(Recollecting):
    """Keep a graph of tasks and a list of insights; show the relevant ones of both."""

    name = "g_memory"

    async def recall(self, task: Task) -> Held:
        """Return the relevant trials and insights as text, and their ids."""
        found = await self.found(task)
        used = (await self.related(task))[:INSIGHTS]
        rules = ["What earlier tasks taught:", *(f"- {each.text}" for each in used)] if used else []
        texts = [*rules, *(line for each in found for line in _telling(each))]
        return {
            MEMORY_FIELD: self.services.shortened(task, texts),
            "recalled": [each.id for each in found],
            "insights": [each.id for each in used],
        }

    async def found(self, task: Task) -> list[TrialRecord]:
        """Return the most relevant success of the nearest task and its neighbours, else of all."""
        trials = self.services.trials
        nearest = await trials.nearest(task.goal, 1)
        around = [near for each in nearest for near in await trials.neighbours(each)]
        ids = {each.id for each in (*nearest, *around)}
        ranked = await trials.nearest(task.goal, max(1, await trials.count()), shelf="succeeded")
        inside = [each for each in ranked if each.id in ids]
        return await self.most_relevant(
            task, (inside if len(inside) >= 2 * SUCCESSES_PER_TASK else ranked)[: 2 * SUCCESSES_PER_TASK]
        )

    async def related(self, task: Task) -> list[Insight]:
        """Return the insights confirmed by the trials nearest to a task, the most confirmed first."""
        near = [
            trial
            for shelf, most in RELATED_TRIALS.items()
            for trial in await self.services.trials.nearest(task.goal, most, shelf=shelf)  # type: ignore[arg-type]
        ]
        standing = await self.services.trials.insights()
        borne = Counter({each.id: sum(trial.id in each.trials for trial in near) for each in standing})
        return sorted((each for each in standing if borne[each.id]), key=lambda each: -borne[each.id])

    async def remember(self, trial: FinishedTask, held: Held) -> None:
        """Keep the trial, score the insights that were used, and revise and merge them when it is time."""
        await super().remember(trial, held)  # first, so that the trial counts in what follows
        trials, change = self.services.trials, self.change(trial)
        standing = [each for each in await trials.insights() if each.id in held.get("insights", [])]
        paid: list[Edit] = [(each, scored(each, USE_SCORES[trial.success])) for each in standing]
        reason = "used in a success" if trial.success else "used in a failure"
        await trials.revise(paid, change.model_copy(update={"reason": reason}))
        count = await trials.count()
        if count % REVISED_EVERY == 0 and count >= MIN_TRIALS:
            await self._revise(trial, count)
        if count % MERGED_EVERY == 0:
            await self.merge(change)

    async def kept(self, trial: FinishedTask) -> TrialRecord:
        """Return the trajectory with its key steps or the reason why it failed, and its edges."""
        near = await self.services.trials.nearest(trial.task.goal, EDGES, min_score=SIMILAR)
        more = {"neighbours": [each.id for each in near if each.id != trial.id]}
        led_on = [turn for turn in trial.turns if not (turn.failed or turn.thought)]
        sparse = trial.model_copy(update={"turns": led_on or trial.turns})  # key steps of what had an effect
        if not trial.success:
            reason = (await self.ask(explain_failure, self.course(trial))).reason
            return raw(trial, trial.task.goal).model_copy(update={**more, "fail_reason": reason})
        chosen = (await self.ask(extract_key_steps, self.course(sparse))).steps
        steps = [sparse.turns[number].output for number in chosen]
        return raw(sparse, trial.task.goal).model_copy(update={**more, "key_steps": steps})

    async def _revise(self, trial: FinishedTask, count: int) -> None:
        """Revise the insights: draw some trials, and compare each with its nearest trials."""
        trials = self.services.trials
        # Seeded by the trial, so that a replayed step draws the same.
        drawn = Random(f"insights {trial.id}").choices(await trials.latest(count), k=REVISED_TRIALS)  # noqa: S311
        for point, chosen in enumerate(drawn):
            succeeded = await trials.nearest(chosen.goal, NEAR_SUCCESSES, shelf="succeeded")
            failed = await trials.nearest(chosen.goal, NEAR_FAILURES, shelf="failed")
            concerned = [*{each.id: each for each in (*succeeded, *failed, chosen)}.values()]
            won = [each for each in concerned if each.success]
            lost = [each for each in concerned if not each.success]
            # Pairs of a success and a failure, then all successes together; failures alone teach nothing.
            pairs: list[Compared] = [([one], [other]) for one, other in zip(won, lost, strict=False)]
            for number, compared in enumerate([*pairs, *([(won, [])] if won else [])]):
                await self._compare(trial, compared, {each.id for each in concerned}, f"{point}.{number}")

    async def _compare(self, trial: FinishedTask, compared: Compared, ids: set[str], place: str) -> None:
        """Ask a model to compare trials, and carry out its operations; `place` identifies the comparison."""
        # Only insights that at least half of these trials confirm are offered for a change.
        standing = await self.services.trials.insights()
        offered = [each for each in standing if 2 * len(ids.intersection(each.trials)) >= len(ids)]
        won, lost = compared
        is_pair = bool(won and lost)
        given = Rulebook(
            rules=[each.text for each in offered],
            succeeded=[_compared(each, whole=is_pair) for each in won],
            failed=[_compared(each, whole=is_pair) for each in lost],
            most=MAX_RULES,
        )
        revision: Revision = await self.ask(revise_insights, given)
        related, name = [each.id for each in (*won, *lost)], f"{trial.id}-{place}"
        changed = carried_out(offered, revision.operations, standing, related, name)
        reason = f"revised by trials ({place})"
        await self.services.trials.revise(changed, self.change(trial).model_copy(update={"reason": reason}))

    async def merge(self, change: Change) -> None:
        """Merge insights about the same thing: clusters of insights that are each other's nearest."""
        trials = self.services.trials
        for cluster in await trials.clusters():
            merged: Merged = await self.ask(merge_insights, Alike(rules=[each.text for each in cluster]))
            kept = into(cluster, [text.strip() for text in merged.rules], change)
            await trials.revise(kept, change.model_copy(update={"reason": "merged with others"}))


def _telling(kept: TrialRecord) -> list[str]:
    return [
        f"An earlier task that succeeded. Its goal: {kept.goal}\nIts key steps:",
        *(f"{number}. {step}" for number, step in enumerate(kept.key_steps, 1)),
        "Its detailed trajectory:",
        *kept.trajectory,
    ]


def carried_out(
    offered: Sequence[Insight],
    operations: Sequence[Operation],
    standing: Sequence[Insight],
    related: Sequence[str],
    name: str,
) -> list[Edit]:
    """Return the changes of insights: edits of those offered, and new ones.

    `standing` are all insights, `related` the trials that the operations rest on, `name` is the prefix of the
    ids of new insights. New insights beyond MAX_RULES are left out.
    """
    full = len(standing) >= MAX_RULES
    changed: dict[str, Edit] = {}
    for each in operations:
        if each.kind != "ADD":
            before = offered[each.rule]
            # Only the first operation on an insight counts.
            changed.setdefault(before.id, (before, operated(before, each, related, full)))
    gone = sum(after is None for _, after in changed.values())
    texts = list(dict.fromkeys(each.text.strip() for each in operations if each.kind == "ADD"))
    new = [text for text in texts if text not in {known.text for known in standing}]
    added = [
        Insight(id=f"{name}-{number}", text=text, trials=list(related))
        for number, text in enumerate(new[: max(0, MAX_RULES - len(standing) + gone)], start=1)
    ]
    return [*changed.values(), *((None, each) for each in added)]


def operated(before: Insight, operation: Operation, related: Sequence[str], full: bool) -> Insight | None:
    """Return the insight after an operation; None if the operation deletes it."""
    if operation.kind == "REMOVE":
        return scored(before, REMOVED_WHEN_FULL if full else REMOVED)
    edited = operation.text.strip() if operation.kind == "EDIT" else before.text
    trials = list(dict.fromkeys([*before.trials, *related]))  # these confirm it from now on
    return scored(before.model_copy(update={"text": edited, "trials": trials}), 1)


def scored(insight: Insight, points: int) -> Insight | None:
    """Return the insight with another score; None at 0."""
    score = insight.score + points
    return insight.model_copy(update={"score": score}) if score > 0 else None


def into(cluster: Sequence[Insight], texts: Sequence[str], change: Change) -> list[Edit]:
    """Give the merged texts to the strongest insights of a cluster, and delete the others."""
    strongest = sorted(cluster, key=lambda each: -each.score)
    seen = list(dict.fromkeys([*(task for each in cluster for task in each.trials), *change.source.tasks]))
    words = dict(zip((each.id for each in strongest), texts, strict=False))
    return [
        (each, each.model_copy(update={"text": words[each.id], "trials": seen}) if each.id in words else None)
        for each in strongest
    ]


def _compared(kept: TrialRecord, *, whole: bool) -> str:
    """Describe a trial for a comparison, with its actions if `whole`."""
    done = ["What was done:", *kept.trajectory] if whole else []
    if kept.success:
        return "\n".join([f"Goal: {kept.goal}", f"Key steps: {'; '.join(kept.key_steps)}", *done])
    lesson = [f"Reached: {kept.reward:.0%}", f"Why it failed: {kept.fail_reason}"]
    return "\n".join([f"Goal: {kept.goal}", *lesson, *done])
