"""Challenge and patch (§3, steps 2 and 3): the devil's advocate objects, the researcher patches."""

import asyncio
from textwrap import shorten
from typing import Literal

from mneme.environments.worlds import World
from mneme.nodes.learning.compound_learning.state import (
    LoggedObjection,
    State,
    TriedDraft,
    Update,
    ask_role,
    draft_of,
    timed,
    used_cards,
    verified_cards,
    with_pattern,
    worded,
)
from mneme.nodes.learning.context import LearningRuntime
from mneme.nodes.learning.worlds import advice_of, attempt, known_pattern, remedies, told_of
from mneme.nodes.shared_memory import lines_of
from mneme.prompts.learning.compound_learning.challenge import Objection, Review, challenge_draft
from mneme.prompts.learning.compound_learning.research import Complaint, Draft, patch_draft
from mneme.prompts.learning.compound_learning.task import Advice

MAX_CHECK_CHARS_TOLD = 300
PATCHES = 2
"""Refinement rounds (§3, step 3): more would let two agents argue for ever."""


@timed
async def challenge(state: State, runtime: LearningRuntime, world: World) -> Update:
    """As the devil's advocate, try the latest draft, and compare it with verified and deprecated cards."""
    draft = draft_of(state, -1)
    trial = await attempt(world, draft.made, quick=True)
    given = Review(
        **told_of(world, state["task"]),
        draft=str(draft),
        pattern=draft.pattern,
        rests_on=[each.claim for each in used_cards(state)],
        proven=bool(draft.used) and len(state["drafts"]) == 1,
        trial=trial,
        tried=[each["draft"].pattern for each in state["drafts"][:-1]],
        earlier=[*map(str, state["log"])],
        remedies=remedies(world),
        cards=verified_cards(state),
        pitfalls=state["pitfalls"],
    )
    said, by = await ask_role("devils_advocate", challenge_draft, given, runtime)
    number = len(state["drafts"])
    probes = [*dict.fromkeys([*state["probes"], said.hidden_check])] if said.hidden_check else state["probes"]
    found = [*said.objections, *[each for probe in probes for each in await _probed(draft, probe, world)]]
    raised = [LoggedObjection(round=number, objection=each) for each in found]
    runtime.stream_writer(
        {"step": "challenge", "trial": trial.summary if trial else "", "objections": worded(raised)}
    )
    return {
        "drafts": [*state["drafts"][:-1], TriedDraft(draft=draft, trial=trial)],
        "log": [*state["log"], *raised],
        "probes": probes,
        **by,
    }


async def _probed(draft: Draft, command: str, world: World) -> list[Objection]:
    """Run a hidden check on a draft, this one's or an earlier one's; object to what fails it."""
    wrong = await asyncio.to_thread(world.probe, draft.made, command)
    said = f"{wrong} It is: {shorten(command, MAX_CHECK_CHARS_TOLD, placeholder=' …')}"
    failed = Objection(evidence=said, kind="missing_edge_case", severity="blocking")
    return [failed] if wrong else []


def needs_patch(state: State) -> Literal["patch", "verify"]:
    """Patch while a blocking objection to the latest draft is open and a round is left (§3: at most 2)."""
    blocked = any(each.blocks for each in state["log"] if each.round == len(state["drafts"]))
    return "patch" if blocked and len(state["drafts"]) <= PATCHES else "verify"


@timed
async def patch(state: State, runtime: LearningRuntime, world: World) -> Update:
    """Let the researcher patch the draft; an objection that the patch does not answer stays open.

    A patch that changes nothing closes nothing, and is no draft.
    """
    number = len(state["drafts"])
    open_ = [each for each in state["log"] if each.round == number and each.status == "open"]
    open_.sort(key=lambda each: each.objection.severity != "blocking")
    given = Complaint(
        **told_of(world, state["task"]),
        shared=await lines_of(runtime, state.get("shared", [])),
        draft=draft_of(state, -1),
        objections=worded(open_),
        advice=[_remedy(each.objection.remedy, world) for each in open_],
        trial=state["drafts"][-1]["trial"],
        cards=state["cards"],
        pitfalls=state["pitfalls"],
    )
    answer, by = await ask_role("researcher", patch_draft, given, runtime)
    patched = with_pattern(answer, world)
    draft = Draft(**patched.model_dump(exclude={"closed"}))
    if (draft.pattern, draft.solution) == (given.draft.pattern, given.draft.solution):
        runtime.stream_writer({"step": "patch", "draft": "", "closed": []})
        return by
    closed = [open_[each] for each in answer.closed]
    runtime.stream_writer({"step": "patch", "draft": str(draft), "closed": worded(closed)})
    return {
        **by,
        "drafts": [*state["drafts"], TriedDraft(draft=draft, trial=None)],
        "log": [each.closed(f"patch {number}") if each in closed else each for each in state["log"]],
        "iterations": number + 1,
    }


def is_patched(state: State) -> bool:
    """Say whether the latest draft is a new one: to challenge the same once more would tell nothing."""
    return all(each.round != len(state["drafts"]) for each in state["log"])


def _remedy(remedy: str, world: World) -> Advice:
    """Make a remedy out for the task; one in words stays words, which the researcher can act on."""
    if not remedy:
        return Advice(pattern=remedy, why_not="The objection names no remedy.")
    if not known_pattern(world, remedy):
        return Advice(pattern=remedy, is_text=True)
    return advice_of(world, "", remedy)
