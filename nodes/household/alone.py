"""Shared steps of the decentralised methods: each member decides from its own beliefs alone.

A member decides when its plan has ended, when it receives a message, and when it sees a new thing of the
task; else its plan continues. If only one action is possible (both hands full: put), no model is asked.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import BaseModel

from mneme.core.errors import BadAnswer
from mneme.environments.household.beliefs import Beliefs
from mneme.environments.household.scene import AGENT_NAMES
from mneme.environments.household.world import World
from mneme.models.asking.asking import ask
from mneme.nodes.household.context import HouseholdRuntime
from mneme.nodes.household.counters import Counters, lapse
from mneme.nodes.household.household_state import (
    HouseholdState,
    Update,
    beliefs_of,
    plans_of,
    stream_line,
    world_of,
)
from mneme.nodes.household.views import knowledge_of, macro_of, options_of, worker_of
from mneme.prompts.household import coela, proagent
from mneme.prompts.household.household import Option, View, Worker
from mneme.prompts.prompt import Prompt

Given = TypeVar("Given", bound=BaseModel)
Value = TypeVar("Value", bound=BaseModel)
Choice = TypeVar("Choice", coela.Choice, proagent.Plan)


class AloneState(HouseholdState, total=False):
    """The household's state, and the things that each member knew at its last decision."""

    known: list[list[int]]


class Minds:
    """The members of a state as they are about to decide: their beliefs, plans and views."""

    def __init__(self, state: AloneState, window: int) -> None:
        self.members, self.window = state["members"], window
        self.world: World = world_of(state)
        self.beliefs: list[Beliefs] = beliefs_of(state["members"])
        self.plans = plans_of(state)
        self._known = state.get("known") or [[] for _ in self.members]

    @property
    def known(self) -> list[list[int]]:
        """Return the things of the task that each member knows of."""
        return [sorted(thing.id for thing in each.objects()) for each in self.beliefs]

    def deciding(self) -> list[int]:
        """Return the members that decide now."""
        news = [set(now) - set(before) for now, before in zip(self.known, self._known, strict=True)]
        return [
            number
            for number, member in enumerate(self.members)
            if self.plans[number] is None or member["heard"] or news[number]
        ]

    def view(self, number: int) -> View:
        """Return one member's knowledge and possible actions."""
        beliefs, plan, episode = self.beliefs[number], self.plans[number], self.world.episode
        centers = self.world.layout.centers
        met = [  # teammates as last seen; positions in a room are not stored, so its middle
            Worker(
                number=other,
                name=AGENT_NAMES[other],
                room=seen.room,
                x=centers[seen.room][0],
                z=centers[seen.room][1],
                hands=seen.hands,
            )
            for other, seen in beliefs.others.items()
        ]
        workers = [worker_of(number, beliefs, plan), *met]
        knowledge = knowledge_of(episode, beliefs, sorted(workers, key=lambda each: each.number))
        observation = self.world.observe(number)
        options = options_of(observation, beliefs, knowledge, episode.goals, plan)
        history = self.members[number]["history"][-self.window :]
        return View(**dict(knowledge), me=number, options=options, history=history)

    def team(self, number: int) -> str:
        """Describe where a member last saw its teammates, and what they held."""
        beliefs, things = self.beliefs[number], self.world.things
        lines = {
            other: f"in the {beliefs.rooms[met.room]} at step {met.step}, holding "
            + (" and ".join(f"<{things[held].name}> ({held})" for held in met.hands) or "nothing")
            for other, met in beliefs.others.items()
        }
        others = teammates(number, self.members)
        return "\n".join(f"{AGENT_NAMES[other]}: {lines.get(other, 'not seen yet')}" for other in others)

    async def choose(
        self, question: Prompt[Any, Choice], given: Mapping[int, View], runtime: HouseholdRuntime
    ) -> tuple[dict[int, Choice], dict[int, Option], Update]:
        """Ask members that have a choice for their next action; return answers, actions and the update.

        In a lapse an action is drawn; without a usable answer it is the one under way, or the nearest.
        """
        context, answers = runtime.context, Answers()
        asked = {number: each for number, each in given.items() if len(each.options) > 1}
        made = await answers.ask_each(question, asked, context.member)
        choices = {}
        for number, view in given.items():
            option = made[number].option if number in made else fallback(view.options)
            marks = (context.seed, self.world.steps, number, "member")
            # A member without a usable answer has its fallback, and no lapse besides.
            drawn = lapse(context.member_lapses, len(view.options), *marks) if number in made else None
            choices[number] = view.options[option if drawn is None else drawn]
        return made, choices, self.decided(choices, runtime, **answers.fallbacks) | answers.update

    def decided(self, choices: dict[int, Option], runtime: HouseholdRuntime, **more: Any) -> Update:
        """Return the actions of all members: the choices of those that chose; the others continue."""
        shown = {AGENT_NAMES[number]: str(option) for number, option in choices.items()}
        going = {number: plan.macro for number, plan in enumerate(self.plans) if plan is not None}
        macros = going | {number: macro_of(option) for number, option in choices.items()}
        everybody = [macros[number] for number in range(len(self.members))]
        line = stream_line(runtime, self.world.steps, step="plan", choices=shown, **more)
        return {"decided": everybody, "known": self.known, **line}


@dataclass
class Answers:
    """The members that answered in one step of the graph, and why other answers stayed unusable."""

    by: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    async def ask_each(
        self, question: Prompt[Given, Value], given: Mapping[int, Given], who: str
    ) -> dict[int, Value]:
        """Ask several members at once; return the answers that are usable, by their numbers."""

        async def answer(each: Given) -> Value | None:
            try:
                got = await ask(question, each, who)
            except BadAnswer as bad:  # the episode goes on: only this member falls back
                self.lost.append(str(bad))
                return None
            self.by.append(got.responder)
            return got.value

        values = await asyncio.gather(*map(answer, given.values()))
        answered = zip(given, values, strict=True)
        return {number: value for number, value in answered if value is not None}

    @property
    def update(self) -> Update:
        """Return the update for the state: who answered, and the number of fallbacks."""
        return {"counters": Counters(fallbacks=len(self.lost)), "answered_by": self.by}

    @property
    def fallbacks(self) -> dict[str, list[str]]:
        """Return the report of fallbacks for the run's stream; empty without any."""
        return {"fallback": self.lost} if self.lost else {}


def fallback(options: Sequence[Option]) -> int:
    """Choose without an answer: continue the action under way, else take the nearest."""
    return min(range(len(options)), key=lambda number: options[number].reluctance)


def teammates(number: int, members: Sequence[Any]) -> list[int]:
    """Return the numbers of a member's teammates."""
    return [other for other in range(len(members)) if other != number]


def is_over(state: HouseholdState) -> bool:
    """Return whether the episode has ended, by success or by the limit of steps."""
    return state["over"]
