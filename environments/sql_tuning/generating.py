"""The schemas for query tuning, from `schemas.yaml`, and generated rows.

Rows are generated for these schemas, for a user's empty tables, and as adversarial rows, which distinguish a
sound rewriting from one that only fits these data. They are drawn around the constants of a query: other
case, NULL, empty, one more and one less, longer and shorter, Unicode, duplicates and ties, and a few real
rows beside. The same query draws the same rows.
"""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain, permutations
from typing import Literal

import numpy as np
from pydantic import BaseModel
from sqlglot import exp

from mneme.core.errors import NotFound
from mneme.environments.sql_tuning.analysis import Catalogue, Column, conjuncts, qualified, table_of
from mneme.environments.sql_tuning.guard import Dialect
from mneme.environments.sql_tuning.records import SCHEMA_FILE, Cell, ColumnFacts, Row

DATA_END = datetime(2025, 7, 1)
DAYS = 730

Role = Literal["id", "time", "group", "amount", "status", "channel", "region", "code", "number", "note"]
EntityRole = Literal["id", "name", "segment", "city"]

# The shares by which the values of `statuses` and `channels` are drawn, commonest first.
STATUS_SHARES = (0.80, 0.12, 0.05, 0.02, 0.01)
CHANNEL_SHARES = (0.45, 0.25, 0.15, 0.08, 0.05, 0.02)
REGIONS = 24
SEGMENT_COUNT = 40
MEDIAN_AMOUNT = 4_000
AMOUNT_SPREAD = 1.0  # of the amount's logarithm


