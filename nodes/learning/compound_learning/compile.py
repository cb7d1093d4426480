"""Compile and keep (§3, step 5): the monitor extracts what the task taught; it is written to the cards."""

from collections.abc import Sequence

from mneme.core.errors import BadInput
from mneme.nodes.learning.compound_learning.state import (
    Learned,
    Recalled,
    State,
    Update,
    ask_role,
    database_of,
    effort_of,
    is_blocking,
    knowns,
    scope_of,
    timed,
    used_cards,
)
from mneme.nodes.learning.context import LearningRuntime, cards_of
from mneme.nodes.learning.query_tuning import general
from mneme.prompts.learning.compound_learning import (
    Experience,
    Finding,
    Findings,
    compile_lessons,
)
from mneme.stores.cards.card import Card, DeprecatedApproach, Lesson, Rule, TaskOutcome
from mneme.stores.cards.disputes import Approach
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import Approval, PromotionRubric
from mneme.stores.cards.task_log import TaskRecord
from mneme.stores.ledger.records import Change, Source


@timed
async def compile(state: State, runtime: LearningRuntime) -> Update:
    """Let the monitor extract what the task taught, against the cards that it knows (§3, step 5)."""
    database, packet = database_of(state, runtime), state["packet"]
    patterns = [each["draft"]["pattern"] for each in state["drafts"]]
    given = Experience(
        task=state["task"],
        features=state["features"],
        general="; ".join(general(database.features)) if database else "",
        started_with=patterns[0],
        ended_with=patterns[state["final"]],
        solved=packet["solved"],
        measured=packet["rationale"],
        confidence=packet["confidence"],
        resolved=[each["objection"]["evidence"] for each in state["log"] if each["status"] == "closed"],
        failed=[each for n, each in enumerate(patterns) if n != state["final"] and each],
        used=knowns(used_cards(state)),
        verified=knowns(state["verified"]),
    )
    answered = await ask_role("monitor", compile_lessons, given, runtime, lane="background")
    runtime.stream_writer({"step": "compile", "findings": [each.event for each in answered.value.findings]})
    return {
        "findings": [each.model_dump() for each in answered.value.findings],
        "effort": [effort_of(answered)],
        "responders": [f"monitor: {answered.responder}"],
    }


@timed
async def keep(state: State, runtime: LearningRuntime) -> Update:
    """Write what was learned, promote what the leader approved, and log the task; all safe to replay."""
    cards = cards_of(runtime)
    findings = Findings.model_validate({"findings": state["findings"]}).findings
    kept = [await _keep(each, state, cards, runtime) for each in findings]
    kept += [await _promote(card, state, cards) for card in state["packet"]["approved"]]
    learned = [each for each in kept if each]
    await cards.tasks.add(_record(state, learned, runtime))
    await cards.archive_inactive()
    await cards.clusters.make_if_large()
    runtime.stream_writer({"step": "keep", "learned": learned})
    return {"learned": learned, "answered_by": sorted(set(state["responders"]))}


async def _keep(
    finding: Finding, state: State, cards: KnowledgeCards, runtime: LearningRuntime
) -> Learned | None:
    change = _change(finding.rationale, "monitor", state)
    used = used_cards(state)
    if finding.event == "reinforce":
        card_id = used[finding.card]["id"]
        outcome = _outcome(state, finding.success)
        card = await cards.reinforce(card_id, outcome, change=change)
        return _learned("success" if finding.success else "failure", card, finding.rationale)
    if finding.event == "dispute":
        return await _dispute(finding, used[finding.card], state, cards, change)
    learned = await cards.create(_lesson(finding, state, runtime), _outcome(state, True), change=change)
    return _learned(learned.event, learned.card, finding.rationale)


