"""Draw a graph as SVG in layers from its start to its end, in the colours of the page that it stands on."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise

import networkx as nx
from langchain_core.runnables.graph import Graph

WIDTH, HEIGHT, GAP, LAYER = 8, 30, 24, 64
"""Of a letter, of a box, between two boxes, from one layer to the next; in pixels."""
SWEEPS = 6
"""How often the layers are put in order, downwards and upwards in turn."""
MARK = (
    '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0 0 8 4 0 8z" fill="currentColor"/></marker>'
)
Node = str | tuple[str, str, int]
"""A node by its name; or where an edge passes a layer: from, to, and the layer."""
Place = tuple[float, float]


def as_svg(drawing: Graph, name: str) -> str:
    """Return a picture of a graph; a dashed edge is one of several ways, a bent one leads back."""
    edges = {(each.source, each.target): each.conditional for each in drawing.edges}
    labels = {key: node.name.strip("_") for key, node in drawing.nodes.items()}
    back = set(_leading_back(nx.DiGraph([*edges]), "__start__"))
    layers = _layered(nx.DiGraph([each for each in edges if each not in back]), labels)
    places = _placed(layers, labels)
    right, bottom = max(x for x, _ in places.values()), max(y for _, y in places.values())
    widest = max(map(len, labels.values())) * WIDTH / 2
    width, height = right + widest + 2 * GAP + GAP * len(back), bottom + HEIGHT
    drawn = [_box(labels[key], *places[key]) for key in labels]
    for number, (edge, dashed) in enumerate(edges.items()):
        way = _bent(edge, places, right + widest + GAP, number) if edge in back else _through(edge, places)
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        drawn.append(f'<path d="{way}" fill="none" stroke="currentColor" marker-end="url(#arrow)"{dashes}/>')
    return (
        f'<svg class="diagram" role="img" aria-label="The graph {escape(name)}" viewBox="0 0 {width:.0f} '
        f'{height:.0f}" width="{width:.0f}" font-size="13" text-anchor="middle">{MARK}{"".join(drawn)}</svg>'
    )


def _leading_back(graph: "nx.DiGraph[str]", start: str) -> Iterator[tuple[str, str]]:
    """Yield the edges that lead to a node on the way to where they begin."""
    on_the_way = set[str]()
    for source, target, label in nx.dfs_labeled_edges(graph, start):
        if label == "forward":
            on_the_way.add(target)
        elif label == "reverse":
            on_the_way.discard(target)
        elif target in on_the_way:
            yield source, target


def _layered(graph: "nx.DiGraph[str]", labels: dict[str, str]) -> list[list[Node]]:
    """Return the layers from the start, each in an order in which few edges cross."""
    graph.add_nodes_from(labels)
    layers: list[list[Node]] = [sorted(layer) for layer in nx.topological_generations(graph)]
    at = {node: number for number, layer in enumerate(layers) for node in layer}
    ways: nx.DiGraph[Node] = nx.DiGraph()
    for source, target in graph.edges:
        passed = list[Node]()
        for between in range(at[source] + 1, at[target]):
            passed.append((source, target, between))
            layers[between].append(passed[-1])
        nx.add_path(ways, [source, *passed, target])
    for sweep in range(SWEEPS):
        beside = ways.predecessors if sweep % 2 == 0 else ways.successors
        for layer in layers if sweep % 2 == 0 else layers[::-1]:
            order = {node: number / len(each) for each in layers for number, node in enumerate(each)}
            near = {node: [order[other] for other in beside(node)] if node in ways else [] for node in layer}
            layer.sort(key=lambda node: sum(near[node]) / len(near[node]) if near[node] else order[node])
    return layers


def _placed(layers: Sequence[Sequence[Node]], labels: dict[str, str]) -> dict[Node, Place]:
    """Return the middle of each node; each layer stands in the middle of the picture."""
    wide = {
        node: len(labels[node]) * WIDTH + GAP if isinstance(node, str) else GAP
        for layer in layers
        for node in layer
    }
    widths = [sum(wide[node] + GAP for node in layer) for layer in layers]
    places: dict[Node, Place] = {}
    for number, layer in enumerate(layers):
        x = (max(widths) - widths[number]) / 2 + GAP
        for node in layer:
            places[node] = (x + wide[node] / 2, HEIGHT + number * LAYER)
            x += wide[node] + GAP
    return places


def _box(label: str, x: float, y: float) -> str:
    width = len(label) * WIDTH + GAP
    return (
        f'<rect x="{x - width / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{width}" height="{HEIGHT}" rx="6" '
        f'fill="none" stroke="currentColor"/><text x="{x:.0f}" y="{y + 5:.0f}" fill="currentColor">'
        f"{escape(label)}</text>"
    )


def _through(edge: tuple[str, str], places: dict[Node, Place]) -> str:
    """Return the way of an edge downwards, through its places in the layers that it passes."""
    source, target = edge
    passed = sorted(y_x for node, (x, y) in places.items() if node[:2] == edge for y_x in [(y, x)])
    (x0, y0), (x1, y1) = places[source], places[target]
    points = [(x0, y0 + HEIGHT / 2), *((x, y) for y, x in passed), (x1, y1 - HEIGHT / 2)]
    way = f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for (a, b), (c, d) in pairwise(points):
        middle = (b + d) / 2
        way += f"C{a:.0f} {middle:.0f} {c:.0f} {middle:.0f} {c:.0f} {d:.0f}"
    return way


def _bent(edge: tuple[str, str], places: dict[Node, Place], right: float, number: int) -> str:
    """Return the way of an edge that leads back, along the right side."""
    (x0, y0), (x1, y1) = places[edge[0]], places[edge[1]]
    side, half = right + number % 3 * GAP / 2, LAYER / 2
    return (
        f"M{x0:.0f} {y0 + HEIGHT / 2:.0f}C{x0:.0f} {y0 + half:.0f} {side:.0f} {y0 + half:.0f} "
        f"{side:.0f} {y0:.0f}L{side:.0f} {y1:.0f}C{side:.0f} {y1 - half:.0f} {x1:.0f} {y1 - half:.0f} "
        f"{x1:.0f} {y1 - HEIGHT / 2:.0f}"
    )
