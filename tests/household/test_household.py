"""Episodes of the household: loaded, generated, and refused."""

import json
from collections import Counter
from collections.abc import Callable
from os import environ
from pathlib import Path
from typing import Any

import pytest

from mneme.core.errors import BadInput
from mneme.environments.household import (
    GOAL_CATEGORIES,
    Episode,
    World,
    generate,
    load_episode,
    parse_episode,
    save_episode,
    with_agents,
)
from tests.doubles.apartment import FRIDGE, KITCHEN, STUDY, TABLE, values

REPOSITORY = Path(__file__).parents[2]
DATA = Path(environ.get("MNEME_DATA", REPOSITORY.parent / "shared" / "data")) / "cwah"
HIDEAWAYS = {"fridge", "dishwasher", "cabinet", "microwave", "kitchencabinet", "stove", "bathroomcabinet"}


@pytest.fixture(scope="module")
def recorded() -> list[Path]:
    found = sorted(DATA.glob("*.json"))
    if not found:
        pytest.skip(f"no C-WAH episodes in {DATA}: set MNEME_DATA")
    return found


def cwah(**changes: Any) -> dict[str, Any]:
    """Give an episode of our own in the form of C-WAH's files."""
    kitchen = {"id": 1, "class_name": "kitchen", "category": "Rooms", "center": [2, 1, 2], "size": [4, 2, 4]}
    bedroom = {**kitchen, "id": 2, "class_name": "bedroom", "center": [6, 1, 2]}
    plain: dict[str, Any] = {"center": [1, 0.5, 1], "size": [1, 1, 1], "states": [], "category": "Furniture"}
    nodes = [
        {**kitchen, "properties": [], "states": []},
        {**bedroom, "properties": [], "states": []},
        {**plain, "id": 3, "class_name": "door", "category": "Doors", "center": [4, 1, 2], "properties": []},
        {**plain, "id": 4, "class_name": "table", "properties": ["SURFACES"]},
        {**plain, "id": 5, "class_name": "fridge", "properties": ["CAN_OPEN"], "states": ["CLOSED"]},
        {**plain, "id": 6, "class_name": "plate", "properties": ["GRABBABLE"]},
        {**plain, "id": 7, "class_name": "apple", "properties": ["GRABBABLE"]},
        {**plain, "id": 8, "class_name": "wallclock", "properties": []},
        {**plain, "id": 9, "class_name": "closet", "properties": ["CONTAINERS", "CAN_OPEN"]},
        {**plain, "id": 10, "class_name": "apple", "properties": ["GRABBABLE"]},
    ]
    relations = [
        *((thing, "INSIDE", 1) for thing in (3, 4, 5, 6, 7, 8)),
        *((3, "BETWEEN", 1), (3, "BETWEEN", 2), (6, "INSIDE", 5), (7, "ON", 6)),
        *((9, "INSIDE", 2), (10, "INSIDE", 2), (10, "INSIDE", 9)),
    ]
    edges = [{"from_id": a, "relation_type": relation, "to_id": b} for a, relation, b in relations]
    return {
        "category": "Set up a dinner table",
        "goal": {"on_apple_4": 1},
        "agents": [{"id": 1, "room": "kitchen", "position": [1.0, 1.25, 2.0]}],
        "graph": {"nodes": nodes, "edges": edges},
        "env_id": 3,
    } | changes


def written(folder: Path, content: Any) -> Path:
    path = folder / "episode.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_recorded_episodes_load_whole(recorded: list[Path]) -> None:
    for path in recorded:
        episode = load_episode(path, agents=2)
        assert episode.category in GOAL_CATEGORIES
        assert [start.placed for start in episode.starts] == ["recorded", "recorded"]
        assert len(episode.rooms()) == 4
        assert len(episode.doors) == 3
        assert len(episode.model_dump_json()) < 30_000
        assert {thing.name for thing in episode.things if thing.category == "container"} == HIDEAWAYS


