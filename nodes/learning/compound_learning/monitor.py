"""Compile and keep (§3, step 5): the monitor extracts what the task taught; it is written to the cards.

The log of tasks (§10) has the rest: the task's data, its costs, and its mistakes.
"""

import hashlib
from collections.abc import Sequence
from textwrap import shorten

from mneme.core.errors import BadInput
from mneme.environments.worlds import World, parts_of
from mneme.models.asking.counting import tokens_in
from mneme.nodes.learning.compound_learning.researcher import shorten_middle
from mneme.nodes.learning.compound_learning.state import Learned, State, Step, Update, timed
from mneme.nodes.learning.context import TeamContext
from mneme.nodes.learning.worlds import OUTSIDE_FIELDS, known_pattern, posed, told_of
from mneme.prompts.learning.compound_learning.compile import DeadEnd, Experience, Finding, compile_lessons
from mneme.prompts.learning.compound_learning.task import Known, best
from mneme.stores.cards.card import (
    Card,
    DeprecatedApproach,
    FailureMode,
    Lesson,
    Rule,
    TaskOutcome,
    normalised,
)
from mneme.stores.cards.disputes import Approach
from mneme.stores.cards.lifecycle import Approval, PromotionRubric
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.ledger.records import Change, Source
from mneme.stores.provenance import made_from
from mneme.stores.write_gate import CARD_GATE

MIN_SPEED_UP = 1.1
"""Minimum speed-up over the baseline; a smaller one counts as no gain."""
MAX_REASON_CHARS = 300
MAX_EXAMPLE_CHARS = 2_000
"""Maximum characters of a solution that a card keeps as an example; a cut example would not run."""
JUDGED_NOTE = "Judged by the model, not measured."
"""Text in a card whose success was not measured, until a person or a checker confirms it."""


@timed
async def compile(step: Step) -> Update:
    """Let the monitor extract the lessons of the task, given the cards (§3, step 5)."""
    state, world, packet = step.state, step.world, step.state["packet"]
    given = Experience(
        **told_of(world, state["task"]),
        general="; ".join(world.general),
        started_with=step.draft(0).pattern,
        ended_with=step.draft(state["final"]).pattern,
        solved=packet["solved"],
        measured=packet["rationale"],
        confidence=packet["confidence"],
        resolved=[each.objection.evidence for each in state["log"] if each.status == "closed"],
        in_vain=[DeadEnd(approach=each.approach, reason=each.reason) for each in fell_short(state)],
        trajectory=trajectory_of(state),
        answer="" if world.measures else packet["answer"],
        used=step.used,
        verified=[each for each in state["cards"] if each.status == "verified"],
    )
    said, by = await step.ask("monitor", compile_lessons, given, lane="background")
    step.tell("compile", findings=[each.event for each in said.findings])
    # A pattern outside of the world's language could be carried out in no task.
    kept = [each for each in said.findings if not each.pattern or known_pattern(world, each.pattern)]
    return {"findings": kept, **by}


@timed
async def keep(step: Step) -> Update:
    """Write the lessons, promote what the leader approved, and log the task; all can be replayed safely."""
    packet = step.state["packet"]
    kept = [await _keep(each, step) for each in step.state["findings"]]
    # After the findings: this task's success is part of the evidence that a promotion needs.
    kept += [await _promote(card, step) for card in packet["approved"]]
    if packet["verify_new"]:
        new = [each["card"] for each in kept if each and each["event"] == "created"]
        kept += [await _promote(card, step, at_creation=True) for card in new]
    learned = [each for each in kept if each]
    await step.cards.tasks.add(record_of(step.state, step.world, step.runtime.context, learned))
    step.cards.records.ledger.begin(step.cards.keep_up())  # beside the next tasks
    step.tell("keep", learned=learned)
    return {"learned": learned, "answered_by": sorted(set(step.state["responders"]))}


