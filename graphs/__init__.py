"""One compiled LangGraph graph per workflow; `baselines` holds what the papers compare with.

An entry point of the group `mneme.household_methods` names a module of another package with a `builder`.
"""

from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from types import ModuleType

from mneme.core.errors import BadInput
from mneme.graphs import baselines

METHOD_PLUGINS = "mneme.household_methods"


def load(name: str) -> ModuleType:
    """Return the module of a graph, with its `builder` and its `graph`. Raises BadInput for another name."""
    places = {**_places(__name__, __path__), **_places(baselines.__name__, baselines.__path__)}
    # Graphs of Mneme come first, so that an installed package cannot replace one by its name.
    if name not in places and name in (plugged := entry_points(group=METHOD_PLUGINS)).names:
        module: ModuleType = plugged[name].load()
        return module
    if name not in places:
        raise BadInput(f"There is no graph {name!r}.", f"There are: {', '.join(sorted(places))}.")
    return import_module(places[name])


def _places(package: str, folders: list[str]) -> dict[str, str]:
    return {each.name: f"{package}.{each.name}" for each in iter_modules(folders) if not each.ispkg}
