"""Rules that answer the questions of `prompts/household/proagent.py`.

A rule takes the teammate's view, as far as its place and hands are known, and takes its own choice there for
the intention. An intention is kept until it is seen to be done, contradicts an observation, or is too old.
"""

from collections.abc import Sequence
from functools import partial

from mneme.environments.household.walking import steps_if_known, steps_into, steps_to_act
from mneme.environments.household.world import HANDS
from mneme.prompts.household import proagent as questions
from mneme.prompts.household.household import Kind, Option, Spot, View, Worker, spots_of
from mneme.prompts.household.proagent import UNKNOWN_ROOM, Intention, Observed, Plan, Scene, is_done
from mneme.rules.household.judgement import best
from mneme.rules.registry import rule

OLD = 25
"""Steps after which an intention no longer predicts a teammate's action."""


@rule(questions.plan_skill)
def plan_skill(given: Scene) -> Plan:
    """Infer each teammate's next target from its view, and choose the best of the other targets."""
    intentions = [infer(given, each) for each in given.observed]
    taken = [each.target for each in intentions if each.target != UNKNOWN_ROOM and _is_nearer(given, each)]
    fitting = given.model_copy(update={"taken": [*given.taken, *taken]})
    missing = ", ".join(f"{count} {name}" for name, count in given.missing().items() if count > 0)
    return Plan(
        analysis=f"Still to be fetched: {missing or 'nothing'}.", intentions=intentions, option=best(fitting)
    )


def _is_nearer(given: Scene, intention: Intention) -> bool:
    """Return whether a teammate has a shorter way to what it intends, or as long a one and a lower number.

    Both ways are measured from the middle of a room, since only the teammate's room is known: so two agents
    that see one another judge alike, and one of them goes.
    """
    middle = {room.id: room.corner for room in given.rooms}
    rooms = {worker.number: worker.room for worker in given.workers}
    spot = spots_of(given).get(intention.target)
    if spot is None or spot.room not in middle or intention.teammate not in rooms:
        return False
    mine, theirs = (
        (steps_to_act(given, middle[rooms[who]], spot), who) for who in (given.me, intention.teammate)
    )
    return theirs < mine


def infer(given: Scene, observed: Observed) -> Intention:
    """Return the target that a teammate probably intends."""
    number, target = observed.teammate, observed.intended
    if observed.seen is None or given.step - observed.seen > OLD:
        return Intention(teammate=number, reason="It was not seen for long.", target=UNKNOWN_ROOM)
    is_ruled_out = target == UNKNOWN_ROOM or target in observed.contradicted
    if not (is_ruled_out or given.step > observed.due + OLD or is_done(given, target)):
        return Intention(teammate=number, reason="It is probably still at it.", target=target)
    stead = in_stead_of(given, observed)
    if stead is None or not stead.options:
        return Intention(teammate=number, reason="There is nothing for it to do.", target=UNKNOWN_ROOM)
    option = stead.options[best(stead)]
    target = UNKNOWN_ROOM if option.target is None else option.target
    return Intention(
        teammate=number, reason=f"In its place I would {option.kind} {option.name}.", target=target
    )


def in_stead_of(given: View, observed: Observed) -> View | None:
    """Return the view that a teammate probably has, as far as the agent knows."""
    worker = next((each for each in given.workers if each.number == observed.teammate), None)
    if worker is None:
        return None
    return View(
        **{name: getattr(given, name) for name in ("step", "needs", "rooms", "doors", "containers", "items")},
        workers=given.workers,
        me=worker.number,
        taken=[],  # what it thinks of the others is not known
        options=_options_of(given, worker, observed.contradicted),
    )


def _options_of(given: View, worker: Worker, ruled_out: Sequence[int]) -> list[Option]:
    """Return the options that a teammate has, as far as the agent knows."""
    names, missing = {room.id: room.name for room in given.rooms}, given.missing()
    act = partial(steps_to_act, given, worker.corner)
    could: list[tuple[Kind, Spot, str, int | None]] = [
        ("goput", need, "", steps_if_known(given, worker.corner, need))
        for need in given.needs[:1]
        if worker.hands
    ]
    if len(worker.hands) < HANDS:
        closed = [each for each in given.containers if each.checked is None and not each.is_open]
        loose = [each for each in given.items if each.held_by is None and not each.placed]
        unseen = [room for room in given.rooms if room.seen is None and room.id != worker.room]
        could += [("gocheck", each, names.get(each.room, ""), act(each)) for each in closed]
        wanted = (each for each in loose if missing.get(each.name, 0) > 0)
        could += [("gograb", each, names.get(each.room, ""), act(each)) for each in wanted]
        could += [("goexplore", room, room.name, steps_into(given, worker.corner, room)) for room in unseen]
    return [
        Option(kind=kind, target=spot.id, name=spot.name, room=room, steps=steps)
        for kind, spot, room, steps in could
        if spot.id not in ruled_out
    ]
