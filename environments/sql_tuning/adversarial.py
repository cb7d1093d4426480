"""Rows that tell a sound rewriting from one that only fits these data.

They are drawn around the constants of a query: other case, NULL, empty, one more and one less, longer and
shorter, Unicode, duplicates and ties, and a few real rows beside. The same query draws the same rows.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from sqlglot import exp

from mneme.environments.sql_tuning.analysis import Catalogue, conjuncts, qualified, table_of
from mneme.environments.sql_tuning.guard import Dialect
from mneme.environments.sql_tuning.records import Cell, ColumnFacts, Row

ROWS = {1: 300, 2: 300, 3: 120}
"""Rows for so many tables; joins multiply them."""
MIN_ROWS = 50
KEYS = 12
"""Values of a column that is joined on, so that joins find partners, and more than one."""
UNUSUAL_TEXTS = ("", " ", "É", "é", "ß", "İ", "ﬁ", "0", "00", "%", "_")
MAX_PAIRS = 30


Facts = Mapping[str, Sequence[ColumnFacts]]


def rows_for(
    query: str, catalogue: Catalogue, dialect: Dialect, facts: Facts, real: Mapping[str, Sequence[Row]]
) -> dict[str, list[Row]]:
    """Draw rows for each table of a query, in the order of its columns; every fourth is one of `real`."""
    tree = qualified(query, catalogue, dialect)
    tables = list(dict.fromkeys(each.name for each in tree.find_all(exp.Table) if each.name in facts))
    constants = constants_of(query, catalogue, dialect)
    equals = [[each.this, each.expression] for each in tree.find_all(exp.EQ)]
    columns = [sides for sides in equals if all(isinstance(side, exp.Column) for side in sides)]
    joined = {(table_of(side), side.name) for sides in columns for side in sides}
    dice = random.Random(query)  # noqa: S311  the same rows each time, no secret
    count = ROWS.get(len(tables), MIN_ROWS)
    drawn: dict[str, list[Row]] = {}
    for table in tables:
        rows, pools = real[table], []
        for place, column in enumerate(facts[table]):
            name = (table, column.name)
            pool = _pool(column, constants.get(name, []), name in joined)
            cells = [row[place] for row in rows]  # a quarter of what is drawn, or all
            pools.append([*pool, *dice.choices(cells, k=len(pool) // 3 + 1)] if cells else pool or [None])
        made = drawn[table] = list[Row]()
        for number in range(1, count + 1):
            if number % 10 == 0 and made:  # the row before, under another key
                row = made[-1]
            elif number % 4 == 0 and rows:
                row = dice.choice(rows)
            else:
                row = tuple(dice.choice(pool) for pool in pools)
            numbered = zip(facts[table], row, strict=True)
            made.append(tuple(number if of.key and of.kind == "whole" else cell for of, cell in numbered))
    return drawn


def _pool(column: ColumnFacts, constants: Sequence[Cell], joined: bool) -> list[Cell]:
    """Return what to draw a column's cells from: constants come thrice, so that filters hold together."""
    null: list[Cell] = [None] if column.nullable else []
    numbers: list[Cell] = [each for each in constants if isinstance(each, int | float)]
    if column.kind == "whole":
        whole = [int(str(each)) for each in numbers if float(str(each)).is_integer()]
        around: list[Cell] = [each + n for each in whole for n in (-1, 0, 1)]
        more: list[Cell] = list(range(1, KEYS)) if joined else [0, 1, 2, 3]
        return [*around, *whole * 2, *more, *null]
    if column.kind == "real":
        values = [float(str(each)) for each in numbers]
        around = [each + n for each in values for n in (-0.5, 0.0, 0.25, 0.5)]
        return [*around, *values * 2, 0.0, 1.5, 2.25, *null]
    if column.kind == "text":
        texts = [str(each) for each in constants]
        changed: list[Cell] = []
        for text in texts:
            changed += [text.upper(), text.lower(), text.title(), text + " ", text + "z", text.upper() + "Z"]
            changed += [
                text[:-1],
                text + "é",
                "x" + text,
                text + "~",
                text.lower() + "q",
                "0" + text,
                text + ".0",
            ]
        several: list[Cell] = [f"k{n}" for n in range(KEYS)] if joined else list(UNUSUAL_TEXTS)
        return [*changed, *texts * 3, *several, *null]
    return null


def constants_of(query: str, catalogue: Catalogue, dialect: Dialect) -> dict[tuple[str, str], list[Cell]]:
    """Return, for each column, the constants that it is compared with, and what arithmetic makes of them."""
    found: dict[tuple[str, str], list[Cell]] = {}
    for select in qualified(query, catalogue, dialect).find_all(exp.Select):
        for predicate in conjuncts(select):
            for part in predicate.flatten() if isinstance(predicate, exp.Or) else [predicate]:
                cells = list(_cells(part))
                for column in part.find_all(exp.Column):
                    found.setdefault((table_of(column), column.name), []).extend(cells)
    return found


def _cells(predicate: exp.Expr) -> Iterator[Cell]:
    literals = list(predicate.find_all(exp.Literal))
    numbers = [int(each.name) for each in literals if not each.is_string and each.is_int]
    for literal in literals:
        if literal.is_string:
            is_pattern = isinstance(literal.parent, exp.Like | exp.ILike)
            pieces = literal.name.replace("_", "%").split("%") if is_pattern else [literal.name]
            yield from filter(None, pieces)
        elif not literal.is_int:
            yield float(literal.name)
    yield from numbers
    for one, other in list(permutations(numbers, 2))[:MAX_PAIRS]:
        yield from (one * other, one * (other + 1), one + other, one - other)
        yield from (one // other, one // other + 1) if other else ()
