"""MiTa's negotiation (§3.2, eq. 2): members propose, and in further rounds hear one another and answer."""

import asyncio
from functools import reduce
from typing import Literal

from langgraph.types import Overwrite, Send

from mneme.core.errors import BadAnswer
from mneme.environments.household.scene import NAMES
from mneme.models.asking.asking import ask
from mneme.nodes.household.context import HouseholdRuntime
from mneme.nodes.household.counters import Counters, added, answered, lapse, unusable
from mneme.nodes.household.household_state import Update, as_json, beliefs_of, world_of
from mneme.nodes.household.mita_state import FALLBACK, Asked, Proposed, State, in_order
from mneme.nodes.household.mita_views import hearing, mark_of, situation_of
from mneme.nodes.household.views import macro_of
from mneme.prompts.household.household import Option
from mneme.prompts.household.mita import Situation, propose_action


def negotiations(state: State, runtime: HouseholdRuntime) -> Literal["finish"] | list[Send]:
    """Ask every member for its proposal, all at once; nobody, where the episode is over."""
    if state["over"]:
        return "finish"
    world, beliefs = world_of(state), beliefs_of(state["members"])
    proposed_in = state.get("proposed_in", {})
    return [
        Send(
            "negotiate",
            Asked(round=state["round"], situation=situation, proposed_in=proposed_in.get(name, "")),
        )
        for number, name in zip(range(len(beliefs)), NAMES, strict=False)
        for situation in [situation_of(state, runtime, world, beliefs, number)]
    ]


async def negotiate(state: Asked, runtime: HouseholdRuntime) -> Update:
    """Negotiation: ask a member for its next action (eq. 2), where it has a choice and something is new."""
    situation = Situation.model_validate(state["situation"])
    if (clear := _evident(situation, state["proposed_in"])) is not None:
        return clear
    try:
        return await _asked_for(situation, runtime, state["round"])
    except BadAnswer as bad:
        # Go on with what is under way, else do what is nearest.
        option = min(situation.options, key=lambda each: each.reluctance)
        return _proposed(situation, option, f"{FALLBACK}{bad}") | {"counters": unusable()}


async def _asked_for(situation: Situation, runtime: HouseholdRuntime, *when: int) -> Update:
    """Ask a member for its proposal; in so many cases it lapses. Raises BadAnswer."""
    marks = (runtime.context.seed, "member", situation.me, *when)
    at_random = lapse(runtime.context.member_lapses, len(situation.options), *marks)
    if at_random is not None and runtime.context.lapse_kind == "silent":
        raise BadAnswer("The member said nothing.", raw="")
    asked = await ask(propose_action, situation, runtime.context.member)
    choice = asked.value.choice if at_random is None else at_random
    proposal = _proposed(situation, situation.options[choice], asked.value.reason)
    return proposal | {"counters": answered(asked), "answered_by": [f"member: {asked.responder}"]}


def _evident(situation: Situation, proposed_in: str) -> Update | None:
    """Propose the only option, or what is under way where nothing changed; None where a member is asked."""
    if len(situation.options) == 1:
        return _proposed(situation, situation.options[0], "I have no other option.")
    going = [option for option in situation.options if option.under_way]
    if not going or mark_of(situation) != proposed_in:
        return None
    return _proposed(situation, going[0], "Nothing has changed for me: I go on.")


def _proposed(situation: Situation, option: Option, reason: str) -> Update:
    mark = mark_of(situation)
    return {"proposals": [Proposed(member=situation.me, reason=reason, option=as_json(option), mark=mark)]}


async def answer(state: State, runtime: HouseholdRuntime) -> Update:
    """Let the members hear one another's proposals, and keep or change their own: one more round."""
    world, beliefs, proposals = world_of(state), beliefs_of(state["members"]), in_order(state)
    situations = [
        Situation.model_validate(situation_of(state, runtime, world, beliefs, n)) for n in range(len(beliefs))
    ]
    answers = [
        _answered(state, runtime, hearing(situation, proposals), proposed)
        for situation, proposed in zip(situations, proposals, strict=True)
    ]
    updates = await asyncio.gather(*answers)
    return {
        "turn": state["turn"] + 1,
        "proposals": Overwrite([each["proposals"][0] for each in updates]),
        "counters": reduce(added, (each.get("counters", Counters()) for each in updates)),
        "answered_by": [who for each in updates for who in each.get("answered_by", [])],
    }


async def _answered(
    state: State, runtime: HouseholdRuntime, situation: Situation, proposed: Proposed
) -> Update:
    """Ask a member that has a choice and hears something new; else, or without a usable answer, it stays."""
    news = [f"{each.name} {macro_of(each.option)}" for each in situation.heard]
    if not news or len(situation.options) == 1 or news == proposed.get("heard"):
        return {"proposals": [proposed]}
    try:
        update = await _asked_for(situation, runtime, state["round"], state["turn"])
    except BadAnswer:
        return {"proposals": [{**proposed, "heard": news}], "counters": unusable()}
    return update | {"proposals": [{**each, "heard": news} for each in update["proposals"]]}
