"""The household through eyes: frames, what is perceived in them, and whole episodes."""

import math
from typing import Any

import numpy as np
import pytest

pytest.importorskip("embreex", reason="what renders is not installed")

from mneme.environments.household import Action, Beliefs, Macro, Plan, advance, generate
from mneme.environments.household.layout import flat
from mneme.environments.household.visual.camera import FIELD, Pose, View, render
from mneme.environments.household.visual.perception import SECTORS
from mneme.environments.household.visual.solids import person, still_life
from mneme.environments.household.visual.world import TURN_DEGREES, SeeingWorld
from mneme.graphs.mita import builder as mita
from mneme.nodes.household.context import HouseholdContext
from tests.doubles.apartment import (
    APPLE,
    CUPBOARD,
    DESK,
    FRIDGE,
    HALL,
    KITCHEN,
    PEAR,
    STUDY,
    TABLE,
    WINE,
    standing,
    values,
)

TURNED = Action(kind="turn")


def seen(world: SeeingWorld, agent: int = 0) -> dict[int, Any]:
    return {each.id: each for each in world.observe(agent).seen}


def facing(world: SeeingWorld, thing: int, agent: int = 0) -> View:
    """Turn an agent's eyes to a thing, and look."""
    (x, z), (to_x, _, to_z) = world.agents[agent].position, world.solid(thing).center
    world.eyes[agent].heading = math.degrees(math.atan2(to_z - z, to_x - x))
    world.steps += 1
    return world.look(agent)


def explore(world: SeeingWorld, room: int, beliefs: Beliefs) -> int:
    """Let the only agent look round in a room; return the steps."""
    plan = Plan.of(Macro(kind="goexplore", target=room), world.episode.goals)
    return len(advance(world, [plan], [beliefs])[1])


def test_a_frame_tells_colour_distance_and_whose_each_pixel_is() -> None:
    world = SeeingWorld(standing((KITCHEN, 3.0, 3.0), (KITCHEN, 3.0, 5.0)), size=65)
    view = facing(world, TABLE)
    assert view.colour.shape == (65, 65, 3) and view.depth.shape == view.segments.shape == (65, 65)
    assert {TABLE, KITCHEN} <= {*np.unique(view.segments).tolist()} and person(0) not in view.segments
    row, column, distance = view.pixel_of((1.0, 0.8, 1.0)) or pytest.fail("the table is before the eyes")
    assert view.segments[row, column] == TABLE and view.depth[row, column] == pytest.approx(distance, abs=0.2)
    assert view.pixel_of((5.0, 0.8, 5.0)) is None, "what is behind is in no frame"
    world.eyes[0].heading = 90.0
    (behind,) = [owner for owner in np.unique(world.look(0).segments).tolist() if owner < 0]
    assert behind == person(1)


def test_eyes_follow_a_walk_along_an_axis() -> None:
    for x, z, heading in ((0.5, 3.0, 0.0), (5.5, 3.0, 180.0), (3.0, 0.5, 90.0), (3.0, 5.5, 270.0)):
        world = SeeingWorld(standing((KITCHEN, x, z)))
        world.eyes[0].heading = 45.0
        (middle,) = [flat(each.center) for each in world.episode.rooms() if each.id == KITCHEN]
        assert middle == (3.0, 3.0)
        world.step([Action(kind="walk", target=KITCHEN)])
        assert world.eyes[0].heading == pytest.approx(heading)


