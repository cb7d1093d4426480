"""Draw rows: of a schema that comes with Mneme, the same for a seed; of tables that have none."""

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np

from mneme.environments.sql_tuning.records import Cell, ColumnFacts, Row
from mneme.environments.sql_tuning.schemas import (
    AMOUNT_SPREAD,
    CHANNEL_SHARES,
    DAYS,
    END,
    MEDIAN_AMOUNT,
    REGIONS,
    SEGMENTS,
    STATUS_SHARES,
    Schema,
)

SECONDS = DAYS * 86_400
NUMBERS = 20_000
WORDS = (
    *("amber", "basalt", "cedar", "delta", "ember", "fjord", "grove", "harbour", "island", "juniper"),
    *("kelp", "larch", "meadow", "north", "orchard", "pebble", "quartz", "river", "summit", "thistle"),
    *("umber", "valley", "willow", "yarrow"),
)
REFERENCED = 50
"""A table that others refer to has one row for so many of theirs."""
NULLS = 0.01
CONSTANT = 0.02
"""How often a column has a constant that the query compares it with."""
TIMES = ("date", "time", "_at", "_on")
Known = Mapping[tuple[str, str], Sequence[Cell]]
"""Constants that a query compares a column with, by table and column."""


def draw(schema: Schema, seed: int, rows: int) -> dict[str, Iterable[Row]]:
    """Draw each table's rows, in the order of its columns."""
    dice = np.random.default_rng([seed, rows, *schema.name.encode()])
    return {schema.fact: _facts(schema, dice, rows), schema.entity: _entities(schema, dice)}


def _facts(schema: Schema, dice: np.random.Generator, rows: int) -> Iterable[Row]:
    regions = dice.integers(0, REGIONS, rows).tolist()
    codes = [
        (f"{WORDS[region % len(WORDS)][:3]}-{number:07d}-{region:02d}")
        for number, region in zip(dice.permutation(rows), regions, strict=True)
    ]
    notes = [" ".join(words) for words in dice.choice(WORDS, (500, 22)).tolist()]
    return zip(
        range(1, rows + 1),
        _times(schema, dice, rows),
        (np.floor(dice.random(rows) ** 2 * schema.entities) + 1).astype(np.int64).tolist(),
        np.exp(dice.normal(np.log(MEDIAN_AMOUNT), AMOUNT_SPREAD, rows)).astype(np.int64).tolist(),
        dice.choice(schema.statuses, rows, p=STATUS_SHARES).tolist(),
        dice.choice(schema.channels, rows, p=CHANNEL_SHARES).tolist(),
        [f"R{region:02d}" for region in regions],
        codes,
        [str(number) for number in dice.integers(1, NUMBERS + 1, rows).tolist()],
        [notes[n] for n in dice.integers(0, len(notes), rows).tolist()],
        strict=True,
    )


def _times(schema: Schema, dice: np.random.Generator, rows: int) -> list[object]:
    """Draw times over two years; where facts arrive in order, the key grows with the time."""
    drawn = dice.integers(0, SECONDS, rows)
    offsets = np.sort(drawn) if schema.in_order else drawn
    start = int((END - datetime(1970, 1, 1)).total_seconds()) - SECONDS
    seconds = offsets + start
    if schema.epoch:
        return list(seconds.tolist())
    texts = np.datetime_as_string(seconds.astype("datetime64[s]"), unit="s").tolist()
    return [text.replace("T", " ") for text in texts]


def _entities(schema: Schema, dice: np.random.Generator) -> Iterable[Row]:
    segments = dice.integers(0, SEGMENTS, schema.entities).tolist()
    cities = dice.choice(WORDS, schema.entities).tolist()
    names = dice.choice(WORDS, (schema.entities, 2)).tolist()
    return (
        (n, f"{first} {second} {n}", f"S{segment:02d}", city)
        for n, ((first, second), segment, city) in enumerate(
            zip(names, segments, cities, strict=True), start=1
        )
    )


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
            return 1 + int(dice.random() ** 2 * ranges[column.name])
        if column.nullable and dice.random() < NULLS:
            return None
        if constants[column.name] and dice.random() < CONSTANT:
            return dice.choice(constants[column.name])
        return _drawn_cell(column, size, dice)

    return (tuple(cell(column, number) for column in columns) for number in range(1, size + 1))


def _drawn_cell(column: ColumnFacts, size: int, dice: random.Random) -> Cell:
    if column.is_time or column.name.lower().endswith(TIMES):
        return f"{END - timedelta(seconds=dice.randrange(SECONDS)):%Y-%m-%d %H:%M:%S}"
    if column.kind == "whole":
        return dice.randrange(max(10, size // 10))
    if column.kind == "real":
        return round(dice.lognormvariate(4, 1), 2)
    return f"{dice.choice(WORDS)}-{dice.randrange(1000)}"
