"""Compare the result of a solution with the original's."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast

from sqlglot import exp

from mneme.environments.sql_tuning.generating import Row
from mneme.environments.sql_tuning.guard import Dialect, parse

Order = Callable[[Row], object]
DIGITS = 10
"""Significant digits of a floating-point number: a sum in another order differs in the last ones."""


def order_of(query: str, dialect: Dialect) -> Order | None:
    """Give what a query sorts its rows by; the whole row where it sorts by what its rows do not show."""
    tree = parse(query, dialect)
    order = tree.args.get("order")
    if order is None:
        return None
    places = [_shown(key.this, tree) for key in order.expressions]
    return lambda row: tuple(row if place is None else row[place] for place in places)


def _shown(key: exp.Expr, tree: exp.Expr) -> int | None:
    """Find the output column that a sort key is, by number, by name or by its expression."""
    if isinstance(key, exp.Literal) and key.is_int:
        return int(key.this) - 1
    for place, output in enumerate(cast(exp.Query, tree).selects):
        if key.sql() in (output.alias, output.unalias().sql(), output.output_name):
            return place
    return None


def differences(
    expected: Sequence[Row], found: Sequence[Row], order: Order | None, of: Sequence[Row] | None = None
) -> str:
    """Tell how two results differ, in one line; nothing where they do not.

    Rows that tie in the sort keys may change places; everything else is compared exactly, and `of` gives
    all rows of which a LIMIT takes the first: which of those that tie at its end is nobody's matter.
    """
    wanted, given = [_rounded(row) for row in expected], [_rounded(row) for row in found]
    if len(wanted) != len(given):
        return f"The solution gives {len(given)} rows, the original {len(wanted)}."
    missing = Counter(wanted) - Counter(given)
    same_order = order is None or [order(row) for row in wanted] == [order(row) for row in given]
    is_choice = of is not None and same_order and not Counter(given) - Counter(map(_rounded, of))
    if missing and not is_choice:
        return f"{missing.total()} of {len(wanted)} rows differ, as {next(iter(missing))!r}."
    return "" if same_order else "The rows are the same, but in another order than the original's."


def _rounded(row: Row) -> Row:
    return tuple(float(f"{cell:.{DIGITS}g}") if isinstance(cell, float) else cell for cell in row)
