"""Read the episode files of C-WAH: a goal, a category, starts, and a VirtualHome graph."""

import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, Field

from mneme.core.errors import BadInput
from mneme.environments.household.episode import (
    CONTAINERS,
    Kind,
    Relation,
    check_ids,
    check_position,
    read_fields,
    require,
)
from mneme.environments.household.layout import distance

_PREDICATE = re.compile(r"(on|inside)_(\w+)_(\d+)")
_CATEGORY = {  # C-WAH's words, and the paper's
    "Prepare afternoon tea": "Prepare Tea",
    "Wash dishes": "Wash Dishes",
    "Prepare a meal": "Prepare a Meal",
    "Put groceries": "Put Groceries",
    "Set up a dinner table": "Set up Table",
}
PLACEMENT_RELATIONS: dict[str, Relation] = {"ON": "on", "INSIDE": "inside"}
Triple = tuple[float, float, float]


class Node(BaseModel):
    """A thing of the graph, in metres."""

    id: int
    class_name: str
    category: str
    properties: list[str] = []
    states: list[str] = []
    center: Triple
    size: Triple

    @property
    def shut(self) -> bool:
        """Return whether the content cannot be seen."""
        return "CAN_OPEN" in self.properties and "OPEN" not in self.states


class Edge(BaseModel):
    """A relation between two nodes."""

    from_id: int
    relation_type: str
    to_id: int


class Graph(BaseModel):
    """VirtualHome's graph of an apartment."""

    nodes: list[Node]
    edges: list[Edge]


class RecordedStart(BaseModel):
    """Recorded start of an agent: the name of its room, and (x, y, z)."""

    room: str
    position: Triple


class File(BaseModel):
    """An episode file."""

    category: str
    goal: dict[str, int] = Field(min_length=1)
    agents: list[RecordedStart] = []
    graph: Graph
    env_id: int | str = ""


def read_cwah(given: dict[str, Any], name: str, seed: int) -> dict[str, Any]:
    """Turn the values of a C-WAH file into those of an episode; `BadInput` names the field at fault."""
    file = read_fields(File, given, name)
    check_ids("graph.nodes", [node.id for node in file.graph.nodes])
    wanted: list[dict[str, Any]] = []
    for key, count in file.goal.items():
        found = _PREDICATE.fullmatch(key)
        if not found:
            hint = "Write on_<class>_<id> or inside_<class>_<id>."
            raise BadInput(f"goal: {key} is an unknown predicate.", hint)
        if count:
            named = {"relation": found[1], "name": found[2], "target": int(found[3])}
            wanted.append({**named, "count": count})
    kept = _Kept(file.graph, {goal["target"] for goal in wanted})
    names = {node.id: node.class_name for node in file.graph.nodes}
    return {
        "id": name.removesuffix(".json"),
        "source": "C-WAH",
        "apartment": f"C-WAH {file.env_id}".strip(),
        "category": _CATEGORY.get(file.category, file.category),
        # A target that is not in the graph is refused with the episode, which names the field.
        "goals": [{**goal, "target_name": names.get(goal["target"], "target")} for goal in wanted],
        "starts": [_start(agent, f"agents.{number}", kept) for number, agent in enumerate(file.agents)],
        "things": [
            (node.id, node.class_name, kind, _rounded(node.center), _rounded(node.size))
            for node, kind in kept.things()
        ],
        "places": kept.places,
        "doors": list(kept.doors()),
        "open": [n.id for n, kind in kept.things() if kind == "container" and "OPEN" in n.states],
        "seed": seed,
    }


def read_places(graph: dict[str, Any], targets: set[int]) -> dict[int, tuple[Relation, int]]:
    """Return the holder of each object in a graph in VirtualHome's own form, with bounding boxes."""
    nodes = []
    for node in graph["nodes"]:
        # A character may have no box; places come from relations alone, so that any will do.
        box = node.get("bounding_box") or {"center": (0.0, 0.0, 0.0), "size": (0.0, 0.0, 0.0)}
        nodes.append({**node, "center": box["center"], "size": box["size"]})
    return _Kept(read_fields(Graph, {"nodes": nodes, "edges": graph["edges"]}, "graph"), targets).places


