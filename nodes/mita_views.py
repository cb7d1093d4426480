"""What MiTa's members and its manager are given: the view of eq. 2, the cross-agent context of eq. 3."""

from collections.abc import Sequence
from typing import Any

from environments.household.beliefs import Beliefs, Known
from environments.household.scene import NAMES
from nodes import household
from nodes.household import (
    Context,
    beliefs_of,
    episode_of,
)
from nodes.household_views import knowledge_of, options_of, worker_of
from nodes.mita_state import Progress, Proposed, State, Told, in_order, plans_of, since
from prompts.household import Knowledge, Option, Worker
from prompts.mita import (
    CrossContext,
    Report,
    Situation,
    Synopsis,
)


def situation_of(state: State, runtime: Context, beliefs: Sequence[Beliefs], number: int) -> dict[str, Any]:
    """Show a member what it sees, believes, did, heard; its options by its own belief."""
    episode, window = episode_of(state), runtime.context.window
    plans = plans_of(state)
    known = beliefs[number]
    me = worker_of(number, known, plans[number])
    knowledge = knowledge_of(
        episode,
        known,
        [me],
        placed=state["assessed"]["placed"],
        in_hands=state["assessed"]["held"],
        finds=state["finds"],
        found_before=state["found_before"],
    )
    observation = household.world_of(state).observe(number)
    others = [(n, plan) for n, plan in enumerate(plans) if n != number and plan is not None]
    return Situation(
        **dict(knowledge),
        me=number,
        taken=[plan.macro.target for _, plan in others if plan.macro.kind in household.CLAIMING],
        options=options_of(observation, known, knowledge, episode.goals, plans[number]),
        name=NAMES[number],
        task=task_of(knowledge),
        progress=progress_in_words(state["assessed"]),
        observation=seen_since(known, known.step),
        belief=known.words(),
        done="\n".join(state["members"][number]["history"][-window:]),
        dialogue="\n".join(f"{NAMES[n]}: {plan.macro}" for n, plan in others),
    ).model_dump(mode="json")


def task_of(knowledge: Knowledge) -> str:
    return "; ".join(
        f"put {need.wanted} {need.thing} {need.relation} {need.label}" for need in knowledge.needs
    )


def progress_in_words(progress: Progress) -> str:
    placed = ", ".join(f"{name}: {count}" for name, count in progress["placed"].items())
    held = ", ".join(f"{count} {name}" for name, count in progress["held"].items()) or "nothing"
    found = ", ".join(f"{count} {name}" for name, count in progress["found"].items()) or "nothing"
    return f"Placed: {placed}. In hands: {held}. Found so far: {found}."


def seen_since(beliefs: Beliefs, step: int) -> str:
    return since(beliefs, step).words()


def known_to_the_manager(state: State, runtime: Context) -> Beliefs:
    """Put together what the manager knows: the synopses, and what the members report of late."""
    team = Beliefs(agent=-1, step=state["steps"])
    for told in state["synopses"]:
        _recall(team, told)
    oldest = state["steps"] - runtime.context.window
    for known in beliefs_of(state):
        team.rooms = known.rooms
        team.merge(since(known, oldest))
    return team


def _recall(team: Beliefs, told: Told) -> None:
    """Know again what a synopsis says, about what it names."""
    synopsis = Synopsis.model_validate(told["synopsis"])
    named = {each["id"]: Known.model_validate(each) for each in told["named"]}
    recalled = Beliefs(agent=-1, step=told["step"], things=named)
    recalled.checked = dict.fromkeys(synopsis.checked, told["step"])
    recalled.room_seen = dict.fromkeys(synopsis.explored, told["step"])
    team.merge(recalled)


def cross_context_of(
    state: State, runtime: Context, beliefs: Sequence[Beliefs], team: Beliefs
) -> CrossContext:
    """Collect each member's proposal, belief and observation (eq. 3), with C, p and T."""
    episode, plans = episode_of(state), plans_of(state)
    workers = [worker_of(number, known, plans[number]) for number, known in enumerate(beliefs)]
    knowledge = knowledge_of(
        episode,
        team,
        workers,
        placed=state["assessed"]["placed"],
        in_hands=state["assessed"]["held"],
        finds=state["finds"],
        found_before=state["found_before"],
    )
    oldest = state["steps"] - runtime.context.window
    return CrossContext(
        **dict(knowledge),
        task=task_of(knowledge),
        progress=progress_in_words(state["assessed"]),
        synopses="\n".join(Synopsis.model_validate(told["synopsis"]).narrative for told in state["synopses"]),
        members=[
            _report(state, team, knowledge, worker, proposed, seen_since(beliefs[worker.number], oldest))
            for worker, proposed in zip(workers, in_order(state), strict=True)
        ],
    )


def _report(  # noqa: PLR0913, PLR0917
    state: State, team: Beliefs, knowledge: Knowledge, worker: Worker, proposed: Proposed, belief: str
) -> Report:
    """Say of one member what it sees, believes of late and proposes, and what it may do.

    It may do what is possible by what it and the manager know together: a member says so where something
    is not as the manager believes.
    """
    episode = episode_of(state)
    own = beliefs_of(state)[worker.number]
    maps = ("things", "lost", "checked", "room_seen")
    told = own.model_copy(update={name: dict(getattr(own, name)) for name in maps})
    told.merge(team)
    observation = household.world_of(state).observe(worker.number)
    options = options_of(observation, told, knowledge, episode.goals, plans_of(state)[worker.number])
    wish = Option.model_validate(proposed["option"])
    same = [n for n, option in enumerate(options) if (option.kind, option.target) == (wish.kind, wish.target)]
    options = options if same else [*options, wish]
    return Report(
        worker=worker,
        proposal=same[0] if same else len(options) - 1,
        reason=proposed["reason"],
        observation=seen_since(own, own.step),
        belief=belief,
        options=options,
    )
