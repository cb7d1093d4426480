"""MHP's steps (Puig et al., ICLR 2021): update the belief, search over subgoals, walk on; no language model.

The belief has a place for every wanted thing that was not seen: one of the containers that are not open or
of the rooms that were not entered, drawn uniformly and kept until it is contradicted, then drawn anew (one
particle, as in the published runs). On that sample the search (`mhp_search.py`) chooses a subgoal,
which stays until it is done or no longer open; its first low-level plan is a macro action here.

An agent considers its teammates only by what it sees them hold and what they have put: MHP has no model of
them in C-WAH's runs, where both agents plan for the same goal.

Simplified: the published belief knows every container from the start; here a container that nobody has seen
is part of its unentered room.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from random import Random

from mneme.environments.household.walking import Corner, steps_to_visit
from mneme.nodes.household.alone import AloneState, Minds
from mneme.nodes.household.context import HouseholdRuntime
from mneme.nodes.household.household_state import Update
from mneme.nodes.household.mhp_search import Item, Need, Situation, Steps, search, subgoals
from mneme.prompts.household.household import Option, View, spots_of

HERE = 0
"""The spot of the agent itself; no thing of the world has this id."""
MAX_OF_A_CLASS = 100


class State(AloneState, total=False):
    """Each member's particle (imagined thing to its place) and the subgoal that it pursues."""

    particles: list[dict[str, int]]
    pursued: list[list[int]]


async def search_subgoals(state: State, runtime: HouseholdRuntime) -> Update:
    """Update every member's belief, and continue its subgoal or search for another."""
    minds = Minds(state, runtime.context.window)
    count = len(minds.members)
    particles = state.get("particles") or [{} for _ in range(count)]
    pursued = state.get("pursued") or [[] for _ in range(count)]
    # Seeded by round and member, so that a replayed step draws the same.
    mark = f"mhp:{runtime.context.seed}:{state['digest']}:{state['round']}"
    plans = await asyncio.to_thread(
        lambda: [
            _plan(minds.view(n), particles[n], pursued[n], Random(f"{mark}:{n}"))  # noqa: S311
            for n in range(count)
        ]
    )
    choices = {number: option for number, (option, _, _) in enumerate(plans)}
    return {
        **minds.decided(choices, runtime),
        "particles": [particle for _, particle, _ in plans],
        "pursued": [subgoal for _, _, subgoal in plans],
    }


def _plan(
    view: View, particle: Mapping[str, int], pursued: list[int], random: Random
) -> tuple[Option, dict[str, int], list[int]]:
    """Return the next action, the particle that it rests on, and the subgoal that it serves."""
    sample = resample(view, particle, random)
    situation = situation_of(view, sample)
    kept = next((each for each in subgoals(situation) if [each.item.id, each.target] == pursued), None)
    plan = [kept] if kept else search(situation, _steps_of(view), random)
    if not plan:
        return view.options[-1], sample, []
    item, target = plan[0]
    wanted = ("goput", target) if item.held else ("gograb", item.id) if item.id > 0 else ("", item.spot)
    fitting = [each for each in view.options if each.target == wanted[1] and wanted[0] in ("", each.kind)]
    return (fitting[0] if fitting else view.options[-1]), sample, [plan[0].item.id, plan[0].target]


def resample(view: View, particle: Mapping[str, int], random: Random) -> dict[str, int]:
    """Return a place for every unseen wanted thing: the old place while it is possible, else another."""
    places = [each.id for each in view.containers if not each.is_open]
    places += [room.id for room in view.rooms if room.seen is None]
    if not places:
        return {}
    loose = [item.name for item in view.items if item.held_by is None and not item.placed]
    slots = [  # the wanted things of which too few are known, such as `wine/1`
        f"{name}/{number}"
        for name, missing in view.missing().items()
        for number in range(missing - loose.count(name))
    ]
    return {slot: particle[slot] if particle.get(slot) in places else random.choice(places) for slot in slots}


def situation_of(view: View, sample: Mapping[str, int]) -> Situation:
    """Return the start of the search: needs that no other member meets, and the things of the sample."""
    hands = set(view.myself.hands)
    loose = [each for each in view.items if each.held_by is None and not each.placed and each.id not in hands]
    items = [Item(each.id, each.name, HERE, False, True, True) for each in view.items if each.id in hands]
    items += [
        Item(each.id, each.name, each.id, False, False, each.room == view.myself.room) for each in loose
    ]
    held = Counter(item.name for item in view.items if item.held_by is not None and item.id not in hands)
    left = [max(0, need.wanted - need.placed - held[need.thing]) for need in view.needs]
    needs = (Need(need.thing, need.id, n, need.is_closed) for need, n in zip(view.needs, left, strict=True))
    return Situation(HERE, tuple(needs), (*items, *_imagined(view, sample)))


def _imagined(view: View, sample: Mapping[str, int]) -> Iterator[Item]:
    rooms = {room.id for room in view.rooms}
    names = [need.thing for need in view.needs]
    for slot, place in sample.items():
        name, _, number = slot.partition("/")
        # A negative number of its own for each slot: things of the world have positive ones.
        imagined = -1 - names.index(name) * MAX_OF_A_CLASS - int(number)
        yield Item(imagined, name, place, place not in rooms, False, False)


def _steps_of(view: View) -> Steps:
    """Return the number of steps between two spots, including one action there."""
    spots = spots_of(view)

    def corner(spot: int) -> Corner:
        return view.myself.corner if spot == HERE else spots[spot].corner

    @cache
    def steps(start: int, end: int) -> int:
        return steps_to_visit(view, corner(start), spots[end])

    return steps
