"""Household steps of every method: who is asked, what a member sees, and the effects of its choice.

A round is: everybody perceives, decides, and acts until somebody needs a new plan or sees a thing of the task
that nobody in its room knew of. Decisions and what is said while deciding cost no step of the world; only
`send_message` does.
"""

import asyncio
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TypeVar

from langgraph.types import Overwrite

from mneme.core.errors import BadInput
from mneme.environments.household.beliefs import Beliefs
from mneme.environments.household.episode import Episode, parse_episode
from mneme.environments.household.generator import generate
from mneme.environments.household.macro import Macro, Plan
from mneme.environments.household.play import Event, Frame, advance
from mneme.environments.household.virtualhome.world import VirtualHomeWorld
from mneme.environments.household.world import World
from mneme.nodes.household.context import HouseholdContext, HouseholdRuntime
from mneme.nodes.household.counters import Counters, sum_counters, with_counters
from mneme.nodes.household.eyes import Eyes, check_perception
from mneme.nodes.household.household_state import (
    HouseholdState,
    Member,
    Task,
    Update,
    as_json,
    beliefs_of,
    plans_of,
    seeing_world,
    stream_line,
    with_beliefs,
    world_of,
)
from mneme.nodes.workflow import read_input

CLAIMING = ("goexplore", "gocheck", "gograb")
"""Actions whose target no other member should pursue at the same time."""
WAIT_MACRO = Macro(kind="wait")
DONE, UNDER_WAY = "done", "under way"
HISTORY = 40
"""Maximum entries of a member's history; a view shows the latest of them."""


async def begin(state: HouseholdState, runtime: HouseholdRuntime) -> Update:
    """Set up the episode, given or generated; members know nothing beyond the layout and the task."""
    await check_perception(runtime.context)
    asked = read_input(Task, state)
    if asked["episode"]:
        episode = await asyncio.to_thread(parse_episode, asked["episode"])
    else:
        drawn = (asked["seed"], asked["category"] or None, asked["agents"])
        episode = await asyncio.to_thread(generate, *drawn)
    given = as_json(episode)
    # Else a caller could make the server send requests to addresses inside its network.
    if runtime.server_info is not None and runtime.context.simulator:
        raise BadInput("simulator: a server calls no addresses.", "Play on the machine of the simulator.")
    world = await asyncio.to_thread(_new_world, episode, runtime.context)
    beliefs = [Beliefs(agent=number) for number in range(len(episode.starts))]
    runtime.stream_writer({"step": "begin", "episode": given})
    return {
        "episode": given,
        "digest": sha256(episode.model_dump_json().encode()).hexdigest(),  # the key of `episode_of`'s cache
        "world": world.state(),
        "members": [Member(beliefs=as_json(each), plan=None, history=[], heard=[]) for each in beliefs],
        "finds": {},
        "experience": asked["experience"],
        "decided": [],
        "round": 0,
        "over": False,
        "success": False,
        "steps": 0,
        "progress": world.progress,
        "lines": Overwrite([]),
        "counters": Overwrite({}),
        "answered_by": Overwrite([]),
    }


def _new_world(episode: Episode, context: HouseholdContext) -> World:
    if context.simulator and context.setting == "visual":
        raise BadInput(
            "setting: what VirtualHome's own cameras show is not read.", "Play it in the symbolic setting."
        )
    if context.simulator:
        return VirtualHomeWorld(episode, context.simulator, seed=context.seed)
    kind = seeing_world() if context.setting == "visual" else World
    return kind(episode, seed=context.seed)


@with_counters
async def perceive(state: HouseholdState, runtime: HouseholdRuntime) -> Update:
    """Let each member take in what it sees, and note where things of the task were found."""
    eyes = Eyes.of(runtime.context)
    world, beliefs = world_of(state, eyes), beliefs_of(state["members"])
    finds = dict(state["finds"])  # the first place counts: later ones are where the team put the thing
    seen = await _with_eyes(eyes, lambda: [world.observe(number) for number in range(len(beliefs))])
    for known, observation in zip(beliefs, seen, strict=True):
        known.update(observation)
        for thing in known.objects():
            if thing.relation != "held by":  # note its container's class, or its room
                holder = known.things.get(thing.holder or -1)  # no thing has the id -1
                inside = holder.name if holder and holder.category == "container" else ""
                finds.setdefault(str(thing.id), inside or known.rooms.get(thing.room, ""))
    words, over = [known.words() for known in beliefs], world.done or world.steps >= World.LIMIT
    runtime.stream_writer({"step": "perceive", "time": world.steps, "beliefs": words})
    return {
        "world": world.state(),
        "members": with_beliefs(state["members"], beliefs),
        "finds": finds,
        "round": state["round"] + 1,
        "over": over,
        "success": world.done,
        "steps": world.steps,
        "progress": world.progress,
        **_looked(eyes, Counters(rounds=int(not over))),
    }


T = TypeVar("T")


async def _with_eyes(eyes: Eyes | None, work: Callable[[], T]) -> T:
    """Run work that may ask a model in a separate thread; after a cancellation it asks no more."""
    try:
        return await asyncio.to_thread(work)
    finally:
        if eyes is not None:
            eyes.close()


