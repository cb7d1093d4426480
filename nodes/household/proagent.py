"""ProAgent's steps (Zhang et al., AAAI 2024): watch, plan; perceiving and execution are shared.

Each agent watches its teammates while they are in its room, stores the intentions that it inferred beside the
behaviour that it saw, and corrects intentions that are contradicted (belief correction). The planner
analyses, infers intentions and chooses a skill. No messages.

Simplified: the published verificator checks the skill's preconditions and has a refused plan made anew; here
only skills are offered whose preconditions hold by the agent's knowledge, so none is refused. In the agent's
favour, it also decides anew when it sees a new thing of the task, as MiTa's members may.

An answer that stays unusable costs no episode: the agent continues its action or takes the nearest one, which
is counted as a fallback.
"""

from collections.abc import Mapping
from typing import Annotated

from mneme.environments.household.beliefs import Met
from mneme.environments.household.scene import AGENT_NAMES
from mneme.environments.household.walking import steps_if_known
from mneme.nodes.household.alone import AloneState, Minds, teammates
from mneme.nodes.household.context import HouseholdRuntime
from mneme.nodes.household.counters import with_counters
from mneme.nodes.household.household_state import Update
from mneme.nodes.workflow import Typed
from mneme.prompts.household.household import Spot, View
from mneme.prompts.household.proagent import (
    UNKNOWN_ROOM,
    Observed,
    Plan,
    Scene,
    is_done,
    plan_skill,
)

BEHAVIOURS = 5
"""Number of a teammate's latest behaviours that are kept."""
GRACE = 3
"""Steps beyond its way after which a teammate should have fulfilled the inferred intention."""


class State(AloneState, total=False):
    """Each member's observations of each teammate, and the intention that it infers."""

    minds: Annotated[list[dict[int, Observed]], Typed]
    deciding: list[int]


async def watch(state: State, runtime: HouseholdRuntime) -> Update:
    """Note the teammates' behaviour that each member sees, and correct contradicted intentions."""
    minds = Minds(state, runtime.context.window)
    before = state.get("minds") or [{} for _ in minds.members]
    return {
        "minds": [_watched(minds, number, before[number]) for number in range(len(minds.members))],
        "deciding": minds.deciding(),
    }


def _watched(minds: Minds, number: int, before: Mapping[int, Observed]) -> dict[int, Observed]:
    view, watched = minds.view(number), {}
    for other in teammates(number, minds.members):
        old = before.get(other) or Observed(teammate=other, name=AGENT_NAMES[other])
        met = minds.beliefs[number].others.get(other)
        watched[other] = _corrected(view, _seen(view, old, met) if met else old)
    return watched


def _seen(view: View, old: Observed, met: Met) -> Observed:
    """Record a teammate's behaviour if it is in sight now."""
    if met.step != view.step:
        return old
    names = {item.id: item.name for item in view.items}
    room = next(room.label for room in view.rooms if room.id == met.room)
    held, put = (
        ", ".join(f"<{names.get(thing, 'thing')}> ({thing})" for thing in things)
        for things in (met.hands, [thing for thing in old.hands if thing not in met.hands])
    )
    done = f", has put down {put}" if put else ""
    did = f"in {room}, holds {held or 'nothing'}{done}"
    # An unchanged behaviour is noted once.
    news = [] if old.did and old.did[-1].endswith(did) else [f"step {met.step}: {did}"]
    return old.model_copy(
        update={
            "seen": met.step,
            "room": met.room,
            "hands": met.hands,
            "did": [*old.did, *news][-BEHAVIOURS:],
        }
    )


def _corrected(view: View, observed: Observed) -> Observed:
    """Remove an intention that is fulfilled, or that the teammate's behaviour contradicts."""
    if observed.intended == UNKNOWN_ROOM:
        return observed
    if is_done(view, observed.intended):
        return observed.model_copy(update={"intended": UNKNOWN_ROOM})
    if not (observed.seen == view.step and view.step > observed.due):
        return observed  # out of sight, or not yet due: nothing contradicts the intention
    wrong = [*observed.contradicted, observed.intended]
    return observed.model_copy(update={"intended": UNKNOWN_ROOM, "contradicted": wrong[-BEHAVIOURS:]})


@with_counters
async def plan(state: State, runtime: HouseholdRuntime) -> Update:
    """Let each deciding member analyse, infer intentions and choose a skill."""
    minds = Minds(state, runtime.context.window)
    scenes = {number: _scene(state, minds, number) for number in state["deciding"]}
    plans, _, update = await minds.choose(plan_skill, scenes, runtime)
    return {**update, "minds": _thought(state, scenes, plans)}


def _scene(state: State, minds: Minds, number: int) -> Scene:
    view, words = minds.view(number), minds.beliefs[number].words()
    observed = []
    for each in state["minds"][number].values():  # with the names of inferred targets
        spots = {target: _spot(view, target) for target in (each.intended, *each.contradicted)}
        labels = {target: spot.label for target, spot in spots.items() if spot is not None}
        observed.append(each.model_copy(update={"labels": labels}))
    return Scene(**dict(view), name=AGENT_NAMES[number], belief=words, observed=observed)


def _thought(
    state: State, scenes: Mapping[int, Scene], plans: Mapping[int, Plan]
) -> list[dict[int, Observed]]:
    """Store the intentions that each member infers, and when each should be fulfilled."""
    minds = [dict(each) for each in state["minds"]]  # copies: the state must not change within a node
    for number, plan in plans.items():
        thought, scene = minds[number], scenes[number]
        for intention in plan.intentions:
            old = thought[intention.teammate]
            if old.intended != intention.target:  # an intention that is inferred again keeps its time limit
                worker = next((each for each in scene.workers if each.number == old.teammate), None)
                spot = _spot(scene, intention.target)
                way = 0 if worker is None or spot is None else steps_if_known(scene, worker.corner, spot)
                thought[intention.teammate] = old.model_copy(
                    update={
                        "intended": intention.target,
                        "since": scene.step,
                        "due": (old.seen or scene.step) + way + GRACE,
                    }
                )
    return minds


def _spot(view: View, target: int) -> Spot | None:
    spots: list[Spot] = [*view.rooms, *view.needs, *view.containers, *view.items]
    return next((each for each in spots if each.id == target), None)
