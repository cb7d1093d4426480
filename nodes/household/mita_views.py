"""What MiTa's members and its manager are given: the view of eq. 2, the cross-agent context of eq. 3."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from mneme.environments.household.beliefs import Beliefs, Known
from mneme.environments.household.scene import NAMES
from mneme.environments.household.world import World
from mneme.nodes.household.context import HouseholdRuntime
from mneme.nodes.household.household import CLAIMING
from mneme.nodes.household.household_state import beliefs_of, episode_of, plans_of, world_of
from mneme.nodes.household.mita_state import (
    Proposed,
    State,
    in_order,
    in_words,
    option_of,
    since,
    wanted_in,
)
from mneme.nodes.household.views import knowledge_of, options_of, worker_of
from mneme.prompts.household.household import Knowledge, Option, Worker
from mneme.prompts.household.mita import CrossContext, Heard, Report, Situation

MOST_USUAL = 4
"""Kinds of places that are named for a class of things."""


def situation_of(
    state: State, runtime: HouseholdRuntime, world: World, beliefs: Sequence[Beliefs], number: int
) -> dict[str, Any]:
    """Show a member what it sees, believes, did, heard; its options by its own belief."""
    plans, known = plans_of(state), beliefs[number]
    knowledge = _with_progress(state, known, [worker_of(number, known, plans[number])])
    others = {n: plan.macro for n, plan in enumerate(plans) if n != number and plan is not None}
    said = {name: f", {why}" for name, why in state.get("said", {}).items() if why}
    return Situation(
        **dict(knowledge),
        me=number,
        options=_options_of(state, world, known, knowledge, number),
        taken=[each.target for each in others.values() if each.kind in CLAIMING and each.target is not None],
        name=NAMES[number],
        task=task_of(knowledge),
        progress=progress_in_words(state),
        observation=seen_now(known),
        belief=in_lines(*known.sights(last=known.step - 1), known.explored(), known.unexplored()),
        done="\n".join(state["members"][number]["history"][-runtime.context.window :]),
        dialogue=in_lines(
            *(f"{NAMES[n]} does {each}{said.get(NAMES[n], '')}" for n, each in others.items()),
            state.get("overruled", {}).get(NAMES[number], ""),
        ),
        usual=usual_places(state),
    ).model_dump(mode="json")


def hearing(situation: Situation, proposals: Sequence[Proposed]) -> Situation:
    """Let a member hear what the others propose anew; of what they go on with it has heard already.

    A model keeps nothing from question to question, so its own proposal is told, too.
    """
    own = next(each for each in proposals if each["member"] == situation.me)
    heard = [
        Heard(member=each["member"], name=NAMES[each["member"]], option=option, reason=each["reason"])
        for each in proposals
        for option in [option_of(each)]
        if each["member"] != situation.me and not option.under_way
    ]
    mine = f"You proposed {option_of(own)}: {own['reason']}"
    return situation.model_copy(update={"heard": heard, "proposals": in_lines(mine, *map(str, heard))})


def mark_of(situation: Situation) -> str:
    """Tell situations apart: by what a member may do, the progress, and what the team said last."""
    may = sorted((option.kind, option.target or 0) for option in situation.options)
    return sha256(repr((may, situation.progress, situation.dialogue)).encode()).hexdigest()[:16]


def _with_progress(state: State, beliefs: Beliefs, workers: Sequence[Worker]) -> Knowledge:
    """Say what beliefs come to, with the progress that the whole team is told."""
    return knowledge_of(
        episode_of(state),
        beliefs,
        workers,
        placed=state["assessed"]["placed"],
        in_hands=state["assessed"]["held"],
        finds=state["finds"],
        experience=state.get("experience", {}),
    )


def _options_of(
    state: State, world: World, beliefs: Beliefs, knowledge: Knowledge, number: int
) -> list[Option]:
    """List what a member may do; what the progress shows to be needless is offered to who is at it alone."""
    observation, episode = world.observe(number), episode_of(state)
    options = options_of(observation, beliefs, knowledge, episode.goals, plans_of(state)[number])
    missing, all_found = knowledge.missing(), state["assessed"]["found"] == wanted_in(episode)
    return [
        option
        for option in options
        if option.under_way
        or (
            not (option.kind == "gocheck" and all_found)
            and not (option.kind == "gograb" and missing[option.name] <= 0)
        )
    ]


def task_of(knowledge: Knowledge) -> str:
    return "; ".join(
        f"put {need.wanted} {need.thing} {need.relation} {need.label}" for need in knowledge.needs
    )


def progress_in_words(state: State) -> str:
    """Say how far the team is, and of how many."""
    progress, episode = state["assessed"], episode_of(state)
    counts, wanted = {goal.key: goal.count for goal in episode.goals}, wanted_in(episode)
    placed = ", ".join(f"{key}: {count} of {counts[key]}" for key, count in progress["placed"].items())
    held = ", ".join(f"{count} {name}" for name, count in progress["held"].items()) or "nothing"
    found = ", ".join(f"{progress['found'].get(name, 0)} of {count} {name}" for name, count in wanted.items())
    return f"Placed: {placed}. In hands: {held}. Found so far: {found}."


def seen_now(beliefs: Beliefs, *, with_shut: bool = True) -> str:
    """Say what an agent perceives at this step; without `with_shut`, not which containers are shut."""
    return in_lines(beliefs.position_in_words(), *beliefs.sights(beliefs.step, with_shut=with_shut))


def usual_places(state: State) -> str:
    """Say of each class that is wanted where most of it turned up in earlier episodes, and how often."""
    return in_lines(
        *(
            f"{name}: {', '.join(f'{place} {found} times of {of}' for place, (found, of) in best)}."
            for name in wanted_in(episode_of(state))
            for best in [_most_found(state.get("experience", {}).get(name, {}))]
            if best
        )
    )


def _most_found(places: Mapping[str, tuple[int, int]]) -> list[tuple[str, tuple[int, int]]]:
    seen = [(place, counted) for place, counted in places.items() if counted[0]]
    return sorted(seen, key=lambda each: -each[1][0] / max(1, each[1][1]))[:MOST_USUAL]


def in_lines(*sentences: str) -> str:
    """Put each sentence on a line of its own."""
    return "\n".join(sentence for sentence in sentences if sentence)


def known_to_the_manager(state: State, runtime: HouseholdRuntime) -> Beliefs:
    """Put together what the manager knows: the synopses, and what the members report of late.

    A proposal tells where its target is, however long ago the member saw it.
    """
    team = Beliefs(agent=-1, step=state["steps"])
    for dated in state["synopses"]:
        synopsis = dated["synopsis"]
        recalled = Beliefs(agent=-1, step=dated["step"], things=things_of(dated["named"]))
        seen = dated.get("seen", {})  # runs of earlier versions have none: then as of the synopsis
        recalled.checked = {each: seen.get(str(each), dated["step"]) for each in synopsis["checked"]}
        recalled.room_seen = {each: seen.get(str(each), dated["step"]) for each in synopsis["explored"]}
        team.merge(recalled)
    oldest = state["steps"] - runtime.context.window
    for known in beliefs_of(state["members"]):
        team.rooms = known.rooms
        team.merge(since(known, oldest))
        targets = [each["option"]["target"] for each in state["proposals"] if each["member"] == known.agent]
        named = {target: known.things[target] for target in targets if target in known.things}
        team.merge(Beliefs(agent=known.agent, things=named))
    return team


def things_of(pieces: Iterable[Mapping[str, Any]]) -> dict[int, Known]:
    """Return things and furniture that were kept as JSON, by their ids."""
    return {each["id"]: Known.model_validate(each) for each in pieces}


def cross_context_of(
    state: State, runtime: HouseholdRuntime, beliefs: Sequence[Beliefs], team: Beliefs
) -> CrossContext:
    """Collect each member's proposal, belief and observation (eq. 3), with C, p and T."""
    workers = [
        worker_of(number, known, plan)
        for number, (known, plan) in enumerate(zip(beliefs, plans_of(state), strict=True))
    ]
    knowledge = _with_progress(state, team, workers)
    oldest, world = state["steps"] - runtime.context.window, world_of(state)
    return CrossContext(
        **dict(knowledge),
        task=task_of(knowledge),
        progress=progress_in_words(state),
        synopses="\n".join(in_words(dated) for dated in state["synopses"]),
        usual=usual_places(state),
        members=[
            _report(worker, beliefs[worker.number], proposed, options, oldest)
            for worker, proposed in zip(workers, in_order(state), strict=True)
            for options in [_offered(state, world, team, knowledge, worker.number)]
        ],
    )


def _offered(state: State, world: World, team: Beliefs, knowledge: Knowledge, number: int) -> list[Option]:
    """List what a member may do by what it and the manager know together.

    A member says so where something is not as the manager believes. What it proposed is among it.
    """
    beliefs = beliefs_of(state["members"])[number]
    beliefs.merge(team)
    options = _options_of(state, world, beliefs, knowledge, number)
    wish = option_of(in_order(state)[number])
    return options if any(_same(option, wish) for option in options) else [*options, wish]


def _same(one: Option, other: Option) -> bool:
    return (one.kind, one.target) == (other.kind, other.target)


def _report(
    worker: Worker, own: Beliefs, proposed: Proposed, options: Sequence[Option], oldest: int
) -> Report:
    """Say of one member what it sees, believes of late and proposes, and what it may do.

    Containers that it sees or believes to be shut stand among its options, and are not said again.
    """
    wish = option_of(proposed)
    return Report(
        worker=worker,
        proposal=next(number for number, option in enumerate(options) if _same(option, wish)),
        reason=proposed["reason"],
        observation=seen_now(own, with_shut=False),
        belief=in_lines(*own.sights(oldest, own.step - 1, with_shut=False), own.explored(oldest)),
        options=list(options),
    )
