"""What the members of a household team are shown: beliefs of the world, made into views and options."""

from collections.abc import Mapping, Sequence
from typing import Any

from mneme.environments.household.beliefs import Beliefs, Known, satisfies
from mneme.environments.household.episode import Episode, Goal, Thing
from mneme.environments.household.macro import Macro, Plan, possible
from mneme.environments.household.scene import NAMES
from mneme.environments.household.walking import Corner, steps_into, steps_to_act
from mneme.environments.household.world import HANDS, Observation
from mneme.prompts.household.household import (
    Container,
    Door,
    Item,
    Knowledge,
    Need,
    Option,
    Room,
    Spot,
    Worker,
)

NOWHERE = -1


def worker_of(number: int, beliefs: Beliefs, plan: Plan | None) -> Worker:
    """Say where a member is, what it holds and what it is doing, by what it knows itself."""
    return Worker(
        number=number,
        name=NAMES[number],
        room=beliefs.room,
        x=beliefs.position[0],
        z=beliefs.position[1],
        hands=beliefs.hands,
        doing=str(plan.macro) if plan else "",
        promised=plan.macro.target if plan else None,
    )


def knowledge_of(  # noqa: PLR0913  (what may be known beyond one's own beliefs, by its name)
    episode: Episode,
    beliefs: Beliefs,
    workers: Sequence[Worker],
    *,
    placed: Mapping[str, int] | None = None,
    in_hands: Mapping[str, int] | None = None,
    finds: Mapping[str, str] | None = None,
    experience: Mapping[str, Mapping[str, tuple[int, int]]] | None = None,
) -> Knowledge:
    """Say what beliefs come to, with what was announced to all.

    `placed` (by predicate) and `in_hands` (by class) are the progress; `finds` says where things of the task
    turned up, of which those are told that the beliefs know; `experience` is of earlier episodes.
    """
    things, done = episode.by_id(), beliefs.placed(episode.goals) if placed is None else placed
    found: dict[str, list[str]] = {}
    for thing, place in (finds or {}).items():
        if int(thing) in beliefs.things:
            found.setdefault(beliefs.things[int(thing)].name, []).append(place)
    return Knowledge(
        step=beliefs.step,
        needs=[_need(goal, beliefs, things, done) for goal in episode.goals],
        rooms=[
            Room(**_place(each), room=each.id, seen=beliefs.room_seen.get(each.id))
            for each in episode.rooms()
        ],
        doors=[Door(rooms=(first, second), x=at[0], z=at[1]) for first, second, at in episode.doors],
        containers=[
            Container(
                **_place(each),
                room=each.room,
                width=things[each.id].size[0],
                depth=things[each.id].size[2],
                is_open=bool(each.is_open),
                checked=beliefs.checked.get(each.id),
            )
            for each in beliefs.containers()
        ],
        items=[_item(each, beliefs, episode.goals) for each in beliefs.objects()],
        workers=list(workers),
        in_hands=dict(in_hands or {}),
        found=found,
        experience={name: dict(places) for name, places in (experience or {}).items()},
    )


def _place(thing: Thing | Known) -> dict[str, Any]:
    """Return what a thing is called, and where its centre is on the floor."""
    x, _, z = thing.center
    return {"id": thing.id, "name": thing.name, "x": x, "z": z}


def _need(goal: Goal, beliefs: Beliefs, things: Mapping[int, Thing], placed: Mapping[str, int]) -> Need:
    target, known = things[goal.target], beliefs.things.get(goal.target)
    return Need(
        id=goal.target,
        name=target.name,
        room=known.room if known else NOWHERE,
        x=target.center[0] if known else 0.0,
        z=target.center[2] if known else 0.0,
        width=target.size[0],
        depth=target.size[2],
        relation=goal.relation,
        thing=goal.name,
        wanted=goal.count,
        placed=placed.get(goal.key, 0),
        is_closed=known is not None and known.is_open is False,
    )


def _item(known: Known, beliefs: Beliefs, goals: Sequence[Goal]) -> Item:
    holder = beliefs.things.get(known.holder) if known.holder is not None else None
    held = known.relation == "held by"
    return Item(
        **_place(known),
        room=known.room,
        holder="" if held or holder is None else f"{known.relation} <{holder.name}> ({holder.id})",
        held_by=known.holder if held else None,
        placed=any(satisfies(known, goal) for goal in goals),
        seen=known.step,
    )


def options_of(
    observation: Observation, beliefs: Beliefs, knowledge: Knowledge, goals: Sequence[Goal], plan: Plan | None
) -> list[Option]:
    """List what a member may do now, what it is doing first; messages are written by whoever sends some."""
    macros = [macro for macro in possible(observation, beliefs, goals) if macro.kind != "send_message"]
    spots = {each.id: Spot(**_place(each), room=each.room) for each in beliefs.things.values()}
    spots |= {
        spot.id: spot
        for spot in [*knowledge.rooms, *knowledge.needs, *knowledge.containers, *knowledge.items]
        if spot.room != NOWHERE
    }
    options = [_option(macro, spots, beliefs, knowledge) for macro in macros]
    if plan is not None:
        options = [
            option.model_copy(
                update={"under_way": (option.kind, option.target) == (plan.macro.kind, plan.macro.target)}
            )
            for option in options
        ]
    return sorted(options, key=lambda option: not option.under_way)


def _option(macro: Macro, spots: Mapping[int, Spot], beliefs: Beliefs, knowledge: Knowledge) -> Option:
    """Say where an action leads, about how far that is, and when its room was explored."""
    here: Corner = (beliefs.room, *beliefs.position)
    spot = None if macro.target is None else spots.get(macro.target)
    option = Option(kind=macro.kind, target=macro.target, name=macro.name)
    if spot is None:
        return option if macro.target is None else option.model_copy(update={"steps": None})
    explores = macro.kind == "goexplore"
    measure = steps_into if explores else steps_to_act
    explored = beliefs.room_seen.get(spot.id) if explores else None
    room = next((room.name for room in knowledge.rooms if room.id == spot.room), "")
    steps = measure(knowledge, here, spot) + _handling(macro, beliefs, knowledge)
    return option.model_copy(update={"room": room, "steps": steps, "explored": explored})


def _handling(macro: Macro, beliefs: Beliefs, knowledge: Knowledge) -> int:
    """Return the steps at a target beside the first: for each further thing put there, and for opening it.

    Who has no hand free opens nothing, but once one thing is put, a hand is free for the second.
    """
    if macro.kind != "goput":
        return 0
    belonging = {need.thing for need in knowledge.needs if need.id == macro.target}
    held = [beliefs.things[thing].name for thing in beliefs.hands if thing in beliefs.things]
    load = sum(name in belonging for name in held)
    target = beliefs.things.get(macro.target) if macro.target is not None else None
    is_shut = target is not None and target.is_open is False
    return max(0, load - 1) + (is_shut and (len(beliefs.hands) < HANDS or load > 1))


def macro_of(option: Option) -> Macro:
    """Return the action that an option stands for."""
    return Macro(kind=option.kind, target=option.target, name=option.name, text=option.text)