def test_recorded_goal_things_lie_where_the_graph_says(recorded: list[Path]) -> None:
    [path] = [path for path in recorded if "prepare_food" in path.name]
    episode = load_episode(path)
    names = {thing.id: thing.name for thing in episode.things}
    lying = Counter(
        (names[thing], relation, names[holder])
        for thing, (relation, holder) in episode.places.items()
        if names[thing] in episode.goal_names()
    )
    assert lying["apple", "inside", "dishwasher"] == 2
    assert lying["wine", "inside", "fridge"] == 1
    assert lying["wine", "on", "coffeetable"] == 1
    assert lying["juice", "inside", "cabinet"] == 1
    assert {goal.target_name for goal in episode.goals} == {"kitchentable"}


def test_a_file_keeps_what_rules_touch(tmp_path: Path) -> None:
    episode = load_episode(written(tmp_path, cwah()), agents=1)
    assert {thing.name for thing in episode.things} == {
        *("kitchen", "bedroom", "table", "fridge", "plate", "apple", "closet"),
    }
    assert episode.places[6] == ("inside", 5)
    assert episode.places[7] == ("inside", 5), "on a plate in the fridge is in the fridge"
    assert episode.places[10] == ("inside", 9), "shut into a closet, which no rule opens"
    assert episode.doors == [(1, 2, (4.0, 2.0))]
    assert World(episode).hidden(10)


def test_a_third_agent_is_placed_by_seed_and_says_so(tmp_path: Path) -> None:
    path = written(tmp_path, cwah())
    three = load_episode(path, agents=3, seed=5)
    assert [start.placed for start in three.starts] == ["recorded", "seeded rule", "seeded rule"]
    assert three == load_episode(path, agents=3, seed=5)
    assert three.starts[:2] == load_episode(path, agents=2, seed=5).starts
    assert any(three.starts != load_episode(path, agents=3, seed=seed).starts for seed in range(6, 12))


def test_an_episode_is_saved_and_loaded(tmp_path: Path) -> None:
    episode = generate(3, agents=3)
    save_episode(episode, tmp_path / "own.json")
    assert load_episode(tmp_path / "own.json", agents=3) == episode
    assert parse_episode(json.loads(json.dumps(episode.model_dump(mode="json")))) == episode


@pytest.mark.parametrize("agents", [0, 50, -1])
def test_impossible_teams_are_refused(agents: int, tmp_path: Path) -> None:
    path = written(tmp_path, cwah())
    refusals: list[Callable[[], Episode]] = [
        lambda: load_episode(path, agents=agents),
        lambda: generate(0, agents=agents),
        lambda: with_agents(generate(0), agents),
    ]
    for refused in refusals:
        with pytest.raises(BadInput, match=f"{agents} agents are not"):
            refused()


def without_edge(relation: str, start: int) -> dict[str, Any]:
    given = cwah()
    edges = given["graph"]["edges"]
    kept = [e for e in edges if (e["relation_type"], e["from_id"]) != (relation, start)]
    return given | {"graph": {**given["graph"], "edges": kept}}


def without_node(node: int) -> dict[str, Any]:
    given = cwah()
    return given | {
        "graph": {**given["graph"], "nodes": [n for n in given["graph"]["nodes"] if n["id"] != node]}
    }


def doubled_node() -> dict[str, Any]:
    given = cwah()
    graph = given["graph"]
    return given | {"graph": {**graph, "nodes": [*graph["nodes"], graph["nodes"][3]]}}


def unmeasured() -> dict[str, Any]:
    given = cwah()
    del given["graph"]["nodes"][3]["center"]
    return given


