"""The real VirtualHome behind the household's interface: a double of its simulator."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from mneme.core.errors import MnemeError, ModelUnavailable
from mneme.environments.household import Action, World, parse_episode
from mneme.environments.household.acting import WAIT, walk
from mneme.environments.household.virtualhome.graph import Graph, characters_of, graph_of
from mneme.environments.household.virtualhome.world import VirtualHomeWorld
from mneme.graphs.mita import builder as mita
from mneme.nodes.household.context import HouseholdContext
from tests.doubles.apartment import DESK, FRIDGE, KITCHEN, STUDY, values

LINE = re.compile(r"<char(\d)> \[(\w+)\](?: <\w+> \((\d+)\))(?: <\w+> \((\d+)\))?")
KINDS: Any = {
    "walktowards": "walk",
    "open": "open",
    "grab": "grab",
    "putback": "put_on",
    "putin": "put_in",
}


def opening(target: int) -> Action:
    return Action(kind="open", target=target)


class UnityDouble(BaseHTTPRequestHandler):
    """VirtualHome's protocol in front of Mneme's own world, as the client of `virtualhome` 2.3 speaks it."""

    world: World
    asked: list[str]
    people = 0

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append(body["action"])
        answer = getattr(self, f"_{body['action']}", lambda _: {"success": True, "message": ""})(body)
        sent = json.dumps({"id": body["id"], "value": 0, **answer}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def _add_character(self, body: Graph) -> Graph:
        type(self).people += 1
        return {"success": True, "message": ""}

    def _environment_graph(self, _: Graph) -> Graph:
        world = self.world
        close = [[thing for thing in world.things if world.is_close(body, thing)] for body in world.agents]
        graph = graph_of(world, close)
        people = dict(zip(characters_of(world), world.agents, strict=True))
        for node in graph["nodes"]:
            if body := people.get(node["id"]):
                x, z = body.position
                node["bounding_box"] = {"center": [x, 0.9, z], "size": [0.5, 1.8, 0.5]}
        gone = {*[*people][self.people :]}
        graph["nodes"] = [node for node in graph["nodes"] if node["id"] not in gone]
        return {"success": True, "message": json.dumps(graph)}

    def _render_script(self, body: Graph) -> Graph:
        _, script = body["stringParams"]
        actions = [WAIT] * len(self.world.agents)
        for agent, verb, first, second in LINE.findall(script):
            kind, ids = KINDS[verb], [int(first), *([int(second)] if second else [])]
            held = {"object": ids[0]} if kind in ("grab", "put_on", "put_in") else {"target": ids[0]}
            actions[int(agent)] = Action(kind=kind, **held | ({"target": ids[1]} if second else {}))
        wrong = [each.why for each in self.world.step(actions) if not each.ok]
        return {"success": not wrong, "message": "; ".join(wrong)}

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def unity() -> Iterator[tuple[str, type[UnityDouble]]]:
    handler = type("Here", (UnityDouble,), {"world": World(parse_episode(values())), "asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", handler
        server.shutdown()


def test_a_running_simulator_is_furnished_peopled_and_played(unity: tuple[str, type[UnityDouble]]) -> None:
    url, double = unity
    world = VirtualHomeWorld(parse_episode(values()), url)
    assert double.asked[:5] == ["clear", "environment", "expand_scene", "add_character", "add_character"]
    assert [body.room for body in world.agents] == [KITCHEN, STUDY]
    first, second = world.step([walk(FRIDGE), walk(DESK)])
    assert first.ok and second.ok and world.agents[0].position == double.world.agents[0].position
    assert not world.step([opening(FRIDGE), WAIT])[0].ok or FRIDGE in world.open
    again = VirtualHomeWorld(world.episode, url, world.state())
    assert double.asked.count("expand_scene") == 1 and again.observe(1) == world.observe(1)


async def test_a_team_plays_in_a_running_simulator(unity: tuple[str, type[UnityDouble]]) -> None:
    url, double = unity
    asked: Any = {"episode": values()}
    context = HouseholdContext(member="rules", manager="rules", simulator=url)
    ended = await mita.compile().ainvoke(asked, {"recursion_limit": 1000}, context=context)
    assert ended["success"] and double.world.done and ended["steps"] == double.world.steps


def test_without_a_simulator_the_error_says_what_to_do(unity: tuple[str, type[UnityDouble]]) -> None:
    with pytest.raises(ModelUnavailable, match="No VirtualHome answers") as refused:
        VirtualHomeWorld(parse_episode(values()), "http://127.0.0.1:1")
    assert "Start its simulator" in refused.value.hint
    url, double = unity
    world = VirtualHomeWorld(parse_episode(values()), url)
    double.people = 1
    with pytest.raises(MnemeError, match="has 1 of 2 agents"):
        VirtualHomeWorld(world.episode, url, world.state())
