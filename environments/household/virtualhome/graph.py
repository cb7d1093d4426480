"""Conversion of a world to VirtualHome's graph, and back."""

from collections.abc import Sequence
from typing import Any

from mneme.environments.household.layout import Box
from mneme.environments.household.world import World

Graph = dict[str, Any]
HOLDS = ("HOLDS_RH", "HOLDS_LH")
VIRTUALHOME_PROPERTIES = {
    "container": ["CAN_OPEN", "CONTAINERS"],
    "surface": ["SURFACES"],
    "object": ["GRABBABLE", "MOVABLE"],
    "door": ["CAN_OPEN"],
}
CATEGORY_NAMES = {"room": "Rooms", "door": "Doors", "character": "Characters", "object": "Props"}


def characters_of(world: World) -> list[int]:
    """Return ids for the agents that the graph does not use yet."""
    first = max(world.things) + len(world.episode.doors) + 1
    return [*range(first, first + len(world.agents))]


def graph_of(world: World, close: Sequence[Sequence[int]]) -> Graph:
    """Return the apartment as it is now; `close` is what each agent's hands reach."""
    nodes, edges = list[Graph](), list[Graph]()
    for each in world.episode.things:
        opened = ["OPEN" if each.id in world.open else "CLOSED"] if each.category == "container" else []
        nodes.append(_node(each.id, each.name, each.category, opened, Box(each.center, each.size)))
    for held, (relation, holder) in world.places.items():
        edges.append(_edge(held, relation.upper(), holder))
        room = world.room_of(held)
        if relation == "on" and room is not None:  # VirtualHome names its room, too
            edges.append(_edge(held, "INSIDE", room))
    for door, (one, other, (x, z)) in enumerate(world.episode.doors, max(world.things) + 1):
        nodes.append(_node(door, "door", "door", ["OPEN"], Box((x, 1.0, z), (1.0, 2.0, 0.1))))
        edges += [_edge(door, "BETWEEN", one), _edge(door, "BETWEEN", other)]
    for body, character, near in zip(world.agents, characters_of(world), close, strict=True):
        nodes.append(_node(character, "character", "character", [], None))
        edges.append(_edge(character, "INSIDE", body.room))
        for hand, thing in zip(HOLDS, body.hands, strict=False):  # the right hand first
            edges += [_edge(character, hand, thing), _edge(thing, "INSIDE", body.room)]
        for thing in near:
            edges += [_edge(character, "CLOSE", thing), _edge(thing, "CLOSE", character)]
    return {"nodes": nodes, "edges": edges}


def _node(number: int, name: str, kind: str, states: list[str], box: Box | None) -> Graph:
    return {
        "id": number,
        "class_name": name,
        "category": CATEGORY_NAMES.get(kind, "Furniture"),
        "prefab_name": None,
        "properties": VIRTUALHOME_PROPERTIES.get(kind, []),
        "states": states,
        "bounding_box": {"center": list(box.center), "size": list(box.size)} if box is not None else None,
    }


def _edge(origin: int, relation: str, to: int) -> Graph:
    return {"from_id": origin, "relation_type": relation, "to_id": to}


def edges_from(graph: Graph, origin: int) -> list[tuple[str, int]]:
    """Return the edges from a node, as relation and end."""
    found = (each for each in graph["edges"] if each["from_id"] == origin)
    return [(each["relation_type"], each["to_id"]) for each in found]