BAD_FILES: dict[str, tuple[Any, str]] = {
    "broken": ('{"goal": ', "not JSON"),
    "list": ([], "the file holds no JSON object"),
    "string": ('"graph"', "the file holds no JSON object"),
    "node twice": (doubled_node(), "graph.nodes: the id 4 occurs twice"),
    "agent far away": (
        cwah(agents=[{"room": "kitchen", "position": [1e9, 0, 1e9]}]),
        "agents.0.position: 999999996.0 m outside",
    ),
    "agent at no number": (
        cwah(agents=[{"room": "kitchen", "position": [float("nan"), 0, 1]}]),
        "agents.0.position: not a finite number",
    ),
    "no graph": ({"goal": {}}, "graph: this field is missing"),
    "no goal": ({key: value for key, value in cwah().items() if key != "goal"}, "goal: Field required"),
    "nothing asked": (cwah(goal={}), "goal: "),
    "half a goal": (cwah(goal={"on_apple_4": 0.5}), "goal.on_apple_4: "),
    "less than none": (cwah(goal={"on_apple_4": -1}), "goals.0.count: "),
    "none": (cwah(goal={"on_apple_4": 0}), "goals: there is no goal"),
    "unknown predicate": (cwah(goal={"under_apple_4": 1}), "goal: under_apple_4 is an unknown predicate"),
    "missing target": (cwah(goal={"on_apple_99": 1}), "goals: on_apple_99: the target 99 is missing"),
    "target of another kind": (
        cwah(goal={"inside_apple_4": 1}),
        r"target table \(4\) is not a container",
    ),
    "too few": (cwah(goal={"on_apple_4": 2}), "2 of apple are wanted and 1 can be reached"),
    "missing room": (without_node(2), "graph.edges: the node 2 is missing"),
    "unreachable room": (without_edge("BETWEEN", 3), r"doors: bedroom \(2\) cannot be reached"),
    "unreachable target": (without_edge("INSIDE", 4), "the target 4 is missing"),
    "agent nowhere": (
        cwah(agents=[{"room": "garage", "position": [0, 0, 0]}]),
        "agents.0.room: there is no room garage",
    ),
    "agent without position": (cwah(agents=[{"room": "kitchen"}]), "agents.0.position: Field required"),
    "unmeasured": (unmeasured(), "graph.nodes.3.center: Field required"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_refused_by_field(case: str, tmp_path: Path) -> None:
    content, message = BAD_FILES[case]
    with pytest.raises(BadInput, match=message) as refused:
        load_episode(written(tmp_path, content))
    assert refused.value.hint


def test_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        load_episode(tmp_path / "absent.json")


BAD_VALUES: dict[str, tuple[dict[str, Any], str]] = {
    "no rooms": ({"things": values()["things"][3:]}, "things: there is no room"),
    "thing twice": (
        {"things": [*values()["things"], values()["things"][-1]]},
        "things: the id 23 occurs twice",
    ),
    "infinite": (
        {"things": [*values()["things"], [99, "vase", "object", [0, 0, float("inf")], [1, 1, 1]]]},
        "things: a center or size",
    ),
    "nowhere": ({"places": {}}, r"places: kitchentable \(10\) has no place"),
    "held by a ghost": ({"places": values()["places"] | {20: ("inside", 77)}}, "77, which is missing"),
    "no such thing": (
        {"places": values()["places"] | {77: ("inside", 1)}},
        "places: 77 is not in this episode",
    ),
    "fridge on a table": (
        {"places": values()["places"] | {FRIDGE: ("on", TABLE)}},
        "a container .11. cannot",
    ),
    "under": ({"places": values()["places"] | {20: ("under", 11)}}, "places.20.0: "),
    "door to nowhere": ({"doors": [(KITCHEN, 77, (0, 0))]}, "doors: a door leads to the missing room 77"),
    "no door": ({"doors": [values()["doors"][0]]}, r"doors: bedroom \(3\) cannot be reached"),
    "start nowhere": (
        {"starts": [{"room": 77, "position": (0, 0), "placed": "recorded"}]},
        "starts.0.room: there is no room 77",
    ),
    "start far away": (
        {"starts": [{"room": KITCHEN, "position": (3, 40), "placed": "recorded"}]},
        r"starts.0.position: 34.0 m outside its room",
    ),
    "nobody": ({"starts": []}, "0 agents are"),
    "crowd": ({"starts": values()["starts"] * 25}, "50 agents are"),
    "open table": ({"open": [TABLE]}, "open: 10 is not a container"),
    "goal twice": ({"goals": values()["goals"][:1] * 2}, "goals: a predicate occurs twice"),
    "no goals": ({"goals": []}, "goals: there is no goal"),
}


@pytest.mark.parametrize("case", BAD_VALUES)
def test_bad_values_are_refused_by_field(case: str) -> None:
    changes, message = BAD_VALUES[case]
    with pytest.raises(BadInput, match=message):
        parse_episode(values(**changes))


def test_generated_episodes_are_the_same_for_the_same_seed() -> None:
    assert generate(7, agents=3) == generate(7, agents=3)
    assert generate(7) != generate(8)
    assert generate(7, agents=2).starts == generate(7, agents=3).starts[:2]
    assert generate(7, agents=4).things == generate(7, agents=1).things


def test_generated_episodes_can_share_an_apartment() -> None:
    one, other = generate(1, "Prepare Tea", apartment=5), generate(2, "Wash Dishes", apartment=5)
    assert one.apartment == other.apartment
    assert one.doors == other.doors
    fixed = [[thing for thing in episode.things if thing.category != "object"] for episode in (one, other)]
    assert fixed[0] == fixed[1]
    assert one.places != other.places


@pytest.mark.parametrize("category", GOAL_CATEGORIES)
@pytest.mark.parametrize("rooms", [4, 5, 6])
def test_generated_episodes_have_what_is_asked(category: str, rooms: int) -> None:
    episode = generate(11, category, agents=4, rooms=rooms)
    assert episode.category == category
    assert len(episode.rooms()) == rooms
    assert len(episode.starts) == 4
    assert len({room.name for room in episode.rooms()}) == rooms


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"category": "Mow Lawn"}, "category"), ({"rooms": 3}, "rooms"), ({"rooms": 7}, "rooms")],
)
def test_impossible_wishes_are_refused(arguments: dict[str, Any], field: str) -> None:
    with pytest.raises(BadInput, match=f"{field}: "):
        generate(0, **arguments)


