"""Load C-WAH episodes, by path, from where the user keeps them."""

import json
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from environments.household.episode import (
    CONTAINERS,
    MOST_AGENTS,
    Episode,
    Start,
    Thing,
    check_agents,
    parse_episode,
)
from mneme.errors import BadInput

_PREDICATE = re.compile(r"(on|inside)_(\w+)_(\d+)")
_CATEGORY = {
    "Prepare afternoon tea": "Prepare Tea",
    "Wash dishes": "Wash Dishes",
    "Prepare a meal": "Prepare a Meal",
    "Put groceries": "Put Groceries",
    "Set up a dinner table": "Set up Table",
}


def load_episode(path: Path | str, agents: int = 2, seed: int = 0) -> Episode:
    """Load an episode of C-WAH, or one that `save_episode` wrote; `BadInput` names the field at fault.

    Agents beyond the recorded starts are placed by a seeded rule, which their starts say.
    """
    check_agents(agents)
    path = Path(path)
    given = _read(path)
    if "things" in given:
        return with_agents(parse_episode(given, path.name), agents, seed)
    plain = _from_graph(given, path, seed)
    return with_agents(parse_episode(plain, path.name), agents, seed)


def with_agents(episode: Episode, agents: int, seed: int = 0) -> Episode:
    """Give an episode so many agents: the first recorded starts, then seeded ones."""
    check_agents(agents)
    starts = [
        *episode.starts[:agents],
        *seeded_starts(episode.rooms(), episode.id, seed)[len(episode.starts) :],
    ]
    return parse_episode({**dict(episode), "starts": starts[:agents]}, episode.id)


def seeded_starts(rooms: Sequence[Thing], name: str, seed: int = 0) -> list[Start]:
    """Stand as many agents as there can be each in the inner half of a room drawn evenly."""
    chance = random.Random(f"starts:{name}:{seed}")  # noqa: S311
    return [_seeded(chance.choice(rooms), chance) for _ in range(MOST_AGENTS)]


def _seeded(room: Thing, chance: random.Random) -> Start:
    x, z = (room.center[axis] + room.size[axis] * chance.uniform(-0.25, 0.25) for axis in (0, 2))
    return Start(room=room.id, position=(round(x, 2), round(z, 2)), placed="seeded rule")


def _read(path: Path) -> dict[str, Any]:
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(
            f"episode: {path} cannot be read: {error.strerror}.", "Give the path of an episode."
        ) from error
    except ValueError as error:
        raise BadInput(f"{path.name}: not JSON: {error}.", "Give an episode file.") from error
    if not isinstance(given, dict) or not ("graph" in given or "things" in given):
        raise BadInput(f"{path.name}: graph: this field is missing.", "Give a C-WAH episode.")
    return given


class _Graph:
    """The part of a C-WAH graph that the rules touch."""

    def __init__(self, graph: Mapping[str, Any], targets: set[int]) -> None:
        self.nodes = {node["id"]: node for node in graph["nodes"]}
        self.rooms = {key for key, node in self.nodes.items() if node["category"] == "Rooms"}
        self.held: dict[int, list[tuple[str, int]]] = {}
        self.between: dict[int, list[int]] = {}
        for edge in graph["edges"]:
            self._edge(edge["from_id"], edge["relation_type"], edge["to_id"])
        self.targets = targets
        self.places: dict[int, tuple[str, int]] = {}
        for key, node in self.nodes.items():
            self._place(key, node)

    def _edge(self, thing: int, relation: str, other: int) -> None:
        if relation == "BETWEEN":
            self.between.setdefault(thing, []).append(other)
        if relation in ("ON", "INSIDE"):
            self.held.setdefault(thing, []).append((relation.lower(), other))

    def room(self, key: int) -> int | None:
        """Name the room a node is in."""
        return next((holder for _, holder in self.held.get(key, []) if holder in self.rooms), None)

    def _place(self, key: int, node: Mapping[str, Any]) -> None:
        room = self.room(key)
        if room is None or not self.kept(key, node):
            return
        self.places[key] = self._held_by(key) if "GRABBABLE" in node["properties"] else ("inside", room)

    def kept(self, key: int, node: Mapping[str, Any]) -> bool:
        """Say whether a rule touches a node."""
        return self.kind(key, node) is not None

    def kind(self, key: int, node: Mapping[str, Any]) -> str | None:
        """Say what a node is to the rules, or nothing."""
        if key in self.rooms:
            return "room"
        if node["class_name"] in CONTAINERS:
            return "container"
        if "GRABBABLE" in node["properties"]:
            return "object"
        if "SURFACES" in node["properties"] and node["category"] in ("Furniture", "Appliances", "Props"):
            return "surface"
        return "surface" if key in self.targets else None

    def _held_by(self, key: int) -> tuple[str, int]:
        """Find what bears an object: the container it is in, else what it stands on, else the room."""
        chain = self._ancestors(key)
        for relation, holder in chain:
            if relation == "inside" and self.nodes[holder]["class_name"] in CONTAINERS:
                return "inside", holder
        for relation, holder in chain:
            if self.kind(holder, self.nodes[holder]) in ("surface", "container"):
                return relation, holder
        room = self.room(key)
        assert room is not None
        return "inside", room

    def _ancestors(self, key: int) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        waiting = [key]
        while waiting:
            for relation, holder in self.held.get(waiting.pop(0), []):
                if holder not in self.rooms and all(holder != known for _, known in found):
                    found.append((relation, holder))
                    waiting.append(holder)
        return found


def _from_graph(given: Mapping[str, Any], path: Path, seed: int) -> dict[str, Any]:
    goals = [_goal(key, count) for key, count in given["goal"].items()]
    graph = _Graph(given["graph"], {goal["target"] for goal in goals})
    things = [
        Thing(
            id=key,
            name=node["class_name"],
            category=kind,
            center=tuple(node["center"]),
            size=tuple(node["size"]),
        )
        for key, node in graph.nodes.items()
        if (kind := graph.kind(key, node)) is not None and (key in graph.rooms or key in graph.places)
    ]
    doors = [
        (*graph.between[key][:2], (node["center"][0], node["center"][2]))
        for key, node in graph.nodes.items()
        if node["class_name"] == "door" and len(graph.between.get(key, [])) >= 2
    ]
    return {
        "id": path.stem,
        "source": "C-WAH",
        "apartment": f"C-WAH {given.get('env_id', '')}".strip(),
        "category": _CATEGORY.get(given["category"], given["category"]),
        "goals": goals,
        "starts": [_start(agent, number, graph) for number, agent in enumerate(given["agents"])],
        "things": things,
        "places": graph.places,
        "doors": doors,
        "open": [t.id for t in things if t.category == "container" and "OPEN" in graph.nodes[t.id]["states"]],
        "seed": seed,
    }


def _goal(key: str, count: int) -> dict[str, Any]:
    found = _PREDICATE.fullmatch(key)
    if not found:
        raise BadInput(
            f"goal: {key} is an unknown predicate.", "Write on_<class>_<id> or inside_<class>_<id>."
        )
    return {"relation": found[1], "name": found[2], "target": int(found[3]), "count": count}


def _start(agent: Mapping[str, Any], number: int, graph: _Graph) -> dict[str, Any]:
    room = next((key for key in graph.rooms if graph.nodes[key]["class_name"] == agent["room"]), None)
    if room is None:
        raise BadInput(
            f"agents.{number}.room: there is no room {agent['room']}.", "Name a room of the graph."
        )
    x, _, z = agent["position"]
    return {"room": room, "position": (x, z), "placed": "recorded"}
