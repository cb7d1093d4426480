"""The question of ProAgent (Zhang et al., AAAI 2024): what do the teammates intend, and what do I do, then?

One question as published (analysis, the teammates' intentions, one skill), asked of each agent with what it
has seen its teammates do beside what it had thought they would do, so that it corrects its beliefs. There
are no messages. The verificator's refusal of an earlier plan is shown with its reason.

The rule infers as one reads another's mind: it puts itself in the teammate's stead, with what it knows of
where that one is and what it holds, and takes what it would do there for the intention. An intention stands
until it is seen to be done, is contradicted by what is seen, or is too old.

Simplified: the published agent sees the whole kitchen and its one teammate's every skill; here an agent
sees its own room, so behaviour is known from what was seen there. One reply covers all teammates.
"""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from prompts.household import Item, Option, Spot, View, Worker, steps_into, steps_to_act
from prompts.household_rules.judgement import best
from prompts.prompt import prompt

UNKNOWN = -1
OLD = 25
"""Steps after which an intention says nothing any more about what a teammate does."""


class Observed(BaseModel):
    """What was seen of a teammate, and what it was thought to intend."""

    teammate: int
    name: str
    seen: int | None = Field(None, description="The step at which it was last seen.")
    room: int = Field(UNKNOWN, description="Where it was then.")
    hands: list[int] = Field([], description="What it held then.")
    did: list[str] = Field([], description="Its behaviour as it was seen, oldest first.")
    intended: int = Field(UNKNOWN, description="The target that it was thought to go for.")
    since: int = Field(0, description="The step at which that was thought.")
    due: int = Field(0, description="The step by which it should have done that.")
    contradicted: list[int] = Field([], description="Targets of which it was seen not to go for them.")

    def __str__(self) -> str:
        if self.seen is None:
            return f"{self.name} (member {self.teammate}): not seen yet"
        did = "; ".join(self.did) or "nothing"
        thought = (
            f"; at step {self.since} you thought it goes for {self.intended}" if self.intended >= 0 else ""
        )
        wrong = f"; it does not go for {self.contradicted}, as you had thought" if self.contradicted else ""
        who = f"{self.name} (member {self.teammate})"
        return f"{who}: last seen at step {self.seen}; it did: {did}{thought}{wrong}"


class Scene(View):
    """What a ProAgent agent plans with."""

    name: str
    belief: str = Field("", description="What it knows of the household, in words.")
    observed: list[Observed] = Field([])
    refused: list[str] = Field([], description="Plans that the verificator refused, with the reason.")


class Intention(BaseModel):
    """What a teammate seems to be doing."""

    teammate: int = Field(description="The member's number.")
    reason: str
    target: int = Field(description="The id of the thing or place that it goes for; -1 if unknown.")


class Plan(BaseModel):
    """Analysis, the teammates' intentions, and the one skill to use now."""

    analysis: str = Field(description="What the scene asks for, in one or two sentences.")
    intentions: list[Intention] = Field(description="One for each teammate.")
    option: int = Field(description="The number of one of the possible skills.")


@prompt(
    system="""You are a member of a team that does housework together. You cannot talk with your teammates.
First analyse the scene, then infer what each teammate intends from what it was seen to do (correct what you
had thought of it where its behaviour contradicts that), then plan one skill for yourself that fits theirs:
do not go for what a teammate goes for. Skills: goexplore a room: walk into it and see what lies there.
gocheck a container: open it and see what is inside. gograb a thing: take it; you have two hands. goput:
carry what you hold to where it belongs. wait.
Reply with one JSON object, e.g. {"analysis": "The wine and one plate are missing.",
"intentions": [{"teammate": 1, "reason": "It stands before the fridge.", "target": 103}], "option": 2}""",
    user="""You are $name (member $me).

The task:
$needs

What you know:
$belief

The teammates, as you saw them:
$observed

What you did:
$history

Plans that could not be carried out:
$refused

Possible skills:
$options""",
)
def plan_skill(given: Scene) -> Plan:
    """Infer each teammate's next target from its stead, and do the best of what is left."""
    intentions = [infer(given, each) for each in given.observed]
    taken = [each.target for each in intentions if each.target != UNKNOWN and _is_nearer(given, each)]
    fitting = given.model_copy(update={"taken": [*given.taken, *taken]})
    missing = ", ".join(f"{count} {name}" for name, count in given.missing().items() if count > 0)
    return Plan(
        analysis=f"Still to be fetched: {missing or 'nothing'}.",
        intentions=intentions,
        option=best(fitting),
    )


def _is_nearer(given: Scene, intention: Intention) -> bool:
    """Say whether a teammate has a shorter way to what it intends, or as long a one and a lower number.

    Both ways are measured from the middle of a room, since only the teammate's room is known: so two agents
    that see one another judge alike, and one of them goes.
    """
    middle = {room.id: room.corner for room in given.rooms}
    rooms = {worker.number: worker.room for worker in given.workers}
    spots: list[Spot] = [*given.rooms, *given.needs, *given.containers, *given.items]
    spot = next((each for each in spots if each.id == intention.target), None)
    if spot is None or spot.room not in middle or intention.teammate not in rooms:
        return False
    mine, theirs = (
        (steps_to_act(given, middle[rooms[who]], spot), who) for who in (given.me, intention.teammate)
    )
    return theirs < mine