async def _dispute(
    finding: Finding, card: Recalled, state: State, cards: KnowledgeCards, change: Change
) -> Learned:
    """Set the finding against the verified card, which stays as it is."""
    followed = knowns([card])[0].best
    old = f"{followed.condition} -> {followed.pattern}" if followed else ""
    new = f"{finding.condition} -> {finding.pattern}"
    refines = followed is not None and followed.condition != finding.condition
    dispute = await cards.disputes.open(
        card["id"],
        old=Approach(claim=card["known"]["claim"], solution=old),
        new=Approach(claim=finding.claim, solution=new, task=state["task_id"]),
        change=change,
        conflict_type="refinement" if refines else "contradiction",
    )
    return _learned("dispute", await cards.records.get(card["id"]), finding.rationale, dispute.id)


async def _promote(card_id: str, state: State, cards: KnowledgeCards) -> Learned | None:
    """Carry out the leader's approval; the rules of §5 have the last word, and say why where they refuse."""
    packet = state["packet"]
    approval = Approval(
        by="leader",
        approved=True,
        rubric=PromotionRubric(**packet["rubric"]),
        open_blocking=sum(is_blocking(each) for each in packet["objections"]),
        reason=packet["rationale"],
    )
    before = await cards.records.get(card_id)
    if before.status != "provisional":
        return None
    try:
        card = await cards.promote(card_id, approval, change=_change(packet["rationale"], "leader", state))
    except BadInput as refusal:
        return _learned("not promoted", before, str(refusal))
    return _learned("promoted", card, packet["rationale"])


def _lesson(finding: Finding, state: State, runtime: LearningRuntime) -> Lesson:
    failed = [each["draft"]["pattern"] for each in state["drafts"][: state["final"]]]
    closed = {each["round"]: each["objection"]["evidence"] for each in reversed(state["log"])}
    return Lesson(
        claim=finding.claim,
        rationale=finding.rationale,
        rules=[Rule(condition=finding.condition, pattern=finding.pattern)],
        deprecated_approaches=[
            DeprecatedApproach(approach=each, reason=closed.get(number, ""), failed_in=[state["task_id"]])
            for number, each in enumerate(failed, start=1)
            if each
        ],
        tags=[each.strip() for each in finding.condition.split(";") if each.strip()],
        scope=scope_of(state, runtime),
    )


def _outcome(state: State, success: bool) -> TaskOutcome:
    return TaskOutcome(task=state["task_id"], success=success, confidence=state["packet"]["confidence"])


def _change(reason: str, actor: str, state: State) -> Change:
    models = [each.split(": ", 1)[1] for each in state["responders"] if each.startswith(actor)]
    return Change(
        reason=reason,
        actor=actor,
        source=Source(tasks=[state["task_id"]]),
        model=models[-1] if models else "",
    )


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


def _record(state: State, learned: Sequence[Learned], runtime: LearningRuntime) -> TaskRecord:
    metrics = state["packet"]["metrics"]
    return TaskRecord(
        id=state["task_id"],
        task=state["task"],
        domain=scope_of(state, runtime),
        solved=state["packet"]["solved"],
        seconds=sum(each["seconds"] for each in state["effort"]),
        iterations=state["iterations"],
        model_calls=sum(each["calls"] for each in state["effort"]),
        tokens=sum(each["tokens"] for each in state["effort"]),
        confidence=state["packet"]["confidence"],
        speed_up=metrics["speed_up"],
        retrieved=[each["id"] for each in state["cards"]],
        used=[each["id"] for each in used_cards(state)],
        retrieval_ms=state["retrieval_ms"],
        mistakes=_mistakes(state),
        cards=list(dict.fromkeys(each["card"] for each in learned)),
        disputes=[each["dispute"] for each in learned if each["dispute"]],
        answered_by=", ".join(sorted({each.split(": ", 1)[1] for each in state["responders"]})),
    )


def _mistakes(state: State) -> list[str]:
    """Name each draft that was blocked, the same for the same approach to the same kind of query."""
    made = [
        f"{state['drafts'][each['round'] - 1]['draft']['pattern']} for {state['features']}"
        for each in state["log"]
        if each["objection"]["severity"] == "blocking"
    ]
    return list(dict.fromkeys(made))
