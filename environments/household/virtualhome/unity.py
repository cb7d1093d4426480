"""VirtualHome's simulator itself, which a user has started, by its HTTP protocol.

Written after the client of the package `virtualhome` 2.3 (`comm_unity.py`), which cannot be installed beside
today's libraries; it was tried against a double of the protocol, not against the simulator.
"""

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import httpx
import yaml

from mneme.core.errors import MnemeError, ModelUnavailable
from mneme.environments.household.episode import Episode
from mneme.environments.household.virtualhome.graph import Graph

UNITY_OPTIONS: dict[str, Graph] = yaml.safe_load(
    Path(__file__).with_name("unity.yaml").read_text(encoding="utf-8")
)
SIMULATOR_SECONDS = 60.0
"""Seconds that the simulator may take for a step."""
VIRTUALHOME_ROOMS = ("kitchen", "bedroom", "livingroom", "bathroom")
"""Rooms by whose name VirtualHome can place an agent."""


class Unity:
    """VirtualHome's simulator, which the user has started, by its HTTP protocol."""

    def __init__(self, url: str) -> None:
        self._url = url

    def graph(self) -> Graph:
        """Return the apartment and everybody in it."""
        graph: Graph = json.loads(self._post("environment_graph")["message"])
        return graph

    def act(self, lines: Mapping[int, str]) -> Mapping[int, str]:
        """Execute the lines of all agents in one step, without animation; return errors by agent, or ""."""
        # One step of the simulator: a line for each character, with | between them.
        script = "|".join(f"<char{agent}> {line}" for agent, line in sorted(lines.items()))
        answer = self._post("render_script", strings=[json.dumps(UNITY_OPTIONS["script"]), script])
        said = "" if answer["success"] else str(answer.get("message") or "it is not possible")
        return dict.fromkeys(lines, said)

    def set_up(self, graph: Graph, episode: Episode, rooms: Sequence[int]) -> None:
        """Load the apartment, furnish it as the episode says, and add the agents. Raises MnemeError."""
        number = [int(word) for word in episode.apartment.split() if word.isdigit()]
        for action in ("clear", "environment"):
            self._post(action, numbers=number)
        still = {node["id"] for node in graph["nodes"] if node["category"] != "Characters"}
        scene = {
            "nodes": [node for node in graph["nodes"] if node["id"] in still],
            "edges": [e for e in graph["edges"] if e["from_id"] in still and e["to_id"] in still],
        }
        answer = self._post("expand_scene", strings=[json.dumps(UNITY_OPTIONS["scene"]), json.dumps(scene)])
        if not answer["success"]:
            raise MnemeError(
                f"VirtualHome cannot furnish {episode.apartment}: {answer.get('message')}",
                "Play an episode of C-WAH, whose apartments it has.",
            )
        names = {room.id: room.name for room in episode.rooms()}
        for looks, room in zip(("Chars/Female1", "Chars/Male1") * 2, rooms, strict=False):
            place = {  # VirtualHome takes a character to these rooms by name, to others at random
                "mode": "fix_room" if names[room] in VIRTUALHOME_ROOMS else "random",
                "initial_room": names[room],
            }
            asked = {"character_resource": looks, "character_position": {"x": 0, "y": 0, "z": 0}, **place}
            self._post("add_character", strings=[json.dumps(asked)])

    def characters(self, agents: int) -> list[int]:
        """Return the ids of the agents. Raises MnemeError where there are fewer."""
        found = sorted(n["id"] for n in self.graph()["nodes"] if n["class_name"] == "character")
        if len(found) < agents:
            raise MnemeError(
                f"VirtualHome has {len(found)} of {agents} agents.", "Begin the run anew, or play with fewer."
            )
        return found[:agents]

    def _post(self, action: str, *, numbers: Sequence[int] = (), strings: Sequence[str] = ()) -> Graph:
        body = {"id": action, "action": action, "intParams": list(numbers), "stringParams": list(strings)}
        try:
            answer = _client(self._url).post(self._url, json=body)
            answer.raise_for_status()
            found: Graph = answer.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise ModelUnavailable(
                f"No VirtualHome answers at {self._url}: {error}",
                "Start its simulator (virtual-home.org) with -http-port, and give its address.",
            ) from error
        return found


@lru_cache(4)
def _client(url: str) -> httpx.Client:
    """Return a client that keeps its connection: a step asks several times."""
    # To read the certificates takes 0.1 s, and plain HTTP needs none.
    return httpx.Client(timeout=SIMULATOR_SECONDS, verify=url.startswith("https:"))
