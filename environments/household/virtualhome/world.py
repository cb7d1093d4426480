"""Play an episode in the real VirtualHome, behind the interface of the household world.

VirtualHome decides the effects of a step: this world translates actions into lines of its scripts, and reads
positions, held and reachable objects, open containers and places back from its graph. `World` decides the
rest: messages, which VirtualHome does not have, conflicts over one object, and observations.
"""

from collections.abc import Mapping
from typing import Any

from mneme.environments.household.acting import SUCCESS, Action, ActionResult, Observation
from mneme.environments.household.cwah import read_places
from mneme.environments.household.episode import Episode
from mneme.environments.household.state import Body
from mneme.environments.household.virtualhome.graph import (
    HOLDS,
    Graph,
    edges_from,
    graph_of,
)
from mneme.environments.household.virtualhome.unity import Unity
from mneme.environments.household.world import World

SCRIPT_VERBS = {"walk": "walktowards", "open": "open", "grab": "grab", "put_on": "putback", "put_in": "putin"}


class VirtualHomeWorld(World):
    """An episode that VirtualHome plays; when restored, it continues from VirtualHome's state.

    `where` is the address of its simulator, such as http://127.0.0.1:8080.
    """

    def __init__(
        self, episode: Episode, where: str, state: Mapping[str, Any] | None = None, seed: int = 0
    ) -> None:
        given = dict(state or {})
        given.pop("simulator", None)
        self._close: list[list[int]] = given.pop("close", [[] for _ in episode.starts])
        super().__init__(episode, given or None, seed)
        self.where = where
        self._simulator = Unity(where)
        if state is None:
            rooms = [body.room for body in self.agents]
            self._simulator.set_up(graph_of(self, self._close), episode, rooms)
        self._characters = self._simulator.characters(len(self.agents))
        self._sync()

    def state(self) -> dict[str, Any]:
        """Return all changes since the start as plain JSON values, and the VirtualHome that plays."""
        return {**super().state(), "simulator": self.where, "close": self._close}

    def _act_all(self, actions: Mapping[int, Action]) -> dict[int, ActionResult]:
        """Let VirtualHome execute all changes of the apartment in one step, and `World` the rest."""
        lines = {agent: line for agent, action in actions.items() if (line := self._line(action))}
        results = super()._act_all({n: action for n, action in actions.items() if n not in lines})
        for agent in lines:
            self.agents[agent].sent = False  # `_act` would do so, and these do not pass it
        why = self._simulator.act(lines) if lines else {}
        self._sync()
        return results | {n: self._outcome(n, actions[n], why.get(n, "")) for n in lines}

    def observe(self, agent: int) -> Observation:
        """Return an agent's observation, and the objects its hands reach by VirtualHome."""
        near = self._close[agent]
        within = [thing for thing in self.things if self.is_close(self.agents[agent], thing)]
        return (
            super().observe(agent).model_copy(update={"within_reach": [*near, *within], "reach_told": True})
        )

    def is_close(self, body: Body, thing: int) -> bool:
        """Return whether VirtualHome reports an object, or the surface under it, as close to an agent.

        It reports an object in a container to an agent that walked to the container or to the object.
        """
        agent = next((number for number, each in enumerate(self.agents) if each is body), None)
        if agent is None:
            return super().is_close(body, thing)
        relation, holder = self.places.get(thing, ("on", thing))
        told = {thing, holder} - self._rooms.keys() if relation == "on" else {thing}
        return not told.isdisjoint(self._close[agent])

    def _line(self, action: Action) -> str:
        """Return an action as a line of a script; nothing for what VirtualHome does not know."""
        named = [each for each in (action.object, action.target) if each is not None]
        if action.kind not in SCRIPT_VERBS or not named or any(each not in self.things for each in named):
            return ""
        return f"[{SCRIPT_VERBS[action.kind]}] " + " ".join(f"<{self.things[n].name}> ({n})" for n in named)

    def _outcome(self, agent: int, action: Action, why: str) -> ActionResult:
        """Return the result by the graph, not by the reply: an action that changed nothing has failed."""
        place = self.places.get(action.object) if action.object is not None else None
        happened = {
            "open": action.target in self.open,
            "grab": action.object in self.agents[agent].hands,
            "put_on": place == ("on", action.target),
            "put_in": place == ("inside", action.target),
        }.get(action.kind, not why)
        return SUCCESS if happened else ActionResult(ok=False, why=why or "VirtualHome did not do it")

    # -- what VirtualHome knows ----------------------------------------------------------------------------

    def _sync(self) -> None:
        """Read the state back from VirtualHome."""
        graph = self._simulator.graph()
        nodes = {node["id"]: node for node in graph["nodes"]}
        for agent, character in enumerate(self._characters):
            body, edges = self.agents[agent], edges_from(graph, character)
            body.room = next((to for kind, to in edges if kind == "INSIDE" and to in self._rooms), body.room)
            body.hands = [to for hand in HOLDS for kind, to in edges if kind == hand]
            self._close[agent] = sorted({to for kind, to in edges if kind == "CLOSE" and to in self.things})
            if box := nodes[character].get("bounding_box"):
                body.position = float(box["center"][0]), float(box["center"][2])
        self._read_places(graph)
        containers = [thing.id for thing in self.episode.things if thing.category == "container"]
        self.open = {each for each in containers if "OPEN" in nodes.get(each, {}).get("states", ())}
        self._views.clear()  # VirtualHome may have changed any room
        self._count()

    def _read_places(self, graph: Graph) -> None:
        held = {thing for body in self.agents for thing in body.hands}
        read = read_places(graph, {goal.target for goal in self.episode.goals})
        for thing in self.episode.things:
            if thing.category == "object" and thing.id in read:
                self.places[thing.id] = read[thing.id]
        for each in held:
            self.places.pop(each, None)
        start = self.episode.places
        self._moved = {each for each, place in self.places.items() if place != start.get(each)} | held
