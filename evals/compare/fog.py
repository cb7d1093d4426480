"""Planning in fog: two pilots steer one robot by turns through rooms, and see only the robot's room.

The world is a PDDL problem (gripper, with more rooms): the content of another room is unknown until the robot
is there. The balls of one problem stay where they were put for the next; some are moved in between, so that
what was seen is mostly true. The goal, and what is still open of it, is always told. Revisiting a room that
has no wanted ball, with nothing in hand, counts as misled.
"""

import re
from collections.abc import Sequence
from functools import cache, partial
from random import Random
from typing import NamedTuple

from mneme.environments.pddl import PddlWorld, Problem
from mneme.environments.pddl.generating import problem_of
from mneme.evals.compare.memory import Course, Event, Family, Outcome, Score, Situation, day, drawing, latest

PILOTS = ("Ida", "Jon")
FOG_ROOMS = ("rooma", "roomb", "roomc", "roomd", "roome", "roomf", "roomg")
BALLS = ("ball1", "ball2", "ball3", "ball4", "ball5")
GRIPPER_HANDS = ("left", "right")
WANTED_BALLS, MOVED = 2, 0.1
"""Balls that a problem asks for, and the share of balls that somebody moves between two problems."""
FOG_STEPS = 14
SIGHT_LINE = re.compile(r"step (\d+)\W+in (room\w)\W.*?: (.*)", re.IGNORECASE)


class View(NamedTuple):
    """A pilot's view: the robot's room, the objects there and in its hands, and the open goals."""

    here: str
    there: Sequence[str]
    held: dict[str, str]
    wanted: dict[str, str]


def fog(seed: int, size: int) -> Course:
    """Solve that many problems in one building."""
    chance = drawing(f"fog {seed}")
    at = {ball: chance.choice(FOG_ROOMS) for ball in BALLS}
    for number in range(size):
        yield from _solve(at, day(number), chance)
        for ball in BALLS:
            at[ball] = chance.choice(FOG_ROOMS) if chance.random() < MOVED else at[ball]


@cache
def _building() -> Problem:
    """Return rooms, balls and hands, without what changes from problem to problem: it is parsed once."""
    fixed = [f"room {room}" for room in FOG_ROOMS] + [f"ball {ball}" for ball in BALLS]
    fixed += [f"{each} {hand}" for hand in GRIPPER_HANDS for each in ("gripper", "free")]
    objects = " ".join([*FOG_ROOMS, *BALLS, *GRIPPER_HANDS])
    return problem_of("gripper", "fog", (objects, fixed, [f"at {BALLS[0]} {FOG_ROOMS[0]}"]))


def _solve(at: dict[str, str], today: str, chance: Random) -> Course:
    """Solve a problem, and store the final places of the balls in `at`."""
    balls = chance.sample(BALLS, WANTED_BALLS)
    goal = {ball: chance.choice([each for each in FOG_ROOMS if each != at[ball]]) for ball in balls}
    world, misled, visited = _world(at, chance), 0, set[str]()
    task = ", ".join(f"{ball} to {room}" for ball, room in goal.items())
    for step in range(1, FOG_STEPS + 1):
        view, who = _view(world, goal), PILOTS[step % 2]
        there = ", ".join(view.there) or "no ball"
        yield Event(today, who, f"At step {step}, in {view.here} there is: {there}.")
        misled += view.here in visited and not view.held and not {*view.there} & {*view.wanted}
        visited.add(view.here)
        choices = [each for each in world.valid_actions() if each.split()[0] in {"move", "pick", "drop"}]
        asked = f"{who} steers a robot with two hands; any room leads to any other. To bring: {task}."
        text = f"{asked} {_told(view)} It is {today}, step {step}. Which action is next?"
        said = yield Situation(text, partial(steered, view=view, choices=choices), choices)
        world.step(said if said in choices else choices[0])
        after = _view(world, goal)
        if not after.wanted or step == FOG_STEPS:  # solved, or given up
            at |= {literal[1]: literal[2] for literal in _literals(world) if literal[0] == "at"}
            # What is still held is laid down where the robot stands.
            at |= dict.fromkeys(after.held, after.here)
            yield Score(Outcome(f"Bring {task}.", not after.wanted, _lesson(at, goal), today), step, misled)
            return


def _world(at: dict[str, str], chance: Random) -> PddlWorld:
    initial = [*_building().compiled.initial, *(("at", ball, room) for ball, room in at.items())]
    initial.append(("at-robby", chance.choice(FOG_ROOMS)))
    return PddlWorld(_building(), {"literals": initial, "progress": 0, "steps": 0, "valid_steps": 0})


def _literals(world: PddlWorld) -> list[list[str]]:
    return list(world.state()["literals"])


def _view(world: PddlWorld, goal: dict[str, str]) -> View:
    literals = _literals(world)
    (here,) = (each[1] for each in literals if each[0] == "at-robby")
    held = {each[1]: each[2] for each in literals if each[0] == "carry"}
    wanted = {ball: room for ball, room in goal.items() if ["at", ball, room] not in literals}
    return View(here, [each[1] for each in literals if each[0] == "at" and each[2] == here], held, wanted)


def _told(view: View) -> str:
    open_ = ", ".join(view.wanted)
    held = ", ".join(view.held) or "nothing"
    there = ", ".join(view.there) or "no ball"
    return f"Still to bring: {open_}. The robot is in {view.here}, where there is {there}; it holds {held}."


def _lesson(at: dict[str, str], goal: dict[str, str]) -> str:
    return " ".join(f"{ball} is in {at[ball]} now." for ball in goal)


def steered(lines: Sequence[str], view: View, choices: Sequence[str]) -> str:
    """Drop an object in its goal room, pick up a wanted one, go where one was last seen; else explore."""
    here, free = view.here, [hand for hand in GRIPPER_HANDS if hand not in view.held.values()]
    for ball, hand in view.held.items():
        if view.wanted.get(ball) == here:
            return f"drop {ball} {here} {hand}"
    for ball in view.there if free else []:  # two hands carry two balls
        if view.wanted.get(ball, here) != here:
            return f"pick {ball} {here} {free[0]}"
    if carried := [room for ball, room in view.wanted.items() if ball in view.held]:
        return f"move {here} {carried[0]}"
    seen, known = _seen(lines), dict[str, str]()
    for room, balls in seen.items():
        known |= {ball: room for ball in balls if ball not in known}
    places = [known[ball] for ball in view.wanted if known.get(ball, here) != here]
    others = [each for each in FOG_ROOMS if each not in seen] + [*seen][::-1]
    moves = [f"move {here} {room}" for room in (*places, *others)]
    return next((each for each in moves if each in choices), choices[0])


def _seen(lines: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the objects in each room as last seen, the latest room first."""
    told = dict[str, Sequence[str]]()
    sights = {line: found for line in lines if (found := SIGHT_LINE.search(line))}
    # Steps within a day, then days: `latest` is stable.
    for line in latest(sorted(sights, key=lambda each: int(sights[each][1]), reverse=True)):
        told.setdefault(sights[line][2], re.findall(r"ball\d", sights[line][3]))
    return told


FOG = Family("fog", fog, PILOTS)
