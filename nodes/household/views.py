"""Views, options and contexts that members and manager get, made from their beliefs of the world.

For MiTa: the view of eq. 2, the cross-agent context of eq. 3.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from mneme.environments.household.beliefs import Beliefs, Sighting, satisfies
from mneme.environments.household.episode import Episode, Goal, Thing
from mneme.environments.household.macro import Macro, Plan, possible
from mneme.environments.household.scene import AGENT_NAMES
from mneme.environments.household.walking import Corner, steps_into, steps_to_act
from mneme.environments.household.world import HANDS, Observation, World
from mneme.nodes.household.context import HouseholdRuntime
from mneme.nodes.household.household import CLAIMING
from mneme.nodes.household.household_state import beliefs_of, episode_of, plans_of, world_of
from mneme.nodes.household.mita_state import State, in_order, in_words, merged, option_of, since, wanted_in
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
from mneme.prompts.household.mita import CrossContext, Report, Situation

NOWHERE = -1


def worker_of(number: int, beliefs: Beliefs, plan: Plan | None) -> Worker:
    """Describe a member's place, hands and plan, from its own knowledge."""
    return Worker(
        number=number,
        name=AGENT_NAMES[number],
        room=beliefs.room,
        x=beliefs.position[0],
        z=beliefs.position[1],
        hands=beliefs.hands,
        doing=str(plan.macro) if plan else "",
        promised=plan.macro.target if plan else None,
    )


def workers_of(state: State, beliefs: Sequence[Beliefs]) -> list[Worker]:
    """Describe all members, each from its own knowledge."""
    plans = plans_of(state)
    return [worker_of(n, known, plan) for n, (known, plan) in enumerate(zip(beliefs, plans, strict=True))]


def knowledge_of(  # noqa: PLR0913  (what may be known beyond one's own beliefs, by its name)
    episode: Episode,
    beliefs: Beliefs,
    workers: Sequence[Worker],
    *,
    placed: Mapping[str, int] | None = None,
    in_hands: dict[str, int] | None = None,
    finds: Mapping[str, str] | None = None,
    experience: dict[str, dict[str, tuple[int, int]]] | None = None,
) -> Knowledge:
    """Summarise beliefs, with what the whole team was told.

    `placed` (by predicate) and `in_hands` (by class) are the progress; `finds` has the places where things of
    the task were found, of which only known things are used; `experience` is from earlier episodes.
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
        in_hands=in_hands or {},
        found=found,
        experience=experience or {},
    )


def _place(thing: Thing | Sighting) -> dict[str, Any]:
    """Return a thing's name, and the position of its centre on the floor."""
    x, _, z = thing.center
    return {"id": thing.id, "name": thing.name, "x": x, "z": z}


def _need(goal: Goal, beliefs: Beliefs, things: Mapping[int, Thing], placed: Mapping[str, int]) -> Need:
    target, known = things[goal.target], beliefs.things.get(goal.target)
    return Need(
        id=goal.target,
        name=target.name,
        room=known.room if known else NOWHERE,
        x=target.center[0] if known else 0.0,  # not told: `spots_of` assumes the middle of its usual room
        z=target.center[2] if known else 0.0,
        width=target.size[0],
        depth=target.size[2],
        relation=goal.relation,
        thing=goal.name,
        wanted=goal.count,
        placed=placed.get(goal.key, 0),
        is_closed=known is not None and known.is_open is False,
    )


def _item(known: Sighting, beliefs: Beliefs, goals: Sequence[Goal]) -> Item:
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
    """List a member's possible actions, the current one first, without sending messages."""
    macros = [macro for macro in possible(observation, beliefs, goals) if macro.kind != "send_message"]
    spots = {each.id: Spot(**_place(each), room=each.room) for each in beliefs.things.values()}
    spots |= {
        spot.id: spot
        for spot in [*knowledge.rooms, *knowledge.needs, *knowledge.containers, *knowledge.items]
        if spot.room != NOWHERE
    }
    options = [_option(macro, spots, beliefs, knowledge) for macro in macros]
    for option in options:
        option.under_way = plan is not None and macro_of(option) == plan.macro
    return sorted(options, key=lambda option: not option.under_way)  # stable: the others keep their order


def _option(macro: Macro, spots: Mapping[int, Spot], beliefs: Beliefs, knowledge: Knowledge) -> Option:
    """Describe where an action leads, the approximate distance, and when its room was explored."""
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
    """Return the steps at a target beside the first: for each further thing put there, and for opening it."""
    if macro.kind != "goput":
        return 0
    belonging = {need.thing for need in knowledge.needs if need.id == macro.target}
    held = [beliefs.things[thing].name for thing in beliefs.hands if thing in beliefs.things]
    load = sum(name in belonging for name in held)  # what does not belong here stays in the hands
    target = beliefs.things.get(macro.target) if macro.target is not None else None
    is_shut = target is not None and target.is_open is False
    # Full hands open nothing: the first thing is put all the same, and then a hand opens for the second.
    return max(0, load - 1) + (is_shut and (len(beliefs.hands) < HANDS or load > 1))