def test_walls_hide_and_doorways_show() -> None:
    world = SeeingWorld(standing((KITCHEN, 3.0, 3.0)))
    world.eyes[0].heading = 0.0
    view = world.look(0)
    middle = view.segments[:, len(view.segments) // 2]
    assert HALL in middle, "the floor beyond the door"
    assert view.pixel_of((17.5, 0.5, 0.5)) and DESK not in view.segments, "the desk is behind two walls"


def test_walls_of_adjoining_rooms_do_not_flicker() -> None:
    """In one plane, pixels would show now the one room's wall and now the other's."""
    episode = generate(4, "Set up Table", 3)
    rooms, solids = [room.id for room in episode.rooms()], still_life(episode)
    speckles = 0
    for room in episode.rooms():
        for heading in range(0, 360, 90):
            shown = render(solids, Pose(flat(room.center), heading), 64).segments
            left, here, right = shown[:, :-2], shown[:, 1:-1], shown[:, 2:]
            speckles += int(
                ((left == right) & (here != left) & np.isin(here, rooms) & np.isin(left, rooms)).sum()
            )
    assert speckles < 20


def test_a_shut_container_hides_what_an_open_one_shows() -> None:
    world = SeeingWorld(standing((KITCHEN, 4.6, 4.6)))
    facing(world, FRIDGE)
    there = seen(world)
    assert there[FRIDGE].is_open is False and APPLE not in there
    assert world.step([Action(kind="open", target=FRIDGE)])[0].ok
    there = seen(world)
    assert there[FRIDGE].is_open is True
    assert (there[APPLE].relation, there[APPLE].holder) == ("inside", FRIDGE)


def test_looking_round_costs_steps_and_finds_what_is_there() -> None:
    world, beliefs = SeeingWorld(standing((STUDY, 13.0, 3.0))), Beliefs(agent=0)
    beliefs.update(world.observe(0))
    assert not world.observe(0).looked and STUDY not in beliefs.room_seen
    steps = explore(world, STUDY, beliefs)
    assert SECTORS - FIELD / TURN_DEGREES <= steps - 2 <= SECTORS, "two steps to the middle, then a turn each"
    assert world.observe(0).looked and {PEAR, CUPBOARD} <= beliefs.things.keys()
    assert (beliefs.things[PEAR].relation, beliefs.things[PEAR].holder) == ("on", DESK)
    assert beliefs.things[PEAR].room == STUDY and WINE not in beliefs.things


def test_what_was_taken_meanwhile_is_missed_where_it_lay_and_not_where_nobody_looks() -> None:
    world = SeeingWorld(standing((STUDY, 16.5, 1.5), (STUDY, 16.0, 0.6)))
    beliefs = Beliefs(agent=0)
    facing(world, DESK)
    beliefs.update(world.observe(0))
    assert PEAR in beliefs.things
    world.eyes[0].heading = 90.0
    world.step([TURNED, Action(kind="grab", object=PEAR)])
    beliefs.update(world.observe(0))
    assert PEAR in beliefs.things, "nobody looked"
    world.agents[1].position, world.agents[1].room = (3.0, 5.0), KITCHEN
    facing(world, DESK)
    beliefs.update(world.observe(0))
    assert PEAR not in beliefs.things and PEAR in beliefs.lost


def test_a_thing_in_somebodys_hands_is_seen_there() -> None:
    world = SeeingWorld(standing((STUDY, 14.0, 3.0), (STUDY, 16.5, 1.5)))
    assert [each.ok for each in world.step([TURNED, Action(kind="grab", object=PEAR)])] == [True, True]
    (x, z), (to_x, to_z) = world.agents[0].position, world.agents[1].position
    world.eyes[0].heading = math.degrees(math.atan2(to_z - z, to_x - x))
    world.steps += 1
    view = world.observe(0)
    (apple,) = [each for each in view.seen if each.id == PEAR]
    assert (apple.relation, apple.holder) == ("held by", 1) and view.others == [(1, STUDY, [PEAR])]
    assert seen(world, 1)[PEAR].holder == 1, "one feels what one holds"


def test_a_world_with_eyes_goes_on_where_it_was_kept() -> None:
    episode = generate(seed=11, agents=2)
    world = SeeingWorld(episode, seed=3)
    beliefs = [Beliefs(agent=number) for number in range(2)]
    plans = [Plan.of(Macro(kind="goexplore", target=room.id), episode.goals) for room in episode.rooms()[:2]]
    advance(world, plans, beliefs, most=6)
    again = SeeingWorld(episode, world.state(), seed=3)
    for each in (world, again):
        each.step([TURNED, Action(kind="walk", target=episode.rooms()[2].id)])
    assert [again.observe(n) for n in range(2)] == [world.observe(n) for n in range(2)]
    assert again.state() == world.state()


async def test_a_team_with_eyes_does_its_task() -> None:
    asked: Any = {"episode": values()}
    settings = {"member": "rules", "manager": "rules", "seed": 5}
    ended = {
        setting: await mita.compile().ainvoke(
            asked, {"recursion_limit": 1000}, context=HouseholdContext(setting=setting, **settings)
        )
        for setting in ("symbolic", "visual")
    }
    assert all(each["success"] for each in ended.values())
    assert ended["visual"]["steps"] > ended["symbolic"]["steps"], "who must look needs longer"
