"""Play plans until somebody needs a new one, and keep a trace that survives a kill."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from environments.household.beliefs import Beliefs
from environments.household.macro import WAIT, Ended, Plan
from environments.household.world import Action, Outcome, World
from mneme.errors import BadInput


class Event(BaseModel):
    """Why a stretch of steps ended for an agent (-1: for all)."""

    kind: Literal["finished", "failed", "message", "done", "limit"]
    agent: int
    why: str = ""


class Frame(BaseModel):
    """One step, for the trace: what each agent did and where it then was."""

    step: int
    rooms: list[int]
    positions: list[tuple[float, float]]
    hands: list[list[int]]
    actions: list[Action]
    outcomes: list[Outcome]
    progress: dict[str, int]


def advance(
    world: World, plans: Sequence[Plan], beliefs: Sequence[Beliefs], most: int = World.LIMIT
) -> tuple[list[Event], list[Frame]]:
    """Step until an agent needs a new plan: it finished, failed, was told something, or the episode is over.

    Plans and beliefs are brought forward in place. At most `most` steps are taken.
    """
    frames: list[Frame] = []
    _perceive(world, beliefs)
    while len(frames) < most:
        if world.done:
            return [Event(kind="done", agent=-1)], frames
        if world.steps >= World.LIMIT:
            return [Event(kind="limit", agent=-1, why=f"{World.LIMIT} steps")], frames
        events, actions = _decide(world, plans, beliefs, heard=bool(frames))
        if events:
            return events, frames
        outcomes = world.step(actions)
        _perceive(world, beliefs)
        frames.append(_frame(world, actions, outcomes))
    return [], frames


def _perceive(world: World, beliefs: Sequence[Beliefs]) -> None:
    for agent, known in enumerate(beliefs):
        known.update(world.observe(agent))


def _decide(
    world: World, plans: Sequence[Plan], beliefs: Sequence[Beliefs], heard: bool
) -> tuple[list[Event], list[Action]]:
    events: list[Event] = []
    actions: list[Action] = []
    for agent, plan in enumerate(plans):
        observation = world.observe(agent)
        if heard and observation.messages:
            events.append(Event(kind="message", agent=agent, why=observation.messages[0][1]))
        after = plan.model_copy()
        step = after.next(observation, beliefs[agent])
        if isinstance(step, Ended):
            events.append(Event(kind="finished" if step.ok else "failed", agent=agent, why=step.why))
        else:
            actions.append(step)
    if events:
        return events, [WAIT]
    for agent, plan in enumerate(plans):
        plan.next(world.observe(agent), beliefs[agent])
    return [], actions


def _frame(world: World, actions: Sequence[Action], outcomes: Sequence[Outcome]) -> Frame:
    return Frame.model_construct(
        step=world.steps,
        rooms=[body.room for body in world.agents],
        positions=[body.position for body in world.agents],
        hands=[list(body.hands) for body in world.agents],
        actions=list(actions),
        outcomes=list(outcomes),
        progress=world.progress,
    )


class Trace:
    """Append what happens to a file of JSON Lines, each line whole and on disk before the next."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def append(self, kind: str, **values: Any) -> None:
        """Write one line: its kind ("episode", "step", "decision", …) and plain values."""
        with self.path.open("a", encoding="utf-8") as out:
            out.write(json.dumps({"kind": kind, **values}, ensure_ascii=False) + "\n")

    def frame(self, frame: Frame) -> None:
        """Write one step."""
        self.append("step", **frame.model_dump(mode="json"))

    def read(self) -> Iterator[dict[str, Any]]:
        """Read the lines back; a last line cut short by a kill is left out."""
        if not self.path.exists():
            raise BadInput(f"There is no trace at {self.path}.", "Name the file that a run wrote.")
        lines = self.path.read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines):
            if number == len(lines) - 1:
                return
            yield json.loads(line)
