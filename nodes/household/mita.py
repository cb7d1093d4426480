"""MiTa: perceive, summarise where progress changed, negotiate, allocate, execute (§3, algorithm 1).

Negotiation and allocation cost no step of the world, as in the paper: they do not use `send_message`. Where
the paper is not explicit:

- Progress `p` is evaluated from the joint belief (algorithm 1, line 9): how many things of each predicate are
  placed, held and found ("found and put", figure 2). Finding a thing is therefore a change of progress, too.
- `H_i` and a member's report of its belief are truncated to a window: what it saw in its latest `window`
  steps, and its latest `window` actions. The manager knows anything older only from a synopsis.
- A member's options, and so its own proposal, come from all its beliefs, not from the window alone: its body
  knows where it was. A proposal tells the manager where its target is, however long ago it was seen.
- The manager gets its knowledge in two forms: as fields for a rule (what the window and the proposals tell,
  and what the synopses say was checked, explored and found), and as words for a model (the reports and the
  narratives), with the options, which follow from those fields.
- An allocation tells the member where its target is, so that it can carry it out; nothing else of the
  manager's knowledge reaches a member.
- A member is not asked if only one action is possible, or if nothing has changed since its last proposal (its
  options, the progress, what the team said): then it continues.
- Members hear what each of them is doing and why it was decided (the dialogue of `H_i`), also without
  allocation.
"""

from collections.abc import Sequence
from typing import Any, Literal, cast
from uuid import uuid4

from langgraph.types import Overwrite, Send

from mneme.core.errors import BadAnswer
from mneme.environments.household.beliefs import Beliefs
from mneme.environments.household.scene import AGENT_NAMES
from mneme.models.asking.asking import ask
from mneme.nodes.household import household
from mneme.nodes.household.alone import fallback
from mneme.nodes.household.context import HouseholdRuntime
from mneme.nodes.household.counters import Counters, lapse, with_counters
from mneme.nodes.household.household_state import (
    Member,
    Update,
    as_json,
    beliefs_of,
    episode_of,
    stream_line,
    with_beliefs,
    world_of,
)
from mneme.nodes.household.mita_memory import (
    deeds,
    kept_short,
    memory_of,
    named_in,
    outdated_in,
    passage_of,
    remembered,
    taught_by,
)
from mneme.nodes.household.mita_state import (
    FALLBACK,
    DatedSynopsis,
    Progress,
    ProposalRequest,
    Proposed,
    State,
    assess,
    in_order,
    option_of,
    since,
    together,
    wanted_in,
)
from mneme.nodes.household.views import (
    cross_context_of,
    known_to_the_manager,
    macro_of,
    mark_of,
    situation_of,
)
from mneme.nodes.shared_memory import lines_of, look_up
from mneme.prompts.household.household import Option
from mneme.prompts.household.mita import Report, Situation, allocate_actions, propose_action
from mneme.prompts.household.synopsis import Synopsis, summarise_passage
from mneme.stores.ledger.records import Change, Source
from mneme.stores.provenance import made_from


async def begin(state: State, runtime: HouseholdRuntime) -> Update:
    """Set up the episode; the collaborative summary is empty (algorithm 1, line 3)."""
    update = await household.begin(state, runtime)
    nothing = Progress(placed=update["progress"], held={}, found={})
    started = update | {"assessed": nothing, "last": nothing, "last_step": -1, "actions": [], "synopses": []}
    started["forbidden"] = ""
    if runtime.context.remember:
        started |= await remembered(update, runtime)
    episode = episode_of(cast(State, update))
    named = [*wanted_in(episode), *(goal.target_name for goal in episode.goals)]
    return started | {
        "run": uuid4().hex,
        "shared": await look_up(runtime, ", ".join(dict.fromkeys(named)), "manager", but=["synopsis"]),
    }


async def perceive(state: State, runtime: HouseholdRuntime) -> Update:
    """Let each member perceive, and evaluate the progress from the joint belief.

    If all wait because a wish forbids the task, the episode is over.
    """
    update = await household.perceive(state, runtime)
    beliefs = beliefs_of(update["members"])
    update["over"] = update["over"] or bool(state.get("forbidden"))
    return update | {"assessed": assess(episode_of(state), beliefs), "proposals": Overwrite([])}


def after_perceiving(state: State, runtime: HouseholdRuntime) -> Literal["summarise", "finish"] | list[Send]:
    """Return `summarise` if progress changed (algorithm 1, line 10); else negotiate, or end.

    What is seen at the start belongs to the first later change; the end needs no synopsis.
    """
    is_news = state["assessed"] != state["last"] and state["steps"] > 0  # `last`: at the last synopsis
    if runtime.context.summary and is_news and not state["over"]:
        return "summarise"
    return negotiations(state, runtime)


def who_decides(state: State, runtime: HouseholdRuntime) -> Literal["allocate", "follow_proposals"]:
    """Return `allocate`, or, without a manager's allocation, `follow_proposals`."""
    return "allocate" if runtime.context.allocation else "follow_proposals"


