"""Trials of two disputed approaches on one task: each carried out, measured by the world, and compared."""

from typing import Literal

from mneme.environments.worlds import Solution, Task, World
from mneme.models.asking.asking import ask
from mneme.nodes.learning.context import TeamRuntime
from mneme.nodes.learning.worlds import advice_of, attempt, solution_of, told_of
from mneme.prompts.learning.dispute_resolution import Carried, Guideline, Match, carry_out, edge_cases
from mneme.prompts.learning.trials import Measurement
from mneme.stores.cards import disputes

AS_FAST = 1.1
"""An approach is better where it is at least a tenth faster; a closer race is nobody's."""


async def tried(world: World, task: Task, side: Guideline, runtime: TeamRuntime) -> Measurement | None:
    """Try an approach on a task; None where it could not be carried out at all."""
    advice = advice_of(world, side.condition, side.pattern)
    if advice.is_text:
        return await _by_words(world, task, side, runtime)
    if advice.feasible:
        made = Solution(statements=advice.statements, query=advice.query, files=advice.files)
        return await attempt(world, made)
    return Measurement(summary=advice.why_not, problem=advice.why_not)


async def _by_words(world: World, task: Task, side: Guideline, runtime: TeamRuntime) -> Measurement | None:
    """Let a model carry out an approach in words, and the world measure it; None where it made nothing."""
    given = Carried(**told_of(world, task.text), condition=side.condition, pattern=side.pattern)
    answered = await ask(carry_out, given, runtime.context.devils_advocate, lane="background")
    return await attempt(world, solution_of(answered.value)) if answered.value.solution else None


def match_of(world: World, old: Measurement, new: Measurement) -> Match:
    """Say what the world measured of both, and which is better."""
    return Match(
        features="; ".join(world.features),
        old=old.summary,
        new=new.summary,
        edge_cases=edge_cases([("old", old), ("new", new)]),
        winner=_winner(old, new),
    )


def _winner(old: Measurement, new: Measurement) -> Literal["old", "new", "neither"]:
    """Name the one that solves the task alone, or clearly faster; accuracy and room go before time."""
    if old.solved != new.solved:
        return "old" if old.solved else "new"
    if not old.solved:
        return "neither"
    if new.gain > AS_FAST * old.gain:
        return "new"
    return "old" if old.gain > AS_FAST * new.gain else "neither"


def paired(task: Task, old: Measurement, new: Measurement, match: Match) -> disputes.PairedTrial:
    """Return what the dispute keeps of a trial."""
    return disputes.PairedTrial(
        task=task.id,
        old_correct=old.correct,
        new_correct=new.correct,
        old_seconds=_seconds(old),
        new_seconds=_seconds(new),
        edge_cases=match.edge_cases,
        winner=match.winner,
    )


def _seconds(trial: Measurement) -> float | None:
    found = [each.value for each in trial.metrics if each.name.endswith("seconds")]
    return found[0] if found and trial.correct else None
