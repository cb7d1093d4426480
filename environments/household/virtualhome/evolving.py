"""VirtualHome's simulator in Python, of the package `virtualhome`: actions on a graph without geometry."""

import importlib.util
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from mneme.core.errors import MnemeError
from mneme.environments.household.virtualhome.graph import Graph


class EvolvingGraph:
    """VirtualHome's simulator in Python: the semantics of its actions on a graph, without geometry."""

    def __init__(self, graph: Graph, agents: int) -> None:
        self._package, self._ajar = evolving_graph(), None
        environment = self._package.environment
        self._graph = environment.EnvironmentGraph(graph)
        self._state = environment.EnvironmentState(self._graph, {}, instance_selection=True)
        self._executors = [
            self._package.execution.ScriptExecutor(self._graph, {}, char_index=number)
            for number in range(agents)
        ]

    def graph(self) -> Graph:
        """Return the graph after all that was done."""
        graph: Graph = self._state.to_dict()
        return graph

    def act(self, lines: Mapping[int, str]) -> Mapping[int, str]:
        """Carry lines out one after the other; return why one could not be."""
        return {agent: self._done(agent, line) for agent, line in sorted(lines.items())}

    def _done(self, agent: int, line: str) -> str:
        executor = self._executors[agent]
        executor.info.messages.clear()
        script = self._package.scripts.read_script_from_list_string([line])
        state = self._with_open(script[0].subject()) if line.startswith("[putin]") else self._state
        happened, state = executor.execute_one_step(script, state)
        self._state = self._shut_again(state) if happened else self._state
        self._ajar = None
        return "" if happened else executor.info.get_error_string() or "it is not possible"

    def _with_open(self, target: Any) -> Any:
        """Return the state with a container open, for as long as something is put into it."""
        environment, node = self._package.environment, self._state.get_node(target.instance)
        if environment.State.CLOSED not in node.states:
            return self._state
        self._ajar = node
        opened = node.copy()
        opened.states = (opened.states - {environment.State.CLOSED}) | {environment.State.OPEN}
        return self._state.change_state([environment.ChangeNode(opened)])

    def _shut_again(self, state: Any) -> Any:
        if self._ajar is None:
            return state
        return state.change_state([self._package.environment.ChangeNode(self._ajar)])


@lru_cache(1)
def evolving_graph() -> ModuleType:
    """Load the simulator from the package `virtualhome`, and nothing else of it.

    Importing the package itself changes the search path and needs OpenCV. Raises MnemeError where it is
    absent.
    """
    spec = importlib.util.find_spec("virtualhome")
    if spec is None or spec.origin is None:
        raise MnemeError(
            "The package virtualhome is not installed.",
            "pip install --no-deps virtualhome  (it pins old versions of what it does not need for this)",
        )
    folder = Path(spec.origin).parent / "simulation" / "evolving_graph"
    name = "virtualhome_evolving_graph"
    found = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert found is not None and found.loader is not None, "a file has a loader"
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    found.loader.exec_module(module)
    for part in ("environment", "execution", "scripts"):
        importlib.import_module(f"{name}.{part}")
    return module