class Schema(BaseModel, frozen=True):
    """One business: the names of its tables and columns, by role, and the words of its values.

    It has one large table of facts and one small table of their subjects. The roles (`time`, `group`,
    `status`, …) give a column's purpose, so that a query is written once for all schemas.
    """

    name: str
    subject: str
    fact: str
    entity: str
    columns: Mapping[Role, str]
    entity_columns: Mapping[EntityRole, str]
    statuses: tuple[str, str, str, str, str]
    channels: tuple[str, str, str, str, str, str]
    entities: int
    epoch: bool = False
    in_order: bool = True

    def tables(self) -> dict[str, dict[str, str]]:
        """Return each table's columns with their types, the key first."""
        numbers = {"id", "group", "amount", *(["time"] if self.epoch else [])}
        return {
            table: {name: "INTEGER" if role in numbers else "TEXT" for role, name in columns.items()}
            for table, columns in ((self.fact, self.columns), (self.entity, self.entity_columns))
        }

    @property
    def time(self) -> Column:
        """Return the column of the facts' times."""
        return Column(table=self.fact, column=self.columns["time"])

    def moment(self, days_before_end: float) -> str:
        """Return a time as this schema's queries write it: a quoted ISO text, or seconds since 1970."""
        at = DATA_END - timedelta(days=days_before_end)
        if self.epoch:
            return str(int((at - datetime(1970, 1, 1)).total_seconds()))
        return f"'{at:%Y-%m-%d %H:%M:%S}'"

    def date(self, days_before_end: float) -> str:
        """Return the day of a time: an ISO date, or the number of days since 1970."""
        moment = self.moment(days_before_end)
        return str(int(moment) // 86_400) if self.epoch else moment[1:11]


def find_schema(name: str) -> Schema:
    """Return a schema by its name."""
    if name not in SCHEMAS:
        raise NotFound(f"There is no schema {name!r}.", hint=f"There are {', '.join(SCHEMAS)}.")
    return SCHEMAS[name]


SCHEMAS: Mapping[str, Schema] = {name: Schema(name=name, **said) for name, said in SCHEMA_FILE.items()}


SPAN_SECONDS = DAYS * 86_400
MAX_CELL_NUMBER = 20_000
CELL_WORDS = (
    *("amber", "basalt", "cedar", "delta", "ember", "fjord", "grove", "harbour", "island", "juniper"),
    *("kelp", "larch", "meadow", "north", "orchard", "pebble", "quartz", "river", "summit", "thistle"),
    *("umber", "valley", "willow", "yarrow"),
)
REFERENCED = 50
"""A referenced table has one row for this many rows of the tables that refer to it."""
NULLS = 0.01
CONSTANT = 0.02
"""Probability that a cell has a constant that the query compares its column with."""
TIME_SUFFIXES = ("date", "time", "_at", "_on")
Known = Mapping[tuple[str, str], Sequence[Cell]]
"""Constants that a query compares a column with, by table and column."""


def draw(schema: Schema, seed: int, rows: int) -> dict[str, Iterable[Row]]:
    """Draw each table's rows, in the order of its columns."""
    dice = np.random.default_rng([seed, rows, *schema.name.encode()])  # a schema's rows are its own
    facts = _facts(schema, dice, rows)
    segments = dice.integers(0, SEGMENT_COUNT, schema.entities).tolist()
    cities = dice.choice(CELL_WORDS, schema.entities).tolist()
    names = dice.choice(CELL_WORDS, (schema.entities, 2)).tolist()
    drawn = enumerate(zip(names, segments, cities, strict=True), start=1)
    entities = ((n, f"{' '.join(name)} {n}", f"S{segment:02d}", city) for n, (name, segment, city) in drawn)
    return {schema.fact: facts, schema.entity: entities}


def _facts(schema: Schema, dice: np.random.Generator, rows: int) -> Iterable[Row]:
    """Draw facts over two years; where they arrive in order, the key grows with the time."""
    regions = dice.integers(0, REGIONS, rows).tolist()
    numbered = zip(dice.permutation(rows), regions, strict=True)
    codes = [f"{CELL_WORDS[region % len(CELL_WORDS)][:3]}-{n:07d}-{region:02d}" for n, region in numbered]
    notes = [" ".join(words) for words in dice.choice(CELL_WORDS, (500, 22)).tolist()]
    offsets = dice.integers(0, SPAN_SECONDS, rows)
    start = int((DATA_END - datetime(1970, 1, 1)).total_seconds()) - SPAN_SECONDS
    seconds = start + (np.sort(offsets) if schema.in_order else offsets)
    texts = np.datetime_as_string(seconds.astype("datetime64[s]"), unit="s").tolist()
    # `tolist` makes Python's numbers of NumPy's, which sqlite3 does not take.
    return zip(
        range(1, rows + 1),
        seconds.tolist() if schema.epoch else [text.replace("T", " ") for text in texts],
        # Squared, so that few subjects have most facts.
        (np.floor(dice.random(rows) ** 2 * schema.entities) + 1).astype(np.int64).tolist(),
        np.exp(dice.normal(np.log(MEDIAN_AMOUNT), AMOUNT_SPREAD, rows)).astype(np.int64).tolist(),
        dice.choice(schema.statuses, rows, p=STATUS_SHARES).tolist(),
        dice.choice(schema.channels, rows, p=CHANNEL_SHARES).tolist(),
        [f"R{region:02d}" for region in regions],
        codes,
        # A number kept as text, for queries that cast it.
        [str(number) for number in dice.integers(1, MAX_CELL_NUMBER + 1, rows).tolist()],
        [notes[n] for n in dice.integers(0, len(notes), rows).tolist()],
        strict=True,
    )


def filled(
    tables: Mapping[str, Sequence[ColumnFacts]],
    refers: Mapping[str, Mapping[str, str]],
    rows: int,
    known: Known,
) -> Iterator[tuple[str, Iterator[Row]]]:
    """Yield rows for each table, referenced tables first.

    `refers` names, for each table, the columns that refer to another table, and that table.
    """
    referred = {other for each in refers.values() for other in each.values()}
    sizes = {table: max(10, rows // REFERENCED) if table in referred else rows for table in tables}
    for table in sorted(tables, key=lambda each: each not in referred):
        ranges = {name: sizes.get(other, REFERENCED) for name, other in refers[table].items()}
        constants = {column.name: known.get((table, column.name), ()) for column in tables[table]}
        yield table, _filled_rows(tables[table], sizes[table], ranges, constants, random.Random(table))  # noqa: S311


def _filled_rows(
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
            return 1 + int(dice.random() ** 2 * ranges[column.name])  # keys count from 1; few are frequent
        if column.nullable and dice.random() < NULLS:
            return None
        if constants[column.name] and dice.random() < CONSTANT:
            return dice.choice(constants[column.name])
        return _drawn_cell(column, size, dice)

    return (tuple(cell(column, number) for column in columns) for number in range(1, size + 1))


def _drawn_cell(column: ColumnFacts, size: int, dice: random.Random) -> Cell:
    if column.is_time or column.name.lower().endswith(TIME_SUFFIXES):
        return f"{DATA_END - timedelta(seconds=dice.randrange(SPAN_SECONDS)):%Y-%m-%d %H:%M:%S}"
    if column.kind == "whole":
        return dice.randrange(max(10, size // 10))
    if column.kind == "real":
        return round(dice.lognormvariate(4, 1), 2)
    return f"{dice.choice(CELL_WORDS)}-{dice.randrange(1000)}"


ADVERSARIAL_ROWS = {1: 300, 2: 300, 3: 120}
"""Rows of each table, by the number of tables: joins multiply them."""
MIN_ADVERSARIAL_ROWS = 50
JOIN_KEY_COUNT = 12
"""Number of different values in a join column: so few that a row finds several partners."""
UNUSUAL_TEXTS = ("", " ", "É", "é", "ß", "İ", "ﬁ", "0", "00", "%", "_")
MAX_NUMBER_PAIRS = 30


def adversarial_rows(
    query: str,
    catalogue: Catalogue,
    dialect: Dialect,
    facts: Mapping[str, Sequence[ColumnFacts]],
    real: Mapping[str, Sequence[Row]],
) -> dict[str, list[Row]]:
    """Draw rows for each table of a query, in the order of its columns; every fourth is one of `real`."""
    tree = qualified(query, catalogue, dialect)
    tables = list(dict.fromkeys(each.name for each in tree.find_all(exp.Table) if each.name in facts))
    constants = constants_of(tree)
    equals = [[each.this, each.expression] for each in tree.find_all(exp.EQ)]
    columns = [sides for sides in equals if all(isinstance(side, exp.Column) for side in sides)]
    joined = {(table_of(side), side.name) for sides in columns for side in sides}
    dice = random.Random(query)  # noqa: S311  the same rows each time, no secret
    count = ADVERSARIAL_ROWS.get(len(tables), MIN_ADVERSARIAL_ROWS)
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
    """Return the values to draw a column's cells from: constants thrice, so that filters hold together."""
    null: list[Cell] = [None] if column.nullable else []
    numbers: list[Cell] = [each for each in constants if isinstance(each, int | float)]
    if column.kind == "whole":
        whole = [int(str(each)) for each in numbers if float(str(each)).is_integer()]
        around: list[Cell] = [each + n for each in whole for n in (-1, 0, 1)]
        more: list[Cell] = list(range(1, JOIN_KEY_COUNT)) if joined else [0, 1, 2, 3]
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
        several: list[Cell] = [f"k{n}" for n in range(JOIN_KEY_COUNT)] if joined else list(UNUSUAL_TEXTS)
        return [*changed, *texts * 3, *several, *null]
    return null


def constants_of(query: exp.Query) -> dict[tuple[str, str], list[Cell]]:
    """Return, for each column, the constants it is compared with, and results of arithmetic on them."""
    found: dict[tuple[str, str], list[Cell]] = {}
    predicates = [each for select in query.find_all(exp.Select) for each in conjuncts(select)]
    branches = [[*each.flatten()] if isinstance(each, exp.Or) else [each] for each in predicates]
    for part in chain(*branches):
        literals, cells = list(part.find_all(exp.Literal)), list[Cell]()
        numbers = [int(each.name) for each in literals if not each.is_string and each.is_int]
        for literal in literals:
            if literal.is_string:
                is_pattern = isinstance(literal.parent, exp.Like | exp.ILike)
                pieces = literal.name.replace("_", "%").split("%") if is_pattern else [literal.name]
                cells += filter(None, pieces)
            elif not literal.is_int:
                cells.append(float(literal.name))
        cells += numbers
        for one, other in list(permutations(numbers, 2))[:MAX_NUMBER_PAIRS]:
            cells += (one * other, one * (other + 1), one + other, one - other)
            cells += (one // other, one // other + 1) if other else ()
        for column in part.find_all(exp.Column):
            found.setdefault((table_of(column), column.name), []).extend(cells)
    return found