def _looked(eyes: Eyes | None, counters: Counters) -> Update:
    """Return the counters with the recognised frames added, and the model that recognised them."""
    if eyes is None:
        return {"counters": counters}
    by = [f"eyes: {each.responder}" for each in eyes.answers]
    return {"counters": sum_counters(counters, eyes.counters), "answered_by": by}


@with_counters
async def execute(state: HouseholdState, runtime: HouseholdRuntime) -> Update:
    """Carry out the decisions as low-level steps until a member needs a new plan."""
    eyes = Eyes.of(runtime.context)
    world, beliefs = world_of(state, eyes), beliefs_of(state["members"])
    plans = []  # an unchanged decision continues its plan
    for current, decided in zip(plans_of(state), state["decided"], strict=True):
        is_same = current and current.macro == decided
        plans.append(current if current and is_same else Plan.of(decided, world.episode.goals))
    # Before the run, since it counts what was open or seen at the decision.
    went = _duplication(state, plans, beliefs, world)
    events, frames = await _with_eyes(eyes, lambda: _run(world, plans, beliefs))
    went |= {
        "messages": sum(action.kind == "send" for frame in frames for action in frame.actions),
        "lost_steps": sum(outcome.forestalled for frame in frames for outcome in frame.outcomes),
        "forestalled": sum(event.forestalled for event in events),
    }
    ran = {"frames": [as_json(frame) for frame in frames], "events": [as_json(event) for event in events]}
    return {
        **stream_line(runtime, state["steps"], step="execute", **ran),
        "world": world.state(),
        "members": [
            _after(state, plan, known, events, world) for plan, known in zip(plans, beliefs, strict=True)
        ],
        **_looked(eyes, went),
    }


def _run(world: World, plans: list[Plan], beliefs: Sequence[Beliefs]) -> tuple[list[Event], list[Frame]]:
    """Advance until a plan is over or a thing of the task is seen for the first time."""
    known = {thing.id for each in beliefs for thing in each.objects()}

    def something_new(_: World) -> bool:
        return any(thing.id not in known for each in beliefs for thing in each.objects())

    events, frames = advance(world, plans, beliefs, stop=something_new)
    if frames or world.done or world.steps >= World.LIMIT:
        return events, frames
    # A plan that failed before its first step costs one step, or such rounds would repeat for ever.
    idle = {event.agent for event in events}
    able = [Plan.of(WAIT_MACRO, world.episode.goals) if n in idle else plan for n, plan in enumerate(plans)]
    more, frames = advance(world, able, beliefs, most=1)
    return [*events, *more], frames


def _after(
    state: HouseholdState, plan: Plan, known: Beliefs, events: Sequence[Event], world: World
) -> Member:
    """Return a member with its beliefs, and with the result of its plan in its history."""
    ended = next((e for e in events if e.agent == known.agent and e.kind in ("finished", "failed")), None)
    how = "" if ended is None else DONE if ended.kind == "finished" else f"failed: {ended.why}"
    return Member(
        beliefs=as_json(known),
        plan=None if ended else as_json(plan),
        history=_history(state["members"][known.agent], plan, how, state["steps"])[-HISTORY:],
        heard=[list(message) for message in world.observe(known.agent).messages],
    )


def _history(member: Member, plan: Plan, how: str, before: int) -> list[str]:
    """Add the result of a plan, and of an interrupted plan that it replaced."""
    history, begun = list(member["history"]), before
    # Read from the state, since the run has counted its steps in `plan`, which may be the same plan.
    old = Plan.model_validate(member["plan"]) if member["plan"] else None
    if old is not None and old.steps:
        history = [entry for entry in history if not is_under_way(entry)]
        if old.macro == plan.macro:  # continued over several rounds: one entry for all of them
            begun -= old.steps
        else:
            history.append(f"from step {before - old.steps} to {before}: {old.macro}: interrupted")
    if not plan.steps:  # it failed at once, or what it is for was done already
        how = "needed no step" if how == DONE else how
        return [*history, f"at step {before}: {plan.macro}: {how}"] if how else history
    if not how:
        return [*history, f"since step {begun}: {plan.macro}: {UNDER_WAY}"]
    return [*history, f"from step {begun} to {begun + plan.steps}: {plan.macro}: {how}"]


def is_under_way(entry: str) -> bool:
    """Return whether a history entry belongs to a plan that has not ended."""
    return entry.endswith(UNDER_WAY)


def _duplication(
    state: HouseholdState, plans: Sequence[Plan], beliefs: Sequence[Beliefs], world: World
) -> Counters:
    """Count new plans that share a target with another plan, or whose place was already searched."""
    went = Counters(conflicts=0, redundant=0)
    claims = [plan.macro.target if plan.macro.kind in CLAIMING else None for plan in plans]
    for number, (old, plan) in enumerate(zip(plans_of(state), plans, strict=True)):
        kind, target = plan.macro.kind, plan.macro.target
        if old is not None and old.macro == plan.macro:
            continue  # counted in the round in which it was decided
        others = [*claims[:number], *claims[number + 1 :]]
        went["conflicts"] += claims[number] is not None and claims[number] in others
        is_open = kind == "gocheck" and target in world.open
        is_seen = kind == "goexplore" and any(target in each.room_seen for each in beliefs)
        went["redundant"] += is_open or is_seen
    return went
