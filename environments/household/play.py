"""Carry out plans until an agent needs a new one."""

from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel

from mneme.environments.household.acting import Action, ActionResult, Observation
from mneme.environments.household.beliefs import Beliefs
from mneme.environments.household.macro import MacroEnd, Plan
from mneme.environments.household.world import World


class Event(BaseModel):
    """Reason why a sequence of steps ended for an agent (-1: for all)."""

    kind: Literal["finished", "failed", "message", "done", "limit", "stopped"]
    agent: int
    why: str = ""
    forestalled: bool = False
    """Whether a plan failed since another agent had taken or moved its object."""


class Frame(BaseModel):
    """One step, for the trace: each agent's action and its position afterwards."""

    step: int
    rooms: list[int]
    positions: list[tuple[float, float]]
    hands: list[list[int]]
    actions: list[Action]
    outcomes: list[ActionResult]
    progress: dict[str, int]


Stop = Callable[[World], bool]
LIMIT_REASON = f"{World.LIMIT} steps"


def advance(
    world: World,
    plans: Sequence[Plan],
    beliefs: Sequence[Beliefs],
    most: int = World.LIMIT,
    stop: Stop | None = None,
) -> tuple[list[Event], list[Frame]]:
    """Step until an agent needs a new plan (it finished, failed or got a message) or the episode is over.

    Plans and beliefs are updated in place. At most `most` steps are taken; `stop` is asked after
    each, when beliefs are up to date.
    """
    frames: list[Frame] = []
    while True:
        seen = [world.observe(agent) for agent in range(len(world.agents))]
        for known, observation in zip(beliefs, seen, strict=True):
            known.update(observation)
        turns = [
            plan.next(view, known, world.layout)
            for plan, view, known in zip(plans, seen, beliefs, strict=True)
        ]
        events = _events(world, seen, turns, bool(frames and stop and stop(world)), bool(frames))
        if events or len(frames) >= most:
            return events, frames
        frames.append(_stepped(world, plans, beliefs, seen, turns))


def _events(
    world: World,
    seen: Sequence[Observation],
    turns: Sequence[Action | MacroEnd],
    stopped: bool,
    has_stepped: bool,
) -> list[Event]:
    """Return why the agents need new plans: the end of all, the caller's stop, messages, ends of plans."""
    ended = [
        Event(
            kind="finished" if turn.ok else "failed", agent=agent, why=turn.why, forestalled=turn.forestalled
        )
        for agent, turn in enumerate(turns)
        if isinstance(turn, MacroEnd)
    ]
    if world.done or world.steps >= World.LIMIT:
        over = Event(kind="done", agent=-1) if world.done else Event(kind="limit", agent=-1, why=LIMIT_REASON)
        return [over, *(event for event in ended if event.kind == "finished")]  # what failed needs no plan
    # Before the first step, the messages are those that ended the last call.
    messages = [(view.agent, text) for view in seen for _, text in view.messages] if has_stepped else []
    told = [Event(kind="message", agent=agent, why=text) for agent, text in messages]
    return [*([Event(kind="stopped", agent=-1)] if stopped else []), *told, *ended]


def _stepped(
    world: World,
    plans: Sequence[Plan],
    beliefs: Sequence[Beliefs],
    seen: Sequence[Observation],
    turns: Sequence[Action | MacroEnd],
) -> Frame:
    """Let every agent act once and update its plan; no plan may have ended."""
    actions = [turn for turn in turns if isinstance(turn, Action)]
    for plan, action, observation, known in zip(plans, actions, seen, beliefs, strict=True):
        plan.took(action, observation, known)
    outcomes = world.step(actions)
    for action, outcome, known in zip(actions, outcomes, beliefs, strict=True):
        if outcome.ok:
            known.did(action, world.steps)
    return Frame(
        step=world.steps,
        rooms=[body.room for body in world.agents],
        positions=[body.position for body in world.agents],
        hands=[list(body.hands) for body in world.agents],
        actions=actions,
        outcomes=outcomes,
        progress=world.progress,
    )