@plan_skill.check
def skill_exists(given: Scene, answer: Plan) -> None:
    """Refuse a skill that was not offered and an intention of nobody."""
    if not 0 <= answer.option < len(given.options):
        raise ValueError(f"There is no skill {answer.option}; choose 0 to {len(given.options) - 1}.")
    known = {each.teammate for each in given.observed}
    strangers = [each.teammate for each in answer.intentions if each.teammate not in known]
    if strangers:
        raise ValueError(f"There is no teammate {strangers[0]}; they are {sorted(known)}.")


def infer(given: Scene, observed: Observed) -> Intention:
    """Return what a teammate is likely to go for."""
    number = observed.teammate
    if observed.seen is None or given.step - observed.seen > OLD:
        return Intention(teammate=number, reason="It was not seen for long.", target=UNKNOWN)
    if stands(given, observed):
        return Intention(teammate=number, reason="It is probably still at it.", target=observed.intended)
    stead = in_stead_of(given, observed)
    if stead is None or not stead.options:
        return Intention(teammate=number, reason="There is nothing for it to do.", target=UNKNOWN)
    option = stead.options[best(stead)]
    target = UNKNOWN if option.target is None else option.target
    return Intention(
        teammate=number, reason=f"In its place I would {option.kind} {option.name}.", target=target
    )


def stands(given: View, observed: Observed) -> bool:
    """Say whether what a teammate was thought to intend may still be under way."""
    target = observed.intended
    if target == UNKNOWN or target in observed.contradicted or given.step > observed.due + OLD:
        return False
    return not is_done(given, target)


def is_done(given: View, target: int) -> bool:
    """Say whether a target is known to need nobody any more: checked, entered, taken or placed."""
    if any(room.id == target and room.seen is not None for room in given.rooms):
        return True
    if any(each.id == target and each.checked is not None for each in given.containers):
        return True
    return any(item.id == target and (item.placed or item.held_by is not None) for item in given.items)


def in_stead_of(given: View, observed: Observed) -> View | None:
    """Return the view that a teammate is likely to have, as far as one's own knowledge goes."""
    worker = next((each for each in given.workers if each.number == observed.teammate), None)
    if worker is None:
        return None
    return View(
        **{name: getattr(given, name) for name in ("step", "needs", "rooms", "doors", "containers", "items")},
        workers=given.workers,
        me=worker.number,
        taken=[],
        options=_options_of(given, worker, observed.contradicted),
    )


def _options_of(given: View, worker: Worker, ruled_out: Sequence[int]) -> list[Option]:
    """Return what a teammate could do, from what one knows oneself."""
    names = {room.id: room.name for room in given.rooms}
    options = [*_putting(given, worker)]
    if len(worker.hands) < 2:
        options += [
            *_checking(given, worker, names),
            *_grabbing(given, worker, names),
            *_exploring(given, worker),
        ]
    return [each for each in options if each.target not in ruled_out]


def steps_if_known(given: View, worker: Worker, spot: Spot) -> int:
    """Return how far a teammate has to a spot; 0 where nobody knows in which room that is."""
    is_known = spot.room in {room.id for room in given.rooms}
    return steps_to_act(given, worker.corner, spot) if is_known else 0


def _putting(given: View, worker: Worker) -> list[Option]:
    return [
        Option(kind="goput", target=need.id, name=need.name, steps=steps_if_known(given, worker, need))
        for need in given.needs[:1]
        if worker.hands
    ]


def _checking(given: View, worker: Worker, names: dict[int, str]) -> list[Option]:
    return [
        Option(
            kind="gocheck",
            target=each.id,
            name=each.name,
            room=names.get(each.room, ""),
            steps=steps_to_act(given, worker.corner, each),
        )
        for each in given.containers
        if each.checked is None and not each.is_open
    ]


def _grabbing(given: View, worker: Worker, names: dict[int, str]) -> list[Option]:
    missing = given.missing()
    return [
        Option(
            kind="gograb",
            target=item.id,
            name=item.name,
            room=names.get(item.room, ""),
            steps=steps_to_act(given, worker.corner, item),
        )
        for item in given.items
        if _is_wanted(item, missing)
    ]


def _is_wanted(item: Item, missing: dict[str, int]) -> bool:
    return missing.get(item.name, 0) > 0 and item.held_by is None and not item.placed


def _exploring(given: View, worker: Worker) -> list[Option]:
    return [
        Option(
            kind="goexplore",
            target=room.id,
            name=room.name,
            room=room.name,
            steps=steps_into(given, worker.corner, room),
        )
        for room in given.rooms
        if room.seen is None and room.id != worker.room
    ]
