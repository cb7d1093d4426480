"""Draw a graph: as Mermaid text, and as a picture where Graphviz is installed."""

import re
from pathlib import Path
from typing import Annotated

from langchain_core.runnables.graph import Graph

from mneme.cli.show import emit, prints_json
from mneme.core.errors import MnemeError
from mneme.graphs import load


def graph(
    name: Annotated[str, "A graph in langgraph.json, e.g. memory_agent."],
    png: Annotated[Path | None, "Also write it as an image to this file."] = None,
) -> None:
    """Print a graph as Mermaid."""
    drawing = load(name).graph.get_graph(xray=True)
    mermaid = as_mermaid(drawing)
    emit({"graph": name, "mermaid": mermaid})
    if not prints_json():
        print(mermaid)
    if png is None:
        return
    try:
        drawing.draw_png(str(png))
    except ImportError as error:
        raise MnemeError(
            "The picture needs Graphviz.",
            "apt-get install graphviz libgraphviz-dev && pip install pygraphviz; "
            "or paste the text into any Mermaid viewer.",
        ) from error


def as_mermaid(drawing: Graph) -> str:
    """Return a drawing as Mermaid, where `end` is a word of the language and no name of a node."""
    lines = drawing.draw_mermaid().split("\n")
    return "\n".join(line if line.strip() == "end" else re.sub(r"\bend\b", "End", line) for line in lines)
