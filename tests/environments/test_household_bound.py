"""No team beats the oracle: searched to the end in tiny worlds, and played in large ones."""

import random
from collections.abc import Iterator, Sequence
from itertools import product

import pytest

from mneme.environments.household.beliefs import Beliefs
from mneme.environments.household.bound import lower_bound
from mneme.environments.household.episode import Episode, Thing, parse_episode
from mneme.environments.household.generator import generate
from mneme.environments.household.macro import Macro, Plan, possible
from mneme.environments.household.play import advance
from mneme.environments.household.world import Action, World

ROOM, OTHER, SHELF, FRIDGE, TABLE, FIRST = 1, 2, 10, 11, 12, 20
State = tuple[object, ...]


def tiny(
    lie: Sequence[str], starts: Sequence[float], door: float = 20.0, table: float = 4.2, open_: bool = False
) -> Episode:
    """Make two rooms along a line: a shelf at 0 m, a table and a fridge at 8.4 m; wines in the named places.

    The walks between what they hold are whole metres, so that few positions are ever reached.
    """
    at = {
        "shelf": (SHELF, "surface", 0.0),
        "fridge": (FRIDGE, "container", 8.4),
        "table": (TABLE, "surface", table),
    }
    used = ["table", *sorted(set(lie))]
    furniture = [box(at[name][0], name, at[name][1], at[name][2], 0.6) for name in used]
    bottles = [box(FIRST + n, "wine", "object", at[name][2], 0.6) for n, name in enumerate(lie)]
    held: dict[str, tuple[str, int]] = {"shelf": ("on", SHELF), "fridge": ("inside", FRIDGE)}
    rooms = [
        Thing(id=ROOM, name="kitchen", category="room", center=(door - 10, 0, 0), size=(20, 3, 8)),
        Thing(id=OTHER, name="bedroom", category="room", center=(door + 10, 0, 0), size=(20, 3, 8)),
    ]
    room = {each.id: ROOM if each.center[0] < door else OTHER for each in furniture}
    return parse_episode(
        {
            "id": "tiny",
            "source": "test",
            "apartment": "tiny",
            "category": "Prepare Tea",
            "goals": [{"relation": "on", "name": "wine", "target": TABLE, "count": len(lie)}],
            "starts": [
                {"room": ROOM if x < door else OTHER, "position": (x, 0.0), "placed": "recorded"}
                for x in starts
            ],
            "things": [*rooms, *furniture, *bottles],
            "places": {each: ("inside", where) for each, where in room.items()}
            | {bottle.id: held[name] for bottle, name in zip(bottles, lie, strict=True)},
            "doors": [(ROOM, OTHER, (door, 0.0))],
            "open": [FRIDGE] if open_ and "fridge" in lie else [],
            "seed": 0,
        }
    )


def box(number: int, name: str, category: str, x: float, size: float) -> Thing:
    return Thing.model_validate([number, name, category, (x, 0.5, 0.0), (size, 1.0, size)])


def fewest_steps(episode: Episode, most: int) -> int:
    """Search every joint sequence of low-level actions, breadth first."""
    world = World(episode)
    edge, seen = [world.state()], {key(world)}
    for steps in range(1, most + 1):
        reached = []
        for state, actions in expanded(episode, edge):
            after = World(episode, state)
            if not all(outcome.ok for outcome in after.step(actions)):
                continue
            if after.done:
                return steps
            if key(after) not in seen:
                seen.add(key(after))
                reached.append(after.state())
        edge = reached
    raise AssertionError(f"not done in {most} steps")


def expanded(
    episode: Episode, states: Sequence[dict[str, object]]
) -> Iterator[tuple[dict[str, object], tuple[Action, ...]]]:
    for state in states:
        world = World(episode, state)
        for actions in product(*(sensible(world, agent) for agent in range(len(world.agents)))):
            yield state, actions


def sensible(world: World, agent: int) -> list[Action]:
    """List the actions of an agent that could serve; things are put down at goals' targets only."""
    body = world.agents[agent]
    furniture = [each for each in world.episode.things if each.category in ("surface", "container")]
    walks = [Action(kind="walk", target=each.id) for each in furniture]
    takes = [Action(kind="grab", object=thing) for thing in world.places if thing >= FIRST]
    takes = [each for each in takes if world.places[each.object or 0] != ("on", TABLE)]
    opens = [Action(kind="open", target=each.id) for each in furniture if each.id == FRIDGE not in world.open]
    puts = [Action(kind="put_on", target=TABLE, object=held) for held in body.hands]
    hands = [
        each for each in (*takes, *opens, *puts) if world.is_close(body, each.target or each.object or 0)
    ]
    return [*hands, *walks, Action(kind="wait")]


def key(world: World) -> State:
    bodies = (
        (b.room, round(b.position[0], 6), round(b.position[1], 6), tuple(b.hands)) for b in world.agents
    )
    return (*bodies, tuple(sorted(world.places.items())), tuple(sorted(world.open)))


