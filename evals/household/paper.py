"""What the MiTa paper reports (its tables 1 and 2, figure 3b), from `paper.yaml`.

The single values of figure 3a are not given in words; those of figure 3b are (§4.2, resource constraints).
"""

from pathlib import Path

import yaml

CATEGORIES = ("Wash Dishes", "Put Groceries", "Prepare a Meal", "Set up Table", "Prepare Tea")
"""In the order of table 1."""

_PRINTED = yaml.safe_load(Path(__file__).with_name("paper.yaml").read_text(encoding="utf-8"))
TABLE_1: dict[tuple[str, int], tuple[list[float], float]] = {
    (method, agents): (steps, average) for method, agents, steps, average in _PRINTED["table_1"]
}
"""Steps by category, and their average, as printed, by method and number of agents."""
TABLE_2: dict[str, dict[str, float]] = _PRINTED["table_2"]
"""Steps with three agents, by what they observe."""
FIGURE_3B: dict[str, float] = _PRINTED["figure_3b"]
"""Steps lost against MiTa by the role that is weaker."""


def paper_steps(method: str, agents: int, category: str) -> float | None:
    """Return the paper's steps of a cell of table 1; `Average` is its last column."""
    if (method, agents) not in TABLE_1:
        return None
    by_category, average = TABLE_1[method, agents]
    return average if category == "Average" else by_category[CATEGORIES.index(category)]
