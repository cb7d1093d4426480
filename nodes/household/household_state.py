"""State of a household team between its steps, for every method.

The apartment does not change, so the state holds it once, as given; what changes is small: `World.state` and
the beliefs of each member.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import add
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from mneme.environments.fields import described
from mneme.environments.household.beliefs import Beliefs
from mneme.environments.household.episode import GOAL_CATEGORIES, MAX_AGENTS, Episode, parse_episode
from mneme.environments.household.macro import Macro, Plan
from mneme.environments.household.virtualhome.world import VirtualHomeWorld
from mneme.environments.household.world import World
from mneme.nodes.household.context import HouseholdRuntime
from mneme.nodes.household.counters import Counters, sum_counters
from mneme.nodes.household.eyes import Eyes
from mneme.nodes.workflow import Typed
from mneme.stores.ledger.records import MAX_INT

if TYPE_CHECKING:  # what renders is an extra
    from mneme.environments.household.visual.world import SeeingWorld


def joined(before: Sequence[str], more: Sequence[str]) -> list[str]:
    """Keep each name once."""
    return sorted({*before, *more})


class Task(TypedDict, total=False):
    """An episode to play: given whole, or made from a category, a number of agents and a seed."""

    category: Annotated[
        str,
        Field(
            "",
            description="What is to be done in a generated apartment; empty: the seed decides.",
            examples=["Prepare Tea"],
            json_schema_extra={"enum": ["", *GOAL_CATEGORIES]},
        ),
    ]
    agents: Annotated[int, Field(2, ge=1, le=MAX_AGENTS, description="Members of the team.", examples=[3])]
    seed: Annotated[int, described("Which apartment is generated.", 7, 0, ge=0, le=MAX_INT)]
    episode: Annotated[
        dict[str, Any],
        Field(
            {},
            description="Instead: a whole episode, as `mneme.environments.household` reads it from C-WAH.",
            examples=[
                {"id": "mine/1", "goals": [{"relation": "on", "name": "wine", "target": 72, "count": 1}]}
            ],
        ),
    ]

    experience: Annotated[
        dict[str, dict[str, tuple[int, int]]],
        Field(
            {},
            description="What earlier episodes taught: by class of thing and of place, how many turned up "
            "there, and how often they might have. With `remember`, the team's ledger is asked instead.",
            examples=[{"wine": {"fridge": [6, 20], "kitchencabinet": [1, 80]}}],
        ),
    ]


class Member(TypedDict):
    """One member's knowledge, current plan, history, and the latest messages to it."""

    beliefs: dict[str, Any]
    plan: dict[str, Any] | None
    history: list[str]
    heard: list[list[Any]]


class Ending(TypedDict, total=False):
    """How an episode ended."""

    success: bool
    steps: int
    progress: dict[str, int]
    counters: Annotated[Counters, sum_counters]
    answered_by: Annotated[list[str], joined]


class HouseholdState(Task, Ending, total=False):
    """The episode and its digest, the world, the members, and what they decided last.

    `lines` is all that was streamed of decisions and steps: what a run is replayed from.
    """

    digest: str
    world: dict[str, Any]
    members: list[Member]
    finds: dict[str, str]
    decided: Annotated[list[Macro], Typed]
    round: int
    over: bool
    lines: Annotated[list[dict[str, Any]], add]


Update = dict[str, Any]


def stream_line(runtime: HouseholdRuntime, at: int, **line: Any) -> Update:
    """Stream a line about a decision or steps, with its step, and keep it for the replay."""
    line["at"] = at
    runtime.stream_writer(line)
    return {"lines": [line]}


@dataclass(frozen=True)
class _Given:
    """An episode as the state holds it, known by its digest."""

    digest: str
    episode: Mapping[str, Any] = field(compare=False)  # a dict has no hash, and a cache needs one


@lru_cache(maxsize=64)
def _parsed(given: _Given) -> Episode:
    return parse_episode(given.episode)


def episode_of(state: HouseholdState) -> Episode:
    """Return the episode, parsed once in a process."""
    return _parsed(_Given(state["digest"], state["episode"]))


def world_of(state: HouseholdState, eyes: Eyes | None = None) -> World:
    """Return the world of a state; `eyes` recognise what comes into view."""
    if where := state["world"].get("simulator"):
        return VirtualHomeWorld(episode_of(state), where, state["world"])
    if "eyes" not in state["world"]:
        return World(episode_of(state), state["world"])
    return seeing_world()(episode_of(state), state["world"], recognise=eyes)


def seeing_world() -> "type[SeeingWorld]":
    """Return the world for agents with eyes. Raises MnemeError if the renderer is not installed."""
    from mneme.environments.household.visual.world import SeeingWorld  # noqa: PLC0415  (an extra)

    return SeeingWorld


def beliefs_of(members: Sequence[Member]) -> list[Beliefs]:
    """Return the beliefs of each member."""
    # Made anew for each caller: they change while a node works, and the state must not change with them.
    return [Beliefs.model_validate(member["beliefs"]) for member in members]


def plans_of(state: HouseholdState) -> list[Plan | None]:
    """Return the plan of each member; None for a member without a plan."""
    return [Plan.model_validate(member["plan"]) if member["plan"] else None for member in state["members"]]


def with_beliefs(members: Sequence[Member], beliefs: Sequence[Beliefs]) -> list[Member]:
    """Return the members with their current beliefs."""
    return [{**member, "beliefs": as_json(known)} for member, known in zip(members, beliefs, strict=True)]


def as_json(model: BaseModel) -> dict[str, Any]:
    """Return a model as the state holds it."""
    return model.model_dump(mode="json")
