"""Carry out plans until an agent needs a new one."""

from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel

from mneme.environments.household.acting import Action, ActionResult, Observation
from mneme.environments.household.beliefs import Beliefs
from mneme.environments.household.macro import Ended, Plan
from mneme.environments.household.world import World


class Event(BaseModel):
    """Why a sequence of steps ended for an agent (-1: for all)."""

    kind: Literal["finished", "failed", "message", "done", "limit", "stopped"]
    agent: int
    why: str = ""
    forestalled: bool = False
    """Whether a plan failed since another agent had taken or moved its thing."""


class Frame(BaseModel):
    """One step, for the trace: what each agent did and where it then was."""

    step: int
    rooms: list[int]
    positions: list[tuple[float, float]]
    hands: list[list[int]]
    actions: list[Action]
    outcomes: list[ActionResult]
    progress: dict[str, int]


Stop = Callable[[World], bool]


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
        seen = _perceive(world, beliefs)
        turns = [
            plan.next(view, known, world.layout)
            for plan, view, known in zip(plans, seen, beliefs, strict=True)
        ]
        news = _news(world, seen, stop) if frames else []
        over, ended = _over(world), _ended(turns)
        finished = [event for event in ended if event.kind == "finished"]
        events = [*over, *finished] if over else [*news, *ended]
        if events or len(frames) >= most:
            return events, frames
        frames.append(_stepped(world, plans, beliefs, seen, turns))


def _news(world: World, seen: Sequence[Observation], stop: Stop | None) -> list[Event]:
    """Return the events of a step that are no plan's end: the caller's stop, and messages."""
    stopped = [Event(kind="stopped", agent=-1)] if stop and stop(world) else []
    return [*stopped, *_messages(seen)]


def _stepped(
    world: World,
    plans: Sequence[Plan],
    beliefs: Sequence[Beliefs],
    seen: Sequence[Observation],
    turns: Sequence[Action | Ended],
) -> Frame:
    """Let every agent act once and update its plan; no plan may have ended."""
    actions = [turn for turn in turns if isinstance(turn, Action)]
    for plan, action, observation, known in zip(plans, actions, seen, beliefs, strict=True):
        plan.took(action, observation, known)
    outcomes = world.step(actions)
    for action, outcome, known in zip(actions, outcomes, beliefs, strict=True):
        if outcome.ok:
            known.did(action, world.steps)
    return _frame(world, actions, outcomes)


def _perceive(world: World, beliefs: Sequence[Beliefs]) -> list[Observation]:
    seen = [world.observe(agent) for agent in range(len(world.agents))]
    for known, observation in zip(beliefs, seen, strict=True):
        known.update(observation)
    return seen


def _over(world: World) -> list[Event]:
    if world.done:
        return [Event(kind="done", agent=-1)]
    if world.steps >= World.LIMIT:
        return [Event(kind="limit", agent=-1, why=f"{World.LIMIT} steps")]
    return []


def _messages(seen: Sequence[Observation]) -> list[Event]:
    return [
        Event(kind="message", agent=observation.agent, why=text)
        for observation in seen
        for _, text in observation.messages
    ]


def _ended(turns: Sequence[Action | Ended]) -> list[Event]:
    return [
        Event(
            kind="finished" if turn.ok else "failed", agent=agent, why=turn.why, forestalled=turn.forestalled
        )
        for agent, turn in enumerate(turns)
        if isinstance(turn, Ended)
    ]


def _frame(world: World, actions: Sequence[Action], outcomes: Sequence[ActionResult]) -> Frame:
    return Frame(
        step=world.steps,
        rooms=[body.room for body in world.agents],
        positions=[body.position for body in world.agents],
        hands=[list(body.hands) for body in world.agents],
        actions=list(actions),
        outcomes=list(outcomes),
        progress=world.progress,
    )