def macro_of(option: Option) -> Macro:
    """Return the action that an option stands for."""
    return Macro(kind=option.kind, target=option.target, name=option.name, text=option.text)


MAX_NEIGHBOURS = 3
"""Maximum neighbours of a container or target to which a map gives the steps."""
MAX_USUAL_PLACES = 4
"""Maximum kinds of places that are named for a class of things."""


def situation_of(
    state: State, runtime: HouseholdRuntime, world: World, beliefs: Sequence[Beliefs], number: int
) -> dict[str, Any]:
    """Show a member its view, beliefs, actions and messages, with the options from its own beliefs."""
    plans, known = plans_of(state), beliefs[number]
    knowledge = _with_progress(state, known, [worker_of(number, known, plans[number])])
    others = {n: plan.macro for n, plan in enumerate(plans) if n != number and plan is not None}
    said = {name: f", {why}" for name, why in state.get("said", {}).items() if why}
    return Situation(
        **dict(knowledge),
        me=number,
        options=_options_of(state, world, known, knowledge, number),
        taken=[each.target for each in others.values() if each.kind in CLAIMING and each.target is not None],
        name=AGENT_NAMES[number],
        task=task_of(knowledge),
        progress=progress_in_words(state),
        observation=seen_now(known),
        belief=in_lines(*known.sights(last=known.step - 1), known.explored(), known.unexplored()),
        done="\n".join(state["members"][number]["history"][-runtime.context.window :]),
        map=map_in_words(knowledge),
        dialogue=in_lines(
            *(f"{AGENT_NAMES[n]} does {each}{said.get(AGENT_NAMES[n], '')}" for n, each in others.items()),
            state.get("overruled", {}).get(AGENT_NAMES[number], ""),
        ),
        usual=usual_places(state),
    ).model_dump(mode="json")  # plain: what is sent to a node passes no channel that would make it so


def map_in_words(knowledge: Knowledge) -> str:
    """Describe the doors, and the steps between each known container or target and its nearest others."""
    rooms = {room.id: room.label for room in knowledge.rooms}
    doors = [door.rooms for door in knowledge.doors]
    ways = {room: [rooms[b if a == room else a] for a, b in doors if room in (a, b)] for room in rooms}
    spots: dict[int, Spot] = {each.id: each for each in knowledge.needs if each.room in rooms}
    spots |= {each.id: each for each in knowledge.containers}
    lines = [f"{rooms[room]} has doors to {', '.join(others)}." for room, others in ways.items() if others]
    for spot in spots.values():
        others = (each for each in spots.values() if each.id != spot.id)
        far = sorted((steps_to_act(knowledge, spot.corner, each), each.id) for each in others)[
            :MAX_NEIGHBOURS
        ]
        near = ", ".join(f"about {steps} to {spots[each].label}" for steps, each in far)
        lines += [f"Steps from {spot.label}: {near}."] if near else []
    return in_lines(*lines)


def mark_of(situation: Situation) -> str:
    """Return a digest of a situation: a member's options, the progress, and what the team said last."""
    # Without distances, which change with each step.
    may = sorted((option.kind, option.target or 0) for option in situation.options)
    return sha256(repr((may, situation.progress, situation.dialogue)).encode()).hexdigest()[:16]


def _with_progress(state: State, beliefs: Beliefs, workers: Sequence[Worker]) -> Knowledge:
    """Summarise beliefs, together with the team's progress."""
    return knowledge_of(
        episode_of(state),
        beliefs,
        workers,
        placed=state["assessed"]["placed"],
        in_hands=state["assessed"]["held"],
        finds=state["finds"],
        experience=state["experience"],
    )


def _options_of(
    state: State, world: World, beliefs: Beliefs, knowledge: Knowledge, number: int
) -> list[Option]:
    """List a member's options, without those that the progress makes needless unless they are under way."""
    observation, episode = world.observe(number), episode_of(state)
    options = options_of(observation, beliefs, knowledge, episode.goals, plans_of(state)[number])
    missing, all_found = knowledge.missing(), state["assessed"]["found"] == wanted_in(episode)
    loose = Counter(each.name for each in knowledge.items if each.held_by is None and not each.placed)
    needless = {"gocheck"} if all_found else set()
    are_seen = all(need.room != NOWHERE for need in knowledge.needs if need.placed < need.wanted)
    if all_found and are_seen and all(count <= loose[name] for name, count in missing.items()):
        needless.add("goexplore")  # unknown places may still have to be explored
    return [
        option
        for option in options
        if option.under_way
        or (option.kind not in needless and not (option.kind == "gograb" and missing[option.name] <= 0))
    ]


