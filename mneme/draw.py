"""Draw a graph: as Mermaid text, and as a picture where Graphviz is installed."""

import json
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from langchain_core.runnables.graph import Graph

import graphs
from mneme.errors import BadInput, MnemeError


async def draw(name: str, png: Path | None, as_json: bool) -> None:
    """Print the graph of that name as Mermaid, and draw it into a file where one is given."""
    drawing = import_module(f"graphs.{_known(name)}").graph.get_graph(xray=True)
    mermaid = drawing.draw_mermaid()
    print(json.dumps({"graph": name, "mermaid": mermaid}) if as_json else mermaid)
    if png is not None:
        _draw_png(drawing, png)


def _known(name: str) -> str:
    names = sorted(module.name for module in iter_modules(graphs.__path__))
    if name not in names:
        raise BadInput(f"There is no graph {name!r}.", f"There are: {', '.join(names)}.")
    return name


def _draw_png(drawing: Graph, png: Path) -> None:
    try:
        drawing.draw_png(str(png))
    except ImportError as error:
        raise MnemeError(
            "The picture needs Graphviz.",
            "apt-get install graphviz libgraphviz-dev && pip install pygraphviz; "
            "or paste the Mermaid text into any Mermaid viewer.",
        ) from error