SEARCHED = {
    "one thing": tiny(["shelf"], [2.6]),
    "close from the start": tiny(["shelf"], [1.6]),
    "shut": tiny(["fridge"], [6.8]),
    "open": tiny(["fridge"], [6.8], open_=True),
    "two at one place": tiny(["shelf", "shelf"], [1.6]),
    "the nearer goes": tiny(["shelf"], [2.6, 1.6]),
    "each goes": tiny(["shelf", "fridge"], [1.6, 6.8]),
    "hands share": tiny(["shelf", "shelf"], [1.6, 2.6]),
    "another opens": tiny(["fridge", "fridge"], [6.8, 6.8]),
    "next room": tiny(["shelf"], [1.6], door=3.0),
}


class TestTinyWorlds:
    """What an exhaustive search finds is what the bound says."""

    @pytest.mark.parametrize("name", SEARCHED)
    def test_the_bound_is_what_a_search_finds(self, name: str) -> None:
        bound = lower_bound(SEARCHED[name]).steps
        assert fewest_steps(SEARCHED[name], most=bound + 2) == bound

    @pytest.mark.parametrize("seed", range(8))
    def test_no_search_finds_less_where_walks_are_no_whole_metres(self, seed: int) -> None:
        chance = random.Random(seed)
        starts = [chance.uniform(-1, 8) for _ in range(chance.choice((1, 1, 2)))]
        lie = [chance.choice(("shelf", "fridge"))]
        episode = tiny(lie, starts, table=chance.uniform(2, 6), open_=chance.random() < 0.5)
        bound = lower_bound(episode).steps
        assert bound <= fewest_steps(episode, most=bound + 4)


class TestPlayedEpisodes:
    """Teams that know where everything is, and choose at random, never beat the bound."""

    @pytest.mark.parametrize("seed", range(6))
    def test_no_informed_team_beats_the_bound(self, seed: int) -> None:
        episode = generate(seed, agents=1 + seed % 4)
        bound = lower_bound(episode).steps
        assert 0 < bound <= min(played(episode, chance) for chance in range(3))

    def test_more_agents_never_need_more(self) -> None:
        bounds = [lower_bound(generate(3, agents=agents)).steps for agents in (1, 2, 3, 4)]
        assert bounds == sorted(bounds, reverse=True)

    def test_what_is_done_needs_nothing(self) -> None:
        episode = generate(1)
        (goal, *_) = episode.goals
        lying = next(thing.id for thing in episode.things if thing.name == goal.name)
        done = episode.model_copy(
            update={
                "goals": [goal.model_copy(update={"count": 1})],
                "places": {**episode.places, lying: (goal.relation, goal.target)},
            }
        )
        assert lower_bound(done).steps == 0

    def test_what_cannot_be_searched_is_left_out_and_said(self) -> None:
        episode = generate(5, agents=1)
        (goal, *others) = episode.goals
        bottle = next(thing for thing in episode.things if thing.name == goal.name)
        shut = next(thing.id for thing in episode.things if thing.category == "container")
        more = [bottle.model_copy(update={"id": 9000 + number}) for number in range(18)]
        large = episode.model_copy(
            update={
                "goals": [goal.model_copy(update={"count": 14}), *others],
                "things": [*episode.things, *more],
                "places": {**episode.places, **{each.id: ("inside", shut) for each in more}},
            }
        )
        assert "left out" in lower_bound(large).how


def played(episode: Episode, seed: int) -> int:
    """Play with full information: walk to wanted things at random, open what holds them, bring them."""
    world, chance = World(episode, seed=seed), random.Random(seed)
    beliefs = [Beliefs(agent=agent) for agent in range(len(episode.starts))]
    plans = [decided(world, agent, beliefs[agent], chance) for agent in range(len(beliefs))]
    while not world.done and world.steps < World.LIMIT:
        for event in advance(world, plans, beliefs)[0]:
            for agent in range(len(beliefs)) if event.agent < 0 else [event.agent]:
                plans[agent] = decided(world, agent, beliefs[agent], chance)
    return world.steps if world.done else 10**6


def decided(world: World, agent: int, beliefs: Beliefs, chance: random.Random) -> Plan:
    know_all(world, beliefs)
    beliefs.update(world.observe(agent))
    offered = possible(world.observe(agent), beliefs, world.episode.goals)
    useful = [each for each in offered if each.kind in ("goput", "gograb")]
    useful += [each for each in offered if each.kind == "gocheck" and holds_wanted(world, each)]
    return Plan.of(chance.choice(useful or [Macro(kind="wait")]), world.episode.goals)


def know_all(world: World, beliefs: Beliefs) -> None:
    """Tell a member what there is to see in every room."""
    body = world.agents[beliefs.agent]
    here = body.room
    for room in world.layout.centers:
        body.room = room
        beliefs.update(world.observe(beliefs.agent))
    body.room = here


def holds_wanted(world: World, macro: Macro) -> bool:
    names = world.episode.goal_names()
    return any(
        place == ("inside", macro.target) and world.things[thing].name in names
        for thing, place in world.places.items()
    )
