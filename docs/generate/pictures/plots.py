"""Draw the plots of the measurements from the tables of docs/measurements.md, which evaluations printed."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

DOCS = Path(__file__).parents[2]
NUMBER = re.compile(r"\d+(?:\.\d+)?")
FIRST, SECOND = "#3f51b5", "#9fa8da"
Table = Mapping[str, Sequence[str]]
"""The name of a row, and its cells."""


def main() -> None:
    """Draw both; the same table gives the same file."""
    matplotlib.rcParams["svg.hashsalt"] = "mneme"
    _draw("locomo.svg", _locomo, _table("LoCoMo"))
    _draw("household-steps.svg", _household, _table("The household"))


def _table(heading: str) -> Table:
    """Return the first table below a heading, without its header."""
    page = DOCS.joinpath("measurements.md").read_text(encoding="utf-8")
    part = page.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    rows = [[cell.strip(" *") for cell in line] for line in lines]
    return {row[0]: row[1:] for row in rows[2:]}


def _locomo(axes: Axes, table: Table) -> None:
    for side, (label, color) in enumerate((("developed on (3)", SECOND), ("not developed on (7)", FIRST))):
        heights = [float(NUMBER.findall(cells[side])[0]) for cells in table.values()]
        bars = axes.bar(
            [at + 0.4 * side for at in range(len(table))], heights, 0.38, label=label, color=color
        )
        axes.bar_label(bars, fmt="%.0f")
    axes.set_xticks([at + 0.2 for at in range(len(table))], list(table))
    axes.set(title="LoCoMo: evidence found among the first 10", ylabel="%", ylim=(0, 100))
    axes.legend(title="conversations", loc="upper left", frameon=False)


def _household(axes: Axes, table: Table) -> None:
    names = [name for name in table if table[name][2]]
    for at, name in enumerate(names):
        ours, spread, paper = map(float, NUMBER.findall(table[name][2]))
        axes.barh(at, ours, 0.6, xerr=spread, color=FIRST, label="Mneme, with rules" if not at else "")
        axes.plot(paper, at, "o", color="black", label="the paper, GPT-4o in Unity" if not at else "")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(title="Household: steps of three agents", xlabel="average steps (fewer is better)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)


def _draw(name: str, plot: Callable[[Axes, Table], None], table: Table) -> None:
    figure = Figure(figsize=(6, 4), layout="constrained")
    FigureCanvasSVG(figure)
    plot(figure.add_subplot(), table)
    figure.savefig(DOCS / "pictures" / name, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
