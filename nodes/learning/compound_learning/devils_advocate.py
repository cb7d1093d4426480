"""Challenge and patch (§3, steps 2 and 3): the devil's advocate objects, the researcher patches."""

import asyncio
from textwrap import shorten
from typing import Literal

from mneme.nodes.learning.compound_learning.state import (
    LoggedObjection,
    State,
    Step,
    TriedDraft,
    Update,
    timed,
    with_pattern,
    worded,
)
from mneme.nodes.learning.worlds import advice_of, attempt, known_pattern, made_out, told_of
from mneme.nodes.shared_memory import lines_of
from mneme.prompts.learning.compound_learning.challenge import Objection, Review, challenge_draft
from mneme.prompts.learning.compound_learning.research import Complaint, Draft, patch_draft
from mneme.prompts.learning.compound_learning.task import Advice

MAX_SHOWN_CHECK_CHARS = 300
PATCHES = 2
"""Maximum refinement rounds (§3, step 3): more would let two agents argue for ever."""


@timed
async def challenge(step: Step) -> Update:
    """As the devil's advocate, try the latest draft, and compare it with verified and deprecated cards."""
    state, world, draft = step.state, step.world, step.draft(-1)
    trial = await attempt(world, draft.solution, quick=True)
    given = Review(
        **told_of(world, state["task"]),
        draft=str(draft),
        pattern=draft.pattern,
        rests_on=[each.claim for each in step.used],
        proven=bool(draft.used) and len(state["drafts"]) == 1,  # a patch no longer is what served before
        trial=trial,
        tried=[each["draft"].pattern for each in state["drafts"][:-1]],
        earlier=[*map(str, state["log"])],
        remedies=[each.pattern for each in made_out(world, world.remedies())],
        cards=[each for each in state["cards"] if each.status == "verified"],
        pitfalls=state["pitfalls"],
    )
    said, by = await step.ask("devils_advocate", challenge_draft, given)
    probes = [*dict.fromkeys([*state["probes"], said.hidden_check])] if said.hidden_check else state["probes"]
    found = [*said.objections]
    for probe in probes:  # hidden checks of earlier drafts, too: a patch may bring a fault back
        if wrong := await asyncio.to_thread(world.probe, draft.solution, probe):
            failed = f"{wrong} It is: {shorten(probe, MAX_SHOWN_CHECK_CHARS, placeholder=' …')}"
            found.append(Objection(evidence=failed, kind="missing_edge_case", severity="blocking"))
    raised = [LoggedObjection(round=len(state["drafts"]), objection=each) for each in found]
    step.tell("challenge", trial=trial.summary if trial else "", objections=worded(raised))
    drafts = [*state["drafts"][:-1], TriedDraft(draft=draft, trial=trial)]
    return {"drafts": drafts, "log": [*state["log"], *raised], "probes": probes, **by}


def needs_patch(state: State) -> Literal["patch", "verify"]:
    """Patch while a blocking objection to the latest draft is open and a round is left (§3: at most 2)."""
    blocked = any(each.blocks for each in state["log"] if each.round == len(state["drafts"]))
    return "patch" if blocked and len(state["drafts"]) <= PATCHES else "verify"


@timed
async def patch(step: Step) -> Update:
    """Let the researcher patch the draft; an objection that the patch does not answer stays open."""
    state, number = step.state, len(step.state["drafts"])
    open_ = [each for each in state["log"] if each.round == number and each.status == "open"]
    open_.sort(key=lambda each: each.objection.severity != "blocking")  # blocking ones first
    advice = list[Advice]()
    for remedy in [each.objection.remedy for each in open_]:
        if not remedy:
            advice.append(Advice(pattern=remedy, why_not="The objection names no remedy."))
        elif not known_pattern(step.world, remedy):  # it stays text for the researcher
            advice.append(Advice(pattern=remedy, is_text=True))
        else:
            advice.append(advice_of(step.world, "", remedy))
    given = Complaint(
        **told_of(step.world, state["task"]),
        shared=await lines_of(step.runtime, state.get("shared", [])),
        draft=step.draft(-1),
        objections=worded(open_),
        advice=advice,
        trial=state["drafts"][-1]["trial"],
        cards=state["cards"],
        pitfalls=state["pitfalls"],
    )
    answer, by = await step.ask("researcher", patch_draft, given)
    draft = Draft(**with_pattern(answer, step.world).model_dump(exclude={"closed"}))
    # A patch that changes nothing is no new draft, and closes no objection, whatever it says.
    if (draft.pattern, draft.solution) == (given.draft.pattern, given.draft.solution):
        step.tell("patch", draft="", closed=[])
        return by
    closed = [open_[each] for each in answer.closed]
    step.tell("patch", draft=str(draft), closed=worded(closed))
    return {
        **by,
        "drafts": [*state["drafts"], TriedDraft(draft=draft, trial=None)],
        "log": [each.closed(f"patch {number}") if each in closed else each for each in state["log"]],
        "iterations": number + 1,
    }


def is_patched(state: State) -> bool:
    """Return whether the latest draft is new: challenging an unchanged one again would show nothing."""
    return all(each.round != len(state["drafts"]) for each in state["log"])
