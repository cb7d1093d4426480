"""What the MiTa paper reports on C-WAH under symbolic observation, with GPT-4o (its tables 1 and 2).

The single values of figure 3a are not given in words; those of figure 3b are (§4.2, resource constraints).
"""

CATEGORIES = ("Wash Dishes", "Put Groceries", "Prepare a Meal", "Set up Table", "Prepare Tea")
"""In the order of table 1."""

_Steps = tuple[float, float, float, float, float]

TABLE_1: dict[tuple[str, int], tuple[_Steps, float]] = {
    ("MHP", 1): ((102.9, 101.3, 94.3, 90.7, 140.8), 106.1),
    ("LLM", 1): ((85.3, 84.9, 70.9, 79.3, 93.3), 82.7),
    ("MHP", 2): ((73.2, 65.4, 66.4, 56.9, 95.7), 71.5),
    ("CoELA", 2): ((47.3, 42.3, 50.7, 47.0, 69.1), 51.3),
    ("ProAgent", 2): ((45.5, 54.4, 46.4, 54.3, 69.2), 53.9),
    ("MiTa", 2): ((51.1, 45.4, 46.3, 47.0, 54.6), 48.8),
    ("MHP", 3): ((58.2, 55.8, 61.3, 48.7, 85.6), 61.9),
    ("CoELA", 3): ((40.5, 34.7, 35.9, 37.9, 47.7), 39.3),
    ("ProAgent", 3): ((46.3, 36.4, 36.8, 41.3, 58.1), 43.8),
    ("MiTa", 3): ((39.7, 30.9, 28.4, 33.2, 39.7), 34.4),
}
"""Steps by category, and their average, as printed."""

TABLE_2 = {
    "symbolic": {"MiTa": 34.4, "w/o allocation": 48.4, "w/o summary": 39.8},
    "visual": {"MiTa": 68.24, "w/o allocation": 72.94, "w/o summary": 70.4},
}
"""Steps with three agents, by what they observe."""

FIGURE_3B = {"members weaker": 1.0, "manager weaker": 6.5, "both weaker": 7.1}
"""Steps lost against MiTa when a role's GPT-4o is replaced by GPT-3.5-Turbo."""


def paper_steps(method: str, agents: int, category: str) -> float | None:
    """Return the paper's steps of a cell of table 1; `Average` is its last column."""
    if (method, agents) not in TABLE_1:
        return None
    by_category, average = TABLE_1[method, agents]
    return average if category == "Average" else by_category[CATEGORIES.index(category)]
