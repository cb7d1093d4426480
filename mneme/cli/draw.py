"""Draw a graph: as Mermaid text, and as a picture where Graphviz is installed."""

import re
from pathlib import Path
from typing import Annotated

from mneme.cli.show import emit, prints_json
from mneme.core.errors import MnemeError
from mneme.graphs import load

END_WORD = re.compile(r"\bend\b")


def graph(
    name: Annotated[str, "A graph in langgraph.json, e.g. memory_agent."],
    png: Annotated[Path | None, "Also write it as an image to this file."] = None,
) -> None:
    """Print a graph as Mermaid."""
    drawing = load(name).graph.get_graph(xray=True)
    lines = drawing.draw_mermaid().split("\n")  # Mermaid reserves `end`: no node can have that name
    mermaid = "\n".join(line if line.strip() == "end" else END_WORD.sub("End", line) for line in lines)
    emit({"graph": name, "mermaid": mermaid})
    if not prints_json():
        print(mermaid)  # Rich would break its lines and read [brackets] as markup
    if png is None:
        return
    try:
        drawing.draw_png(str(png))
    except ImportError as error:  # pygraphviz is no dependency: it is compiled against Graphviz's headers
        raise MnemeError(
            "The picture needs Graphviz.",
            "apt-get install graphviz libgraphviz-dev && pip install pygraphviz; "
            "or paste the text into any Mermaid viewer.",
        ) from error
