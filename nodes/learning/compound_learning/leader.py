"""Verify and decide (§3, step 4): measure the best draft; the leader resolves the task."""

from mneme.environments.trial import Trial
from mneme.models.asking.counting import Asked, counting, sum_counts, tokens_in
from mneme.nodes.learning.compound_learning.state import (
    LoggedObjection,
    Packet,
    Step,
    Update,
    timed,
    worded,
)
from mneme.nodes.learning.worlds import attempt, told_of
from mneme.prompts.learning.compound_learning.decide import Case, Resolution, resolve_task

ABOUT_AS_GOOD = 0.75
"""Share of the best speed-up that counts as equally good: quick trials cannot tell smaller differences."""
UNSOLVED_DIVISOR = 1e6
"""Divisor of the gain of unsolved drafts: below any solution, the better ones still come first."""


@timed
async def verify(step: Step) -> Update:
    """Measure the best draft in full; without an environment there is nothing to measure."""
    trials = [each["trial"] or Trial() for each in step.state["drafts"]]
    worths = [max(each.gain, 1.0) if each.solved else each.gain / UNSOLVED_DIVISOR for each in trials]
    # The latest of the drafts about as good as the best, since patches close objections.
    final = max(number for number, worth in enumerate(worths) if worth >= ABOUT_AS_GOOD * max(worths))
    trial = await attempt(step.world, step.draft(final).solution)
    step.tell("verify", draft=final + 1, measured=trial.summary if trial else "nothing: the leader judges")
    return {"measured": trial, "final": final}


@timed
async def decide(step: Step) -> Update:
    """Let the leader decide whether the task is solved and what it proves: the packet of §3, step 4."""
    state, first = step.state, not step.state["final"]
    trial, task, log = state["measured"], {state["task_id"]}, list[LoggedObjection]()
    for each in state["log"]:
        if each.round == state["final"] + 1:
            # A measured failure opens all objections to the draft again, also those that a patch closed.
            log.append(each.closed("") if trial is not None and not trial.solved else each)
        else:
            by = f"draft {state['final'] + 1} was chosen"
            log.append(each.closed(by) if each.status == "open" else each)
    given = Case(
        **told_of(step.world, state["task"]),
        draft=step.draft(state["final"]),
        iterations=state["iterations"],
        trial=trial,
        resolved=worded([each for each in log if each.status == "closed"]),
        unresolved=worded([each for each in log if each.status == "open"]),
        open_blocking=sum(each.blocks for each in log),
        cards=[
            # A patched draft no longer shows that its cards served.
            each.model_copy(update={"served_before": first and bool({*each.tasks} - task)})
            for each in step.used
        ],
    )
    with counting() as asked:  # the state has the counts up to this step only
        made, who = await step.ask("leader", resolve_task, given)
    packet = _packet(step, made, log, trial, sum_counts(state["asked"], asked))
    step.tell("decide", solved=packet["solved"], confidence=packet["confidence"])
    return {"packet": packet, "log": log, **who}


def _packet(
    step: Step, made: Resolution, log: list[LoggedObjection], trial: Trial | None, spent: Asked
) -> Packet:
    used = step.used
    return Packet(
        answer=made.answer or step.draft(step.state["final"]).solution.text,
        rationale=made.rationale,
        confidence=made.confidence,
        solved=made.solved,
        judged_by="environment" if trial else "leader",
        sources={"cards": [each.id for each in used], "external": made.references},
        metrics={
            "latency_seconds": round(step.state["seconds"], 3),
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
            "no_new_failures": not any(each.blocks for each in log),
            "reusable": made.reusable,
        },
        approved=[used[number].id for number in made.promote] if trial else [],  # only measured tasks promote
        verify_new=made.verify_new and trial is not None,
    )
