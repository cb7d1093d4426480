"""Draw rows for the tables of a database that has statements but no rows."""

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from mneme.environments.sql_tuning.adversarial import Cell, ColumnFacts
from mneme.environments.sql_tuning.generating import SECONDS, WORDS, Row
from mneme.environments.sql_tuning.schemas import END

REFERENCED = 50
"""A table that others refer to has one row for so many of theirs."""
NULLS = 0.01
CONSTANT = 0.02
"""How often a column has a constant that the query compares it with."""
TIMES = ("date", "time", "_at", "_on")
Known = Mapping[tuple[str, str], Sequence[Cell]]
"""Constants that a query compares a column with, by table and column."""


def filled(
    tables: Mapping[str, Sequence[ColumnFacts]],
    refers: Mapping[str, Mapping[str, str]],
    rows: int,
    known: Known,
) -> Iterator[tuple[str, Iterator[Row]]]:
    """Yield rows for each table, those that others refer to first.

    `refers` names, for each table, the columns that refer to another table, and that table.
    """
    referred = {other for each in refers.values() for other in each.values()}
    sizes = {table: max(10, rows // REFERENCED) if table in referred else rows for table in tables}
    for table in sorted(tables, key=lambda each: each not in referred):
        ranges = {name: sizes.get(other, REFERENCED) for name, other in refers[table].items()}
        constants = {column.name: known.get((table, column.name), ()) for column in tables[table]}
        yield table, _rows(tables[table], sizes[table], ranges, constants, random.Random(table))  # noqa: S311


def _rows(
    columns: Sequence[ColumnFacts],
    size: int,
    ranges: Mapping[str, int],
    constants: Mapping[str, Sequence[Cell]],
    dice: random.Random,
) -> Iterator[Row]:
    def cell(column: ColumnFacts, number: int) -> Cell:
        if column.key and column.kind == "whole":
            return number
        if column.name in ranges:
            return 1 + int(dice.random() ** 2 * ranges[column.name])
        if column.nullable and dice.random() < NULLS:
            return None
        if constants[column.name] and dice.random() < CONSTANT:
            return dice.choice(constants[column.name])
        return _drawn(column, size, dice)

    return (tuple(cell(column, number) for column in columns) for number in range(1, size + 1))


def _drawn(column: ColumnFacts, size: int, dice: random.Random) -> Cell:
    if column.is_time or column.name.lower().endswith(TIMES):
        return f"{END - timedelta(seconds=dice.randrange(SECONDS)):%Y-%m-%d %H:%M:%S}"
    if column.kind == "whole":
        return dice.randrange(max(10, size // 10))
    if column.kind == "real":
        return round(dice.lognormvariate(4, 1), 2)
    return f"{dice.choice(WORDS)}-{dice.randrange(1000)}"
