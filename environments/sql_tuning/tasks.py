"""Tasks with slow queries of several families, on any schema; they never say what would help.

A task says what its author sees: a query that is slow, and how large new indexes may be. Whether a
remedy helps is for the database to say.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from statistics import NormalDist
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from mneme.core.errors import BadInput
from mneme.environments.sql_tuning.analysis import Column
from mneme.environments.sql_tuning.generating import NUMBERS, code_of
from mneme.environments.sql_tuning.records import Judgement, Measured
from mneme.environments.sql_tuning.schemas import (
    AMOUNT_SPREAD,
    DAYS,
    MEDIAN_AMOUNT,
    REGIONS,
    SCHEMAS,
    SEGMENTS,
    Schema,
    find_schema,
)

ROWS = 150_000
WANTED = 2.0
BUDGET = 0.30

Family = Literal[
    "time_range", "multi_filter", "high_cardinality", "join", "top_k", "sargability", "correlated", "decoy"
]
FAMILIES: tuple[Family, ...] = get_args(Family)


class Layout(BaseModel):
    """The tables of a task's database, with their columns and types, and the time of its facts, if known."""

    tables: dict[str, dict[str, str]]
    time: Column | None = None


class TuningTask(BaseModel):
    """One slow query, and what counts as having made it fast."""

    model_config = ConfigDict(frozen=True)

    id: str
    family: Family
    schema_name: str
    seed: int = Field(description="Seed of the database.")
    description: str
    query: str
    tables: list[str]
    wanted_speed_up: float = WANTED
    index_budget: float = Field(
        BUDGET, description="Largest size of all new indexes, as a share of the tables'."
    )
    database: str = Field("", description="An own database: a SQLite file, or PostgreSQL's URL.")
    ddl: str = Field("", description="Or the statements that make one.")
    catalogue: dict[str, dict[str, str]] = Field({}, description="An own database's tables.")

    @property
    def layout(self) -> Layout:
        """Return the tables: the own database's, else the schema's."""
        if self.catalogue:
            return Layout(tables=self.catalogue)
        schema = find_schema(self.schema_name)
        time = Column(table=schema.fact, column=schema.columns["time"])
        return Layout(tables={name: dict(columns) for name, columns in schema.tables().items()}, time=time)


class _Shape(BaseModel):
    """A query's words and text, before it is a task."""

    asks: str
    query: str
    with_entity: bool = False
    budget: float = 0.30


Author = Callable[[Schema, random.Random], _Shape]


def tasks(
    seed: int,
    count: int,
    families: Sequence[Family] = FAMILIES,
    *,
    schemas: Sequence[str] = tuple(SCHEMAS),
    database_seed: int = 0,
) -> list[TuningTask]:
    """Draw tasks in a seeded order; the families come in equal shares, the schemas in turn."""
    _refuse_unknown(families, FAMILIES)
    _refuse_unknown(schemas, tuple(SCHEMAS))
    dice = random.Random(f"sql_tuning {seed}")  # noqa: S311  an experiment's order, no secret
    turns = [families[n % len(families)] for n in range(count)]
    dice.shuffle(turns)
    places = _in_turn(dice, schemas, count)
    return [
        _task(n, family, SCHEMAS[place], dice, seed, database_seed)
        for n, (family, place) in enumerate(zip(turns, places, strict=True), start=1)
    ]


def story(database_seed: int = 0) -> list[TuningTask]:
    """Give the three tasks of the paper's example (§7): discovery, reuse, and the edge case."""
    dice = random.Random("the paper's story")  # noqa: S311
    made: tuple[tuple[str, Family, Schema, Author], ...] = (
        ("story-1-discovery", "time_range", SCHEMAS["events"], _counted_range),
        ("story-2-reuse", "time_range", SCHEMAS["sales"], _counted_range),
        ("story-3-edge-case", "multi_filter", SCHEMAS["transactions"], _range_and_high_amount),
    )
    return [
        _as_task(name, family, schema, shape(schema, dice), database_seed)
        for name, family, schema, shape in made
    ]


