"""Verify and decide (§3, step 4): measure the best draft; the leader resolves the task."""

from mneme.core.trial import Trial
from mneme.environments.worlds import World
from mneme.models.asking.counting import Asked, added, counting, tokens_in
from mneme.nodes.learning.compound_learning.state import (
    LoggedObjection,
    Packet,
    State,
    Update,
    ask_role,
    draft_of,
    timed,
    used_cards,
    worded,
)
from mneme.nodes.learning.context import LearningRuntime
from mneme.nodes.learning.worlds import attempt, told_of
from mneme.prompts.learning.compound_learning.decide import Case, Resolution, resolve_task

ABOUT_AS_GOOD = 0.75
"""A quick trial tells speed-ups apart by no less than a quarter."""


UNSOLVED_DIVISOR = 1e6


@timed
async def verify(state: State, runtime: LearningRuntime, world: World) -> Update:
    """Measure the best draft in full; without an environment there is nothing to measure."""
    trials = [each["trial"] or Trial() for each in state["drafts"]]
    # What a draft gains that solves the task; what does not is worth little.
    worths = [max(each.gain, 1.0) if each.solved else each.gain / UNSOLVED_DIVISOR for each in trials]
    # The latest draft that is about as good as the best: patches close objections.
    final = max(number for number, worth in enumerate(worths) if worth >= ABOUT_AS_GOOD * max(worths))
    trial = await attempt(world, draft_of(state, final).made)
    measured = trial.summary if trial else "nothing: the leader judges"
    runtime.stream_writer({"step": "verify", "draft": final + 1, "measured": measured})
    return {"measured": trial, "final": final}


@timed
async def decide(state: State, runtime: LearningRuntime, world: World) -> Update:
    """Let the leader resolve the task: the packet of §3, step 4."""
    draft, first = draft_of(state, state["final"]), not state["final"]
    trial = state["measured"]
    log = _settled(state, trial)
    given = Case(
        **told_of(world, state["task"]),
        draft=draft,
        iterations=state["iterations"],
        trial=trial,
        resolved=worded([each for each in log if each.status == "closed"]),
        unresolved=worded([each for each in log if each.status == "open"]),
        open_blocking=sum(each.blocks for each in log),
        cards=[
            each.model_copy(update={"served_before": first and bool({*each.tasks} - {state["task_id"]})})
            for each in used_cards(state)
        ],
    )
    with counting() as asked:
        made, by = await ask_role("leader", resolve_task, given, runtime)
    packet = _packet(state, made, log, trial, asked)
    runtime.stream_writer({"step": "decide", "solved": packet["solved"], "confidence": packet["confidence"]})
    return {"packet": packet, "log": log, **by}


def _settled(state: State, trial: Trial | None) -> list[LoggedObjection]:
    """Close what was objected to drafts that were not chosen; what the final one suffers from is open.

    That is so even where a patch answered it, a later draft that was not chosen, unless the final draft was
    measured and solves the task.
    """
    final, log = state["final"] + 1, list[LoggedObjection]()
    for each in state["log"]:
        if each.round != final and each.status == "open":
            log.append(each.closed(f"draft {final} was chosen"))
        elif each.round == final and trial is not None and not trial.solved:
            log.append(each.closed(""))
        else:
            log.append(each)
    return log


def _packet(
    state: State, made: Resolution, log: list[LoggedObjection], trial: Trial | None, asked: Asked
) -> Packet:
    used = used_cards(state)
    spent = added(state["asked"], asked)
    blocking = sum(each.blocks for each in log)
    return Packet(
        answer=made.answer or draft_of(state, state["final"]).solution,
        rationale=made.rationale,
        confidence=made.confidence,
        solved=made.solved,
        judged_by="environment" if trial else "leader",
        sources={"cards": [each.id for each in used], "external": made.references},
        metrics={
            "latency_seconds": round(state["seconds"], 3),
            "accuracy": None if trial is None else float(trial.correct),
            "speed_up": None if trial is None else round(trial.gain, 2),
            "measured": [] if trial is None else trial.metrics,
            "model_calls": spent["calls"],
            "tokens": tokens_in(spent),
        },
        uncertainties=made.uncertainties,
        fallbacks=made.fallbacks,
        objections=log,
        rubric={
            "solved": made.solved,
            "faster_or_novel": made.faster_or_novel,
            "no_new_failures": blocking == 0,
            "reusable": made.reusable,
        },
        approved=[used[number].id for number in made.promote] if trial else [],
        verify_new=made.verify_new and trial is not None,
    )