async def _keep(finding: Finding, step: Step) -> Learned | None:
    state, cards, used = step.state, step.cards, step.used
    change = _change(finding.rationale, "monitor", state)
    is_measured = state["packet"]["judged_by"] == "environment"
    outcome = TaskOutcome(
        task=state["task_id"],
        success=finding.success if finding.event == "reinforce" else finding.event != "dead_end",
        confidence=state["packet"]["confidence"],
        features=state["features"],
    )
    if finding.event == "reinforce":
        if not is_measured:
            return None  # a model's own judgement is no evidence
        known = used[finding.card]
        number = state["cards"].index(known)
        trials = [each["trial"] for each in state["drafts"] if number in each["draft"].used]
        trials += [state["measured"]] if number in step.draft(state["final"]).used else []
        # Did a draft that used the card fail? Later drafts without the card do not count.
        has_failed = any(trial is not None and not trial.nearly_does for trial in trials)
        if not finding.success and not has_failed:
            return None
        details = _lesson(finding, step, known)
        if finding.success:
            details = details.model_copy(update={"deprecated_approaches": []})  # of others, not of this card
        card = await cards.reinforce(known.id, outcome, change=change, details=details)
        return _learned("success" if finding.success else "failure", card, finding.rationale)
    if finding.event == "dispute":
        return await _dispute(finding, used[finding.card], step, change)
    change = made_from(change, state.get("shared", []))  # sources of a new card; outcomes rest on trials
    lesson = _lesson(finding, step)
    if not is_measured:
        judged = lesson.model_copy(update={"rationale": f"{JUDGED_NOTE} {lesson.rationale}".strip()})
        learned = await cards.propose(judged, change=change)
        return _learned(learned.event, learned.card, finding.rationale)
    learned = await cards.create(lesson, outcome, change=change)
    card, event = learned.card, str(learned.event)
    if finding.event == "dead_end":  # its card is deprecated: it warns both
        card = await cards.deprecate(card.id, change=change) if event == "created" else card
        event = "dead end" if card.status == "deprecated" and event != "unchanged" else event
    return _learned(event, card, finding.rationale)


async def _dispute(finding: Finding, card: Known, step: Step, change: Change) -> Learned:
    """Open a dispute of the finding against the verified card, which stays as it is."""
    followed = best(card.advice) or next(iter(card.advice), None)  # in words, none is made out
    refines = followed is not None and followed.condition != finding.condition
    old = f"{followed.condition} -> {followed.pattern}" if followed else ""
    new = f"{finding.condition} -> {finding.pattern}"
    dispute = await step.cards.disputes.open(
        card.id,
        old=Approach(claim=card.claim, solution=old),
        new=Approach(claim=finding.claim, solution=new, task=step.state["task_id"]),
        change=change,
        conflict_type="refinement" if refines else "contradiction",
    )
    return _learned("dispute", await step.cards.records.get(card.id), finding.rationale, dispute.id)


async def _promote(card_id: str, step: Step, *, at_creation: bool = False) -> Learned | None:
    """Carry out the leader's approval; the rules of §5 decide, and give the reason if they refuse."""
    packet, cards = step.state["packet"], step.cards
    approval = Approval(
        by="leader",
        approved=True,
        rubric=PromotionRubric(**packet["rubric"]),
        open_blocking=sum(each.blocks for each in step.state["log"]),
        reason=packet["rationale"],
        at_creation=at_creation,
    )
    before, change = await cards.records.get(card_id), _change(packet["rationale"], "leader", step.state)
    if before.status != "provisional":
        return None  # promoted before this step was replayed, or deprecated or disputed meanwhile
    try:
        return _learned("promoted", await cards.promote(card_id, approval, change=change), change.reason)
    except BadInput as refusal:
        return _learned("not promoted", before, str(refusal))


def _lesson(finding: Finding, step: Step, used: Known | None = None) -> Lesson:
    """Return the lesson of a finding, with the dead ends that the monitor names, else the drafts that failed.

    For a `used` card, only the first draft counts, since it rested on the card.
    """
    state, solution = step.state, step.draft(step.state["final"]).solution.text
    worked = state["packet"]["solved"] and (not used or finding.success)
    # A solution that reads like an instruction to agents would have the whole card flagged.
    is_example = worked and len(solution) <= MAX_EXAMPLE_CHARS and not any(CARD_GATE.doubts(solution))
    short = {each.approach: each for each in fell_short(state)}
    named = []
    for each in finding.deprecated_approaches:  # with its trial's result, if it was tried
        made = DeprecatedApproach(
            approach=each.approach,
            failed_in=[state["task_id"]],
            condition=state["features"] or finding.condition,
        )
        tried = short.get(each.approach, made)
        named.append(tried.model_copy(update={"reason": each.reason or tried.reason}))
    return Lesson(
        claim=used.claim if used else finding.claim,
        rationale=finding.rationale,
        rules=[Rule(condition=finding.condition, pattern=finding.pattern)] if finding.pattern else [],
        deprecated_approaches=named or _failed_drafts(state, 1 if used else state["final"]),
        failure_modes=[FailureMode(**dict(each)) for each in finding.failure_modes],
        example=solution if is_example else "",
        tags=parts_of(finding.condition),
        scope=step.world.scope,
    )