def task_of(knowledge: Knowledge) -> str:
    return "; ".join(
        f"put {need.wanted} {need.thing} {need.relation} {need.label}" for need in knowledge.needs
    )


def progress_in_words(state: State) -> str:
    """Describe the team's progress as counts and totals."""
    progress, episode = state["assessed"], episode_of(state)
    counts, wanted = {goal.key: goal.count for goal in episode.goals}, wanted_in(episode)
    placed = ", ".join(f"{key}: {count} of {counts[key]}" for key, count in progress["placed"].items())
    held = ", ".join(f"{count} {name}" for name, count in progress["held"].items()) or "nothing"
    found = ", ".join(f"{progress['found'].get(name, 0)} of {count} {name}" for name, count in wanted.items())
    return f"Placed: {placed}. In hands: {held}. Found so far: {found}."


def seen_now(beliefs: Beliefs, *, with_shut: bool = True) -> str:
    """Describe what an agent perceives at this step; `with_shut` includes which containers are shut."""
    return in_lines(beliefs.position_in_words(), *beliefs.sights(beliefs.step, with_shut=with_shut))


def usual_places(state: State) -> str:
    """Name for each wanted class its most frequent places in earlier episodes, with frequencies."""
    lines = list[str]()
    for name in wanted_in(episode_of(state)):
        seen = [each for each in state["experience"].get(name, {}).items() if each[1][0]]
        best = sorted(seen, key=lambda each: -each[1][0] / max(1, each[1][1]))[:MAX_USUAL_PLACES]
        told = ", ".join(f"{place} {found} times of {of}" for place, (found, of) in best)
        lines.append(f"{name}: {told}." if best else "")
    return in_lines(*lines)


def in_lines(*sentences: str) -> str:
    """Put each sentence on a line of its own."""
    return "\n".join(sentence for sentence in sentences if sentence)


def known_to_the_manager(state: State, runtime: HouseholdRuntime) -> Beliefs:
    """Merge what the manager knows: the synopses, and the members' recent reports.

    A proposal includes its target's place, however long ago the member saw it.
    """
    team = merged(state["synopses"]) if state["synopses"] else Beliefs(agent=-1)
    team.step = state["steps"]  # the step of the decision, not of the latest sight
    oldest = state["steps"] - runtime.context.window
    for known in beliefs_of(state["members"]):
        team.rooms = known.rooms
        team.merge(since(known, oldest))
        targets = [each["option"]["target"] for each in state["proposals"] if each["member"] == known.agent]
        named = {target: known.things[target] for target in targets if target in known.things}
        team.merge(Beliefs(agent=known.agent, things=named))
    return team


def cross_context_of(
    state: State, runtime: HouseholdRuntime, beliefs: Sequence[Beliefs], team: Beliefs
) -> CrossContext:
    """Collect each member's proposal, belief and observation (eq. 3), with C, p and T."""
    workers = workers_of(state, beliefs)
    knowledge = _with_progress(state, team, workers)
    oldest, world = state["steps"] - runtime.context.window, world_of(state)
    return CrossContext(
        **dict(knowledge),
        task=task_of(knowledge),
        progress=progress_in_words(state),
        synopses=in_lines(*(in_words(each) for each in state["synopses"] if each["synopsis"]["narrative"])),
        usual=usual_places(state),
        members=[
            _report(state, worker, beliefs[worker.number], options, oldest)
            for worker in workers
            for options in [_offered(state, world, team, knowledge, worker.number)]
        ],
    )


def _offered(state: State, world: World, team: Beliefs, knowledge: Knowledge, number: int) -> list[Option]:
    """List a member's options from its own and the manager's knowledge together.

    The member's own proposal is always among them.
    """
    beliefs = beliefs_of(state["members"])[number]  # a copy of its own: `merge` changes it
    beliefs.merge(team)
    options = _options_of(state, world, beliefs, knowledge, number)
    wish = option_of(in_order(state)[number])
    return options if any(_same(option, wish) for option in options) else [*options, wish]


def _same(one: Option, other: Option) -> bool:
    return (one.kind, one.target) == (other.kind, other.target)


def _report(state: State, worker: Worker, own: Beliefs, options: Sequence[Option], oldest: int) -> Report:
    """Report what one member sees, has seen recently and proposes, and its options.

    Shut containers that it knows are among its options, and are not repeated.
    """
    proposed = in_order(state)[worker.number]
    wish = option_of(proposed)
    refused = state.get("refused", {}).get(worker.name, [])
    return Report(
        worker=worker,
        times=1 + refused.count(str(macro_of(wish))),
        proposal=next(number for number, option in enumerate(options) if _same(option, wish)),
        reason=proposed["reason"],
        observation=seen_now(own, with_shut=False),
        belief=in_lines(*own.sights(oldest, own.step - 1, with_shut=False), own.explored(oldest)),
        options=list(options),
    )
