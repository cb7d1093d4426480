"""How many steps a walk must take, counted by the published walking rule instead of by walking."""

import math

from mneme.environments.household import World
from mneme.environments.household.layout import ROUNDING, STRAIGHT, Layout, Point, towards
from mneme.environments.household.state import Body


def walking_steps(world: World, agent: int, target: int) -> int:
    """Count the steps from where an agent is into a room, or until a thing is within reach of hands."""
    body, room = world.agents[agent], world.room_of(target)
    assert room is not None
    steps, position = arrival(world.layout, body.room, body.position, room)
    walker = Body(room, position, [])
    while target != room and not world.is_close(walker, target):
        walker.position = towards(walker.position, world.solid(target))
        steps += 1
    return steps


def arrival(layout: Layout, room: int, position: Point, goal: int) -> tuple[int, Point]:
    """Walk into a room: the steps taken and where one stands then."""
    if room == goal:
        return 0, position
    length, legs = layout.way(room, position, goal)
    steps = max(1, math.ceil(STRAIGHT * length - ROUNDING))
    door, center = legs[-1][1], layout.centers[goal]
    share = min(1.0, max(0.0, steps / STRAIGHT - length) / math.dist(door, center))
    return steps, (door[0] + share * (center[0] - door[0]), door[1] + share * (center[1] - door[1]))