def _rounded(metres: Triple) -> Triple:
    x, y, z = metres
    return round(x, 3), round(y, 3), round(z, 3)


def _start(agent: RecordedStart, field: str, kept: "_Kept") -> dict[str, Any]:
    """Return the room of an agent: of several with the same name, the nearest to its position."""
    position = agent.position[0], agent.position[2]
    rooms = [kept.nodes[room] for room in kept.rooms if kept.nodes[room].class_name == agent.room]
    require(bool(rooms), f"{field}.room: there is no room {agent.room}.", "Name a room of the graph.")
    room = min(rooms, key=lambda each: distance(position, each))
    check_position(f"{field}.position", position, room)
    return {"room": room.id, "position": position, "placed": "recorded"}


class _Kept:
    """The part of a graph that the household's rules use: its things, and their places."""

    def __init__(self, graph: Graph, targets: set[int]) -> None:
        self.nodes = {node.id: node for node in graph.nodes}
        self.rooms = [node.id for node in graph.nodes if node.category == "Rooms"]
        self._targets = targets
        self._holders: dict[int, list[tuple[Relation, int]]] = {}
        self._between: dict[int, list[int]] = {}
        for edge in graph.edges:
            for end in (edge.from_id, edge.to_id):
                missing = f"graph.edges: the node {end} is missing."
                require(end in self.nodes, missing, "Add the node or drop the edge.")
            if edge.relation_type == "BETWEEN":
                self._between.setdefault(edge.from_id, []).append(edge.to_id)
            if relation := PLACEMENT_RELATIONS.get(edge.relation_type):
                self._holders.setdefault(edge.from_id, []).append((relation, edge.to_id))
        self.places: dict[int, tuple[Relation, int]] = {}
        for node in graph.nodes:
            room = next((holder for _, holder in self._chain(node.id) if holder in self.rooms), None)
            kind = self._kind(node)
            if room is not None and kind not in (None, "room"):
                self.places[node.id] = self._held(node, room) if kind == "object" else ("inside", room)

    def things(self) -> Iterator[tuple[Node, Kind]]:
        """Return the rooms, and the objects in them."""
        for node in self.nodes.values():
            kind = self._kind(node)
            # What is outside of all rooms has no place, and takes no part.
            if kind is not None and (kind == "room" or node.id in self.places):
                yield node, kind

    def doors(self) -> Iterator[tuple[int, int, tuple[float, float]]]:
        """Return the doors between two rooms."""
        for node in self.nodes.values():
            rooms = self._between.get(node.id, [])
            if node.class_name == "door" and len(rooms) >= 2:
                yield rooms[0], rooms[1], (round(node.center[0], 3), round(node.center[2], 3))

    def _kind(self, node: Node) -> Kind | None:
        if node.category == "Rooms":
            return "room"
        if node.class_name in CONTAINERS:
            return "container"
        if "GRABBABLE" in node.properties:
            return "object"
        bears = not {"SURFACES", "CONTAINERS"}.isdisjoint(node.properties) and node.category not in (
            "Floor",
            "Ceiling",
            "Walls",
        )
        return "surface" if bears or node.id in self._targets else None

    def _held(self, node: Node, room: int) -> tuple[Relation, int]:
        """Return the holder of an object: its container, else the surface under it, else the room."""
        # VirtualHome names several holders of most objects, such as a plate, the table under it and the room.
        chain = [(relation, self.nodes[holder]) for relation, holder in self._chain(node.id)]
        for relation, holder in chain:
            if relation == "inside" and self._kind(holder) == "container":
                return "inside", holder.id
        for relation, holder in chain:
            if self._kind(holder) == "surface":
                return ("inside" if relation == "inside" and holder.shut else "on"), holder.id
            if self._kind(holder) == "container":
                return "on", holder.id
        return "inside", room

    def _chain(self, thing: int) -> list[tuple[Relation, int]]:
        """Return the holder of an object, its holder's holder, and so on, nearest first."""
        found = list(self._holders.get(thing, []))
        for _, holder in found:  # grows meanwhile: a search in breadth
            found += [each for each in self._holders.get(holder, []) if each not in found]
        return found