def test_generated_episodes_resemble_recorded_ones() -> None:
    """Five recorded: 3 or 5 things wanted, 32 of their classes for 21 wanted, 24 of the 32 hidden."""
    episodes = [generate(seed) for seed in range(100)]
    wanted = supply = hidden = 0
    for episode in episodes:
        asked = sum(goal.count for goal in episode.goals)
        assert asked in (3, 5)
        assert 270 <= len(episode.things) <= 330
        assert len(episode.model_dump_json()) < 30_000
        assert not any(World(episode).progress.values()), "nothing is done at the start"
        lying = [episode.places[t.id] for t in episode.things if t.name in episode.goal_names()]
        wanted, supply = wanted + asked, supply + len(lying)
        hidden += sum(relation == "inside" for relation, _ in lying)
    assert 1.35 < supply / wanted < 1.65
    assert 0.7 < hidden / supply < 0.8


def test_generated_rooms_do_not_overlap_and_doors_lie_on_their_walls() -> None:
    for seed in range(60):
        episode = generate(seed)
        rooms = episode.rooms()
        for number, one in enumerate(rooms):
            for other in rooms[:number]:
                apart = [
                    abs(one.center[axis] - other.center[axis]) - (one.size[axis] + other.size[axis]) / 2
                    for axis in (0, 2)
                ]
                assert max(apart) > -0.01
        by_id = episode.by_id()
        for first, second, (x, z) in episode.doors:
            for room in (by_id[first], by_id[second]):
                assert abs(x - room.center[0]) < room.size[0] / 2 + 0.01
                assert abs(z - room.center[2]) < room.size[2] / 2 + 0.01


def test_starts_are_in_their_rooms() -> None:
    for seed in range(30):
        episode = generate(seed, agents=4)
        by_id = episode.by_id()
        for start in episode.starts:
            room = by_id[start.room]
            assert start.placed == "seeded rule"
            assert abs(start.position[0] - room.center[0]) <= room.size[0] / 4 + 0.01
            assert abs(start.position[1] - room.center[2]) <= room.size[2] / 4 + 0.01


def test_the_small_apartment_is_playable() -> None:
    episode = parse_episode(values())
    assert episode.room_of(22) == STUDY
    assert episode.goal_names() == {"apple", "wine"}