def fell_short(state: State) -> list[DeprecatedApproach]:
    """Return the approaches that did not solve the task, each with the features under which it failed.

    Approaches over a limit are left out, since the limit belongs to this task alone. So are those that change
    nothing, and those that miss the target by no more than the noise of a measurement.
    """
    found = {}
    for tried in state["drafts"]:
        draft, trial = tried["draft"], tried["trial"]
        changes = draft.pattern and draft.solution.text
        if trial is None or trial.over_limit or trial.nearly_does or not changes:
            continue
        helped = trial.correct and trial.gain >= MIN_SPEED_UP
        found[draft.pattern] = DeprecatedApproach(
            approach=draft.pattern,
            reason=shorten(trial.problem or trial.summary, MAX_REASON_CHARS, placeholder=" …"),
            failed_in=[state["task_id"]],
            condition=state["features"],
            gained=round(trial.gain, 2) if helped else None,
        )
    return [*found.values()]


def _failed_drafts(state: State, before: int) -> list[DeprecatedApproach]:
    """Return the failed drafts up to that number; drafts without a trial get an objection as their reason."""
    short = {each.approach: each for each in fell_short(state)}
    said = {each.round: each.objection.evidence for each in reversed(state["log"])}
    drafts = [(each["draft"], each["trial"]) for each in state["drafts"][:before]]
    return [
        short.get(draft.pattern)
        or DeprecatedApproach(
            approach=draft.pattern or draft.rationale,
            reason=said.get(number, ""),
            failed_in=[state["task_id"]],
        )
        for number, (draft, trial) in enumerate(drafts, start=1)
        if trial is None or not trial.nearly_does
    ]


def _change(reason: str, actor: str, state: State) -> Change:
    models = [each.split(": ", 1)[1] for each in state["responders"] if each.startswith(actor)]
    source = Source(tasks=[state["task_id"]])
    return Change(reason=reason, actor=actor, source=source, model=models[-1] if models else "")


def _learned(event: str, card: Card, why: str, dispute: str = "") -> Learned:
    return Learned(
        event=event,
        card=card.id,
        version=card.version,
        status=card.status,
        claim=card.claim,
        why=why,
        dispute=dispute,
    )


def trajectory_of(state: State) -> list[str]:
    """Describe the task draft by draft: its solution, the result of its trial, and the objections to it."""
    told = []
    for number, each in enumerate(state["drafts"], start=1):
        lines = [f"draft {number} ({each['draft'].pattern or 'no pattern'}):", str(each["draft"])]
        lines += [f"trial: {trial}"] if (trial := each["trial"]) else []
        lines += [f"objected: {entry}" for entry in state["log"] if entry.round == number]
        told.append(shorten_middle("\n".join(lines)))
    return told


def record_of(
    state: State, world: World, context: TeamContext, learned: Sequence[Learned] = ()
) -> TaskRecord:
    """Return the log's record of a task; its input is included if it names nothing outside Mneme."""
    packet, (name, given) = state["packet"], posed(state, context)
    is_outside = any(given.get(each) for each in OUTSIDE_FIELDS)  # a replay must not open them unasked
    # Blocked drafts; equal names for the same approach to the same kind of task.
    kind, drafts = state["features"] or world.scope or state["task"], state["drafts"]
    blocked = [each.round for each in state["log"] if each.objection.severity == "blocking"]
    mistakes = list[str]()
    for draft in [drafts[number - 1]["draft"] for number in blocked]:
        if draft.pattern:
            mistakes.append(f"{draft.pattern} for {kind}")
        elif solution := draft.solution.text:  # without both, a draft is like no other
            digest = hashlib.sha256(normalised(solution).encode()).hexdigest()
            mistakes.append(f"solution {digest[:12]} for {kind}")
    return TaskRecord(
        id=state["task_id"],
        task=state["task"],
        material=shorten_middle(world.material()) if world.measures else "",
        domain=world.scope,
        world="" if is_outside else name,
        posed={} if is_outside or not name else given,
        solved=packet["solved"],
        seconds=state["seconds"],
        iterations=state["iterations"],
        model_calls=state["asked"]["calls"],
        tokens=tokens_in(state["asked"]),
        confidence=packet["confidence"],
        speed_up=packet["metrics"]["speed_up"],
        retrieved=[each.id for each in state["cards"]],
        used=[state["cards"][number].id for number in drafts[0]["draft"].used],
        retrieval_ms=state["retrieval_ms"],
        mistakes=list(dict.fromkeys(mistakes)),
        cards=list(dict.fromkeys(each["card"] for each in learned)),
        disputes=[each["dispute"] for each in learned if each["dispute"]],
        answered_by=", ".join(sorted({each.split(": ", 1)[1] for each in state["responders"]})),
    )