def judge(task: TuningTask, measured: Measured) -> Judgement:
    """Return whether a measurement solves a task: correct, fast enough, and within the index budget."""
    if measured.refused or measured.error or not measured.correct:
        return Judgement(solved=False, why=measured.refused or measured.error or "The result is wrong.")
    at_least = "more than " if measured.stopped else ""
    if measured.speed_up < task.wanted_speed_up:
        said = f"{at_least}{measured.speed_up:.2f} times as fast"
        return Judgement(solved=False, why=f"{said}; {task.wanted_speed_up:g} times is required.")
    if measured.index_share > task.index_budget:
        why = f"The indexes take {measured.index_share:.0%} of the tables; {task.index_budget:.0%} is free."
        return Judgement(solved=False, why=why)
    slower = f" (the original was stopped after {measured.baseline_seconds:g} s)" if measured.stopped else ""
    return Judgement(solved=True, why=f"{at_least}{measured.speed_up:.1f} times as fast{slower}.")


def _refuse_unknown(given: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown or not given:
        raise BadInput(f"Unknown: {unknown or 'nothing given'}.", hint=f"There are {', '.join(known)}.")


def _in_turn(dice: random.Random, schemas: Sequence[str], count: int) -> list[str]:
    """Let each schema come once before any comes again."""
    rounds = [dice.sample(list(schemas), len(schemas)) for _ in range(math.ceil(count / len(schemas)))]
    return [name for names in rounds for name in names][:count]


def _task(  # noqa: PLR0913, PLR0917
    number: int, family: Family, schema: Schema, dice: random.Random, seed: int, database_seed: int
) -> TuningTask:
    shape = dice.choice(_AUTHORS[family])(schema, dice)
    return _as_task(f"task-{seed}-{number:04d}", family, schema, shape, database_seed)


def _as_task(name: str, family: Family, schema: Schema, shape: _Shape, database_seed: int) -> TuningTask:
    room = f"New indexes may take {shape.budget:.0%} of the tables' size."
    if not shape.budget:
        room = "The tables are written to all the time: no index may be added."
    return TuningTask(
        id=name,
        family=family,
        schema_name=schema.name,
        seed=database_seed,
        description=f"{shape.asks} {room}",
        query=shape.query,
        tables=[schema.fact, schema.entity] if shape.with_entity else [schema.fact],
        index_budget=shape.budget,
    )


def _amount(upper_share: float) -> int:
    """Give the amount that this share of facts exceeds."""
    return int(MEDIAN_AMOUNT * math.exp(AMOUNT_SPREAD * NormalDist().inv_cdf(1 - upper_share)))


# Time-range aggregation: one filter, on the time.


def _counted_range(schema: Schema, dice: random.Random) -> _Shape:
    c, days = schema.columns, dice.choice((30, 45, 60, 90))
    return _Shape(
        asks=f"Speed up the report that counts {schema.subject} by {c['group']} over the last {days} days.",
        query=f"SELECT {c['group']}, COUNT(*) AS total, MAX({c['time']}) AS latest FROM {schema.fact} "
        f"WHERE {c['time']} >= {schema.moment(days)} GROUP BY {c['group']} ORDER BY total DESC, {c['group']}",
    )


def _summed_range(schema: Schema, dice: random.Random) -> _Shape:
    c, days, length = schema.columns, dice.randint(200, 600), dice.choice((45, 60, 90))
    return _Shape(
        asks=f"The dashboard that sums {c['amount']} of {schema.subject} by {c['group']} over a time range "
        "of a few months is slow.",
        query=f"SELECT {c['group']}, SUM({c['amount']}) AS total FROM {schema.fact} "
        f"WHERE {c['time']} >= {schema.moment(days)} AND {c['time']} < {schema.moment(days - length)} "
        f"GROUP BY {c['group']} ORDER BY {c['group']}",
    )


# Multi-filter: a time range and one or two filters more.


def _range_and_high_amount(schema: Schema, dice: random.Random) -> _Shape:
    c, days = schema.columns, dice.choice((300, 365, 450))
    least = _amount(dice.choice((0.01, 0.02, 0.03)))
    return _Shape(
        asks=f"Speed up the query for recent high-value {schema.subject} by {c['group']}: a time range with "
        f"a further filter on {c['amount']}.",
        query=f"SELECT {c['group']}, SUM({c['amount']}) AS total FROM {schema.fact} "
        f"WHERE {c['time']} >= {schema.moment(days)} AND {c['amount']} > {least} "
        f"GROUP BY {c['group']} ORDER BY {c['group']}",
    )


def _range_and_status(schema: Schema, dice: random.Random) -> _Shape:
    c, days = schema.columns, dice.choice((365, 500, 640))
    status = dice.choice(schema.statuses[1:3])
    return _Shape(
        asks=f"Counting {schema.subject} with {c['status']} {status!r} by {c['group']} over a long time "
        "range takes too long: two filters.",
        query=f"SELECT {c['group']}, COUNT(*) AS total FROM {schema.fact} "
        f"WHERE {c['time']} >= {schema.moment(days)} AND {c['status']} = '{status}' "
        f"GROUP BY {c['group']} ORDER BY total DESC, {c['group']}",
    )


def _range_and_two(schema: Schema, dice: random.Random) -> _Shape:
    c, days = schema.columns, dice.choice((365, 500, 640))
    channel, region = dice.choice(schema.channels[:3]), f"R{dice.randrange(REGIONS):02d}"
    return _Shape(
        asks=f"The sums of {schema.subject} by {c['group']} for one {c['channel']} and one {c['region']} "
        "over a time range are slow: three filters.",
        query=f"SELECT {c['group']}, SUM({c['amount']}) AS total FROM {schema.fact} "
        f"WHERE {c['channel']} = '{channel}' AND {c['region']} = '{region}' "
        f"AND {c['time']} >= {schema.moment(days)} GROUP BY {c['group']} ORDER BY {c['group']}",
    )


# High cardinality and many filters: the room for indexes is small.


def _many_filters(schema: Schema, dice: random.Random) -> _Shape:
    c, status = schema.columns, dice.choice(schema.statuses[1:3])
    first = dice.randint(11, 14)  # compared as texts: every number that begins so
    return _Shape(
        asks=f"A query on {schema.subject} with more than three filters, among them the high-cardinality "
        f"{c['number']}, is slow, and there is little room for indexes.",
        query=f"SELECT {c['group']}, COUNT(*) AS total FROM {schema.fact} "
        f"WHERE {c['status']} = '{status}' AND {c['channel']} <> '{schema.channels[0]}' "
        f"AND {c['time']} >= {schema.moment(500)} AND {c['amount']} > {_amount(0.7)} "
        f"AND {c['number']} BETWEEN '{first}' AND '{first + 4}' "
        f"GROUP BY {c['group']} ORDER BY total DESC, {c['group']}",
        budget=0.04,
    )


def _rare_status_details(schema: Schema, dice: random.Random) -> _Shape:
    c, status = schema.columns, dice.choice(schema.statuses[3:])
    return _Shape(
        asks=f"Listing rare {schema.subject} with four filters and their high-cardinality {c['code']} takes "
        "too long, and there is little room for indexes.",
        query=f"SELECT {c['code']}, {c['group']}, {c['amount']} FROM {schema.fact} "
        f"WHERE {c['status']} = '{status}' AND {c['channel']} IN ('{schema.channels[1]}', "
        f"'{schema.channels[2]}') AND {c['time']} >= {schema.moment(400)} AND {c['amount']} > {_amount(0.5)} "
        f"ORDER BY {c['code']}",
        budget=0.02,
    )


# Joins.


def _join_selective(schema: Schema, dice: random.Random) -> _Shape:
    c, e = schema.columns, schema.entity_columns
    segment = f"S{dice.randrange(SEGMENTS):02d}"
    return _Shape(
        asks=f"The join of {schema.fact} with {schema.entity} for one {e['segment']} is slow.",
        query=f"SELECT e.{e['name']}, COUNT(*) AS total, SUM(f.{c['amount']}) AS amount "
        f"FROM {schema.entity} e JOIN {schema.fact} f ON f.{c['group']} = e.{e['id']} "
        f"WHERE e.{e['segment']} = '{segment}' GROUP BY e.{e['id']}, e.{e['name']} ORDER BY e.{e['name']}",
        with_entity=True,
    )


def _join_and_range(schema: Schema, dice: random.Random) -> _Shape:
    c, e, days = schema.columns, schema.entity_columns, dice.choice((30, 60, 90))
    segment = f"S{dice.randrange(SEGMENTS):02d}"
    return _Shape(
        asks=f"The joined report of {schema.subject} for one {e['segment']} over the last {days} days is "
        "slow: a join with a time range.",
        query=f"SELECT e.{e['city']}, SUM(f.{c['amount']}) AS amount FROM {schema.fact} f "
        f"JOIN {schema.entity} e ON e.{e['id']} = f.{c['group']} WHERE e.{e['segment']} = '{segment}' "
        f"AND f.{c['time']} >= {schema.moment(days)} GROUP BY e.{e['city']} ORDER BY e.{e['city']}",
        with_entity=True,
    )


# Top-k.


def _largest(schema: Schema, dice: random.Random) -> _Shape:
    c, k = schema.columns, dice.choice((10, 20, 50))
    return _Shape(
        asks=f"The list of the top {k} {schema.subject} by {c['amount']} sorts the whole table.",
        query=f"SELECT {c['id']}, {c['group']}, {c['amount']} FROM {schema.fact} "
        f"ORDER BY {c['amount']} DESC, {c['id']} DESC LIMIT {k}",
    )


def _latest_of_status(schema: Schema, dice: random.Random) -> _Shape:
    c, k = schema.columns, dice.choice((10, 20, 50))
    status = dice.choice(schema.statuses[2:])
    return _Shape(
        asks=f"The latest {k} {schema.subject} with one {c['status']} take too long: top-k with a filter.",
        query=f"SELECT {c['id']}, {c['time']}, {c['amount']} FROM {schema.fact} "
        f"WHERE {c['status']} = '{status}' ORDER BY {c['time']} DESC, {c['id']} DESC LIMIT {k}",
    )


# Sargability: the filter hides its column.


def _month_by_function(schema: Schema, dice: random.Random) -> _Shape:
    c = schema.columns
    if schema.epoch:
        predicate = f"{c['time']} / 86400 = {int(schema.moment(dice.randint(1, DAYS - 2))) // 86_400}"
        hidden = "arithmetic on"
    else:
        day = schema.moment(dice.randint(10, DAYS - 10)).strip("'")[:10]
        predicate, hidden = f"SUBSTR({c['time']}, 1, 10) = '{day}'", "a function on"
    return _Shape(
        asks=f"The report of {schema.subject} on one day filters by {hidden} {c['time']} and is slow.",
        query=f"SELECT {c['group']}, COUNT(*) AS total FROM {schema.fact} WHERE {predicate} "
        f"GROUP BY {c['group']} ORDER BY {c['group']}",
    )


def _code_by_case(schema: Schema, dice: random.Random) -> _Shape:
    c = schema.columns
    code = code_of(1_000 * dice.randrange(100), dice.randrange(REGIONS))[:8]
    return _Shape(
        asks=f"Looking up {schema.subject} by the lower-cased start of {c['code']} is slow.",
        query=f"SELECT {c['id']}, {c['code']}, {c['amount']} FROM {schema.fact} "
        f"WHERE LOWER({c['code']}) >= '{code}' AND LOWER({c['code']}) < '{code}~' ORDER BY {c['id']}",
    )


def _number_by_cast(schema: Schema, dice: random.Random) -> _Shape:
    c = schema.columns
    return _Shape(
        asks=f"Finding {schema.subject} by {c['number']}, which is cast to a number in the filter, is slow.",
        query=f"SELECT {c['id']}, {c['group']}, {c['amount']} FROM {schema.fact} "
        f"WHERE CAST({c['number']} AS INTEGER) = {dice.randint(1, NUMBERS)} ORDER BY {c['id']}",
    )


def _arithmetic_on_amount(schema: Schema, dice: random.Random) -> _Shape:
    c, least = schema.columns, _amount(dice.choice((0.002, 0.005, 0.01)))
    return _Shape(
        asks=f"Filtering {schema.subject} by arithmetic on {c['amount']} is slow.",
        query=f"SELECT {c['group']}, COUNT(*) AS total FROM {schema.fact} "
        f"WHERE {c['amount']} * 3 > {3 * least} GROUP BY {c['group']} ORDER BY {c['group']}",
    )


def _either_column(schema: Schema, dice: random.Random) -> _Shape:
    c = schema.columns
    return _Shape(
        asks=f"A filter on {schema.subject} with OR across two columns reads the whole table.",
        query=f"SELECT {c['id']}, {c['amount']} FROM {schema.fact} "
        f"WHERE {c['number']} = '{dice.randint(1, NUMBERS)}' "
        f"OR {c['group']} = {dice.randint(schema.entities // 2, schema.entities)} ORDER BY {c['id']}",
    )


def _ends_with(schema: Schema, dice: random.Random) -> _Shape:
    c = schema.columns
    return _Shape(
        asks=f"Counting {schema.subject} by the end of {c['code']}, with a leading wildcard, is slow.",
        query=f"SELECT {c['code']}, COUNT(*) AS total FROM {schema.fact} "
        f"WHERE {c['code']} LIKE '%{dice.randint(10, 99)}-{dice.randrange(REGIONS):02d}' "
        f"GROUP BY {c['code']} ORDER BY {c['code']}",
    )


# Correlated subqueries.


def _count_each(schema: Schema, dice: random.Random) -> _Shape:
    c, e = schema.columns, schema.entity_columns
    few = dice.randint(5, 8)
    return _Shape(
        asks=f"For a few of {schema.entity}, a correlated subquery counts {schema.subject}, each anew: slow.",
        query=f"SELECT e.{e['id']}, (SELECT COUNT(*) FROM {schema.fact} f WHERE f.{c['group']} = e.{e['id']} "
        f"AND f.{c['amount']} > {MEDIAN_AMOUNT}) AS total FROM {schema.entity} e "
        f"WHERE e.{e['id']} <= {few} ORDER BY e.{e['id']}",
        with_entity=True,
    )


def _above_average(schema: Schema, dice: random.Random) -> _Shape:
    c, region = schema.columns, f"R{dice.randrange(REGIONS):02d}"
    least = _amount(0.0015)
    return _Shape(
        asks=f"{schema.subject.capitalize()} that are the largest of their {c['channel']} in one "
        f"{c['region']} are found by a correlated subquery: slow.",
        query=f"SELECT o.{c['id']}, o.{c['amount']} FROM {schema.fact} o WHERE o.{c['amount']} > {least} "
        f"AND o.{c['region']} = '{region}' AND o.{c['amount']} = (SELECT MAX(i.{c['amount']}) "
        f"FROM {schema.fact} i WHERE i.{c['channel']} = o.{c['channel']} AND i.{c['region']} = '{region}') "
        f"ORDER BY o.{c['id']}",
        budget=0.0,
    )


# Decoys: the index that comes to mind does not help.


def _nearly_all(schema: Schema, dice: random.Random) -> _Shape:
    c, days = schema.columns, dice.randint(660, 710)
    return _Shape(
        asks=f"The yearly sums of {schema.subject} by {c['channel']} over a time range that spans nearly the "
        "whole table are slow.",
        query=f"SELECT {c['channel']}, COUNT(*) AS total, SUM({c['amount']}) AS amount FROM {schema.fact} "
        f"WHERE {c['time']} >= {schema.moment(days)} GROUP BY {c['channel']} ORDER BY {c['channel']}",
    )


def _common_status(schema: Schema, dice: random.Random) -> _Shape:
    c = schema.columns
    return _Shape(
        asks=f"Adding up {schema.subject} with the {c['status']} that most of them have, by {c['region']}, "
        "is slow.",
        query=f"SELECT {c['region']}, SUM({c['amount']}) AS amount FROM {schema.fact} "
        f"WHERE {c['status']} = '{schema.statuses[0]}' GROUP BY {c['region']} ORDER BY {c['region']}",
    )


_AUTHORS: Mapping[Family, Sequence[Author]] = {
    "time_range": (_counted_range, _summed_range),
    "multi_filter": (_range_and_high_amount, _range_and_status, _range_and_two),
    "high_cardinality": (_many_filters, _rare_status_details),
    "join": (_join_selective, _join_and_range),
    "top_k": (_largest, _latest_of_status),
    "sargability": (
        _month_by_function,
        _code_by_case,
        _number_by_cast,
        _arithmetic_on_amount,
        _either_column,
        _ends_with,
    ),
    "correlated": (_count_each, _above_average),
    "decoy": (_nearly_all, _common_status),
}