async def follow_proposals(state: State, runtime: HouseholdRuntime) -> Update:
    """Carry out each member's own proposal (the paper's ablation: without allocation)."""
    line = stream_line(runtime, state["steps"], step="follow_proposals", proposals=_streamed(state))
    return _decided(state, [option_of(each) for each in in_order(state)], "") | line


def _streamed(state: State) -> list[dict[str, Any]]:
    return [
        {"member": AGENT_NAMES[each["member"]], "reason": each["reason"], "action": str(option_of(each))}
        for each in in_order(state)
    ]


def _decided(state: State, options: Sequence[Option], reason: str) -> Update:
    """Return the update for the joint action: what is to be done, and what members are told about it."""
    overruled = {
        AGENT_NAMES[each["member"]]: (macro_of(option_of(each)), macro_of(option))
        for each, option in zip(in_order(state), options, strict=True)
        if macro_of(option_of(each)) != macro_of(option)
    }
    before = state.get("refused", {})
    return {
        "decided": [macro_of(option) for option in options],
        "reason": reason,
        "said": _said(state, options, reason),
        "overruled": {
            name: f"Manager at step {state['steps']}: {name} does {chosen}, not {proposed} as proposed: "
            f"{reason}"
            for name, (proposed, chosen) in overruled.items()
        },
        # Counts refusals in a row, which the manager is shown; another proposal resets the count.
        "refused": {
            name: [*(each for each in before.get(name, []) if each == str(proposed)), str(proposed)]
            for name, (proposed, _) in overruled.items()
        },
        "proposed_in": {AGENT_NAMES[each["member"]]: each["mark"] for each in state["proposals"]},
    }


def _said(state: State, options: Sequence[Option], reason: str) -> dict[str, str]:
    """Return each member's reason: its own words or the manager's; a continued action keeps its reason."""
    before, step = state.get("said", {}), state["steps"]
    said = {}
    for proposed, option in zip(in_order(state), options, strict=True):
        name = AGENT_NAMES[proposed["member"]]
        kept = macro_of(option_of(proposed)) == macro_of(option)
        who, why = (name, proposed["reason"]) if kept else ("the manager", reason)
        # The reason of a fallback is an error's text, of no use to teammates.
        words = "" if why.startswith(FALLBACK) else f"as {who} said at step {step}: {why}"
        said[name] = before[name] if option.under_way and name in before else words
    return said


@with_counters
async def allocate(state: State, runtime: HouseholdRuntime) -> Update:
    """Allocation: let the manager choose the joint action from X, C, p and T (eqs. 3 and 4)."""
    beliefs, team = beliefs_of(state["members"]), known_to_the_manager(state, runtime)
    given = cross_context_of(state, runtime, beliefs, team)
    given.shared = await lines_of(runtime, state.get("shared", []))
    try:
        asked = await ask(allocate_actions, given, runtime.context.manager)
    except BadAnswer as bad:
        return _left_to_the_members(state, runtime, str(bad), len(given.members))
    allocated = asked.value.choices
    lapsed = {each.worker.name: _lapsed(state, runtime, each) for each in given.members}
    chosen = [lapsed[each.worker.name] or each.options[allocated[each.worker.name]] for each in given.members]
    options, reason, forbidden = [str(each) for each in chosen], asked.value.reason, asked.value.forbidden
    said = {"forbidden": forbidden} if forbidden else {}
    line = {"proposals": _streamed(state), "allocation": options, "reason": reason, **said}
    return _decided(state, chosen, reason) | {
        **stream_line(runtime, state["steps"], step="allocate", **line),
        # A wish ends the episode only if it leaves nobody anything to do.
        "forbidden": forbidden if all(option.kind == "wait" for option in chosen) else "",
        "members": _informed(state, beliefs, team, chosen),
        "stuck": {name: str(macro_of(option)) for name, option in lapsed.items() if option is not None},
        "answered_by": [f"manager: {asked.responder}"],
    }


def _left_to_the_members(state: State, runtime: HouseholdRuntime, why: str, fallbacks: int) -> Update:
    """Let the members follow their proposals after an unusable answer; count the round as unallocated."""
    line = stream_line(runtime, state["steps"], step="allocate", proposals=_streamed(state), fallback=why)
    proposed = [option_of(each) for each in in_order(state)]
    counters = Counters(unallocated=1, fallbacks=fallbacks)
    return _decided(state, proposed, f"{FALLBACK}{why}") | {"counters": counters} | line


def _lapsed(state: State, runtime: HouseholdRuntime, report: Report) -> Option | None:
    """Return a member's random action in a lapse, continued or new; None without a lapse."""
    context, worker = runtime.context, report.worker
    kept = state.get("stuck", {}).get(worker.name)
    # A weak manager keeps to what it drew until that is done.
    going = [option for option in report.options if option.under_way and str(macro_of(option)) == kept]
    marks = (context.seed, "manager", worker.number, state["round"])
    at_random = lapse(context.manager_lapses, len(report.options), *marks)
    return going[0] if going else None if at_random is None else report.options[at_random]


