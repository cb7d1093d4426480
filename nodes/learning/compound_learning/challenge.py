"""Challenge and patch (§3, steps 2 and 3): the devil's advocate objects, the researcher patches."""

from typing import Literal

from mneme.nodes.learning.compound_learning.state import (
    LoggedObjection,
    State,
    TriedDraft,
    Update,
    as_shown,
    ask_role,
    database_of,
    draft_of,
    effort_of,
    is_blocking,
    knowns,
    scope_of,
    search_text,
    timed,
    trial_of,
    with_pattern,
    worded,
)
from mneme.nodes.learning.context import LearningRuntime, cards_of
from mneme.nodes.learning.query_tuning import QUICK_TRIAL, TaskDatabase
from mneme.prompts.learning.compound_learning import (
    Complaint,
    Known,
    Objection,
    Review,
    challenge_draft,
    patch_draft,
)
from mneme.prompts.learning.tuning import Advice

PATCHES = 2
"""Refinement rounds (§3, step 3): more would let two agents argue for ever."""
PITFALLS = 3


@timed
async def challenge(state: State, runtime: LearningRuntime) -> Update:
    """Stress the latest draft: try it, read its plan, compare it with verified and deprecated cards."""
    database, draft = database_of(state, runtime), draft_of(state, -1)
    trial = await database.attempt(draft.statements, draft.query, QUICK_TRIAL) if database else None
    given = Review(
        task=state["task"],
        query=state.get("query", ""),
        features=state["features"],
        draft=str(draft),
        pattern=draft.pattern,
        proven=bool(draft.used) and len(state["drafts"]) == 1,
        trial=trial,
        tried=[each["draft"]["pattern"] for each in state["drafts"][:-1]],
        remedies=database.remedies() if database else [],
        cards=knowns(state["verified"]),
        pitfalls=await _pitfalls(state, database, runtime),
    )
    answered = await ask_role("devils_advocate", challenge_draft, given, runtime)
    raised = [_logged(each, len(state["drafts"])) for each in answered.value.objections]
    runtime.stream_writer(
        {"step": "challenge", "trial": trial.summary if trial else "", "objections": worded(raised)}
    )
    measured = trial.model_dump() if trial else None
    return {
        "drafts": [*state["drafts"][:-1], {**state["drafts"][-1], "trial": measured}],
        "log": [*state["log"], *raised],
        "effort": [effort_of(answered)],
        "responders": [f"devils_advocate: {answered.responder}"],
    }


async def _pitfalls(state: State, database: TaskDatabase | None, runtime: LearningRuntime) -> list[Known]:
    if not runtime.context.recall:
        return []
    found = await cards_of(runtime).pitfalls(search_text(state, database), PITFALLS)
    return [
        as_shown(each.card, database) for each in found if each.card.scope in ("", scope_of(state, runtime))
    ]


def _logged(objection: Objection, number: int) -> LoggedObjection:
    return LoggedObjection(round=number, objection=objection.model_dump(), status="open", closed_by="")


def needs_patch(state: State) -> Literal["patch", "verify"]:
    """Patch while a blocking objection to the latest draft is open and a round is left (§3: at most 2)."""
    raised = [each for each in state["log"] if each["round"] == len(state["drafts"])]
    blocked = any(is_blocking(each) for each in raised)
    return "patch" if blocked and len(state["drafts"]) <= PATCHES else "verify"


@timed
async def patch(state: State, runtime: LearningRuntime) -> Update:
    """Let the researcher patch the draft; an objection that the patch does not answer stays open."""
    database, number = database_of(state, runtime), len(state["drafts"])
    open_ = [each for each in state["log"] if each["round"] == number and each["status"] == "open"]
    open_.sort(key=lambda each: each["objection"]["severity"] != "blocking")
    given = Complaint(
        task=state["task"],
        query=state.get("query", ""),
        features=state["features"],
        draft=draft_of(state, -1),
        objections=worded(open_),
        advice=[_remedy(each, database) for each in open_],
        trial=trial_of(state["drafts"][-1]["trial"]),
    )
    answered = await ask_role("researcher", patch_draft, given, runtime)
    draft = with_pattern(answered.value, database)
    closed = [open_[each] for each in answered.value.closed]
    runtime.stream_writer({"step": "patch", "draft": str(draft), "closed": worded(closed)})
    return {
        "drafts": [*state["drafts"], TriedDraft(draft=draft.model_dump(exclude={"closed"}), trial=None)],
        "log": [
            each | {"status": "closed", "closed_by": f"patch {number}"} if each in closed else each
            for each in state["log"]
        ],
        "iterations": number + 1,
        "effort": [effort_of(answered)],
        "responders": [f"researcher: {answered.responder}"],
    }


def _remedy(entry: LoggedObjection, database: TaskDatabase | None) -> Advice:
    remedy = entry["objection"]["remedy"]
    if database is None or not remedy:
        return Advice(pattern=remedy, why_not="The objection names no remedy that can be made out.")
    return database.advice("", remedy)
