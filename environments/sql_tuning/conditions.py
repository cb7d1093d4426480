"""Conditions of cards: features of a query with `;` between them.

A general feature (`range filter`) holds for every particular one (`one range filter`, `range filters`); a
condition in other words is shown to a model and left alone by rules.
"""

from collections.abc import Sequence

from mneme.environments.sql_tuning.guard import Dialect
from mneme.environments.sql_tuning.patterns import structure_of
from mneme.environments.sql_tuning.tasks import TuningTask
from mneme.environments.worlds import parts_of

FURTHER = "further columns"
MOST = "filters keep most rows"
"""The filters leave more than half of each table: what an index then saves is little."""
GENERAL = {
    "one equality filter": "equality filter",
    "equality filters": "equality filter",
    "one range filter": "range filter",
    "range filters": "range filter",
    FURTHER: "",
    MOST: "",
}
STRUCTURE = {
    *(f"column hidden by {by}" for by in ("function", "cast", "arithmetic", "leading wildcard", "pattern")),
    *("more than three filters", "OR across columns", "correlated subquery", "join", "top-k order"),
}
"""Features that make a query another kind of query: a condition that does not name them is about others."""
FEATURES = {*GENERAL, *GENERAL.values(), *STRUCTURE, "grouping"}


def features_of(task: TuningTask, dialect: Dialect = "sqlite") -> list[str]:
    """Name what matters in a task's query, `further columns` being those that it only reads."""
    made = structure_of(task, dialect)
    named = {*made.group, *(each.column for each in made.filters), *(key.column for key in made.order)}
    named |= {each.column for each in made.hidden} | {c for j in made.joins for c in (j.left, j.right)}
    named |= set(made.alternatives)
    keys = {(table, next(iter(columns))) for table, columns in task.catalogue.items()}
    further = [c for c in made.used if c not in named and (c.table, c.column) not in keys]
    return [*made.features(), *([FURTHER] if further else [])]


def general(features: Sequence[str]) -> list[str]:
    """Leave out of features what is particular to one query: how many filters, what else it reads."""
    return [each for each in dict.fromkeys(GENERAL.get(feature, feature) for feature in features) if each]


def applies(condition: str, features: Sequence[str]) -> bool | None:
    """Say whether a condition holds for a query with these features; None where it says something else."""
    asked = parts_of(condition)
    if any(part not in FEATURES for part in asked):
        return None
    named = STRUCTURE.intersection(features) <= {*asked}
    return named and {*asked} <= {*features, *general(features)}


def specificity(condition: str) -> int:
    """Say how much a condition asks for: a particular feature counts for two general ones."""
    return sum(1 if part in GENERAL.values() else 2 for part in {*parts_of(condition)})