def _informed(
    state: State, beliefs: Sequence[Beliefs], team: Beliefs, chosen: Sequence[Option]
) -> list[Member]:
    """Tell each member the place of its action's target, if the manager knows more about it."""
    for known, option in zip(beliefs, chosen, strict=True):
        target = team.things.get(option.target) if option.target is not None else None
        if target is not None:  # nothing else of what the manager knows
            known.merge(Beliefs(agent=-1, things={target.id: target}))
    return with_beliefs(state["members"], beliefs)


async def execute(state: State, runtime: HouseholdRuntime) -> Update:
    """Translate the joint action into low-level steps; keep the results for the next synopsis."""
    update = await household.execute(state, runtime)
    if not runtime.context.summary:
        return update
    return update | {"actions": [*state["actions"], *deeds(state, update)]}


@with_counters
async def summarise(state: State, runtime: HouseholdRuntime) -> Update:
    """Condense the events since the last change into one synopsis (algorithm 1, lines 11 to 16)."""
    beliefs = beliefs_of(state["members"])
    team = together([since(known, state["last_step"] + 1) for known in beliefs])
    given = passage_of(state, beliefs, team)
    try:
        # In the lane of the user: the next allocation waits for the synopsis.
        asked = await ask(summarise_passage, given, runtime.context.manager, lane="user")
    except BadAnswer as bad:
        line = stream_line(runtime, state["steps"], step="summarise", fallback=str(bad))
        return {"counters": Counters(fallbacks=1)} | line  # the record is kept for the next synopsis
    line = stream_line(runtime, state["steps"], step="summarise", synopsis=asked.value.narrative)
    by = {"answered_by": [f"manager: {asked.responder}"]}
    return _appended(state, asked.value, given.change, team) | by | line


def _appended(state: State, synopsis: Synopsis, change: str, team: Beliefs) -> Update:
    """Add a synopsis to C, shorten C, and begin a new record (algorithm 1, lines 15 and 16)."""
    step = state["steps"]
    dated = DatedSynopsis(
        step=step,
        change=change,
        synopsis=as_json(synopsis),
        known=as_json(named_in(synopsis, team)),
    )
    return {
        "last": state["assessed"],
        "last_step": step,
        "actions": [],
        "synopses": kept_short([*state["synopses"], dated], team, outdated_in(state)),
    }


async def finish(state: State, runtime: HouseholdRuntime) -> Update:
    """Report the end of the episode; on request, store its lessons for later episodes."""
    if runtime.context.remember:
        remembered = taught_by(state)
        source = Source(tasks=[remembered.episode])
        change = Change(reason=f"played in {state['steps']} steps", actor="manager", source=source)
        change = made_from(change, state.get("shared", []))
        await memory_of(state["episode"], runtime).keep(remembered, change=change)
    runtime.stream_writer({"step": "finish", "success": state["success"], "steps": state["steps"]})
    return {}


def negotiations(state: State, runtime: HouseholdRuntime) -> Literal["finish"] | list[Send]:
    """Ask all members for their proposals concurrently; end if the episode is over."""
    if state["over"]:
        return "finish"
    world, beliefs = world_of(state), beliefs_of(state["members"])
    proposed_in = state.get("proposed_in", {})
    return [
        Send(
            "negotiate",
            ProposalRequest(round=state["round"], situation=situation, proposed_in=proposed_in.get(name, "")),
        )
        for number, name in zip(range(len(beliefs)), AGENT_NAMES, strict=False)  # there are more names
        for situation in [situation_of(state, runtime, world, beliefs, number)]
    ]


@with_counters
async def negotiate(state: ProposalRequest, runtime: HouseholdRuntime) -> Update:
    """Negotiation: ask a member for its next action (eq. 2), if it has a choice and something is new."""
    situation = Situation.model_validate(state["situation"])
    if len(situation.options) == 1:
        return _proposed(situation, situation.options[0], "I have no other option.")
    going = [option for option in situation.options if option.under_way]
    if going and mark_of(situation) == state["proposed_in"]:
        return _proposed(situation, going[0], "Nothing has changed for me: I go on.")
    try:
        asked = await ask(propose_action, situation, runtime.context.member)
    except BadAnswer as bad:
        option = situation.options[fallback(situation.options)]
        return _proposed(situation, option, f"{FALLBACK}{bad}") | {"counters": Counters(fallbacks=1)}
    marks = (runtime.context.seed, "member", situation.me, state["round"])
    at_random = lapse(runtime.context.member_lapses, len(situation.options), *marks)
    choice = asked.value.choice if at_random is None else at_random
    proposal = _proposed(situation, situation.options[choice], asked.value.reason)
    return proposal | {"answered_by": [f"member: {asked.responder}"]}


def _proposed(situation: Situation, option: Option, reason: str) -> Update:
    mark = mark_of(situation)
    return {"proposals": [Proposed(member=situation.me, reason=reason, option=as_json(option), mark=mark)]}
