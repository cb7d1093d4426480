"""Tasks with slow queries of several families, on any schema, without hints at a remedy.

A task gives what its author sees: a slow query, and the maximum size of new indexes. The database decides
whether a remedy helps.
"""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, get_args

import yaml
from pydantic import BaseModel, Field, TypeAdapter

from mneme.core.errors import BadInput
from mneme.environments.sql_tuning.analysis import Column, Structure, analyse
from mneme.environments.sql_tuning.generating import AMOUNT_SPREAD, CELL_WORDS, MEDIAN_AMOUNT, SCHEMAS, Schema
from mneme.environments.sql_tuning.guard import Dialect
from mneme.environments.sql_tuning.records import Measurement
from mneme.environments.worlds import Metric, Trial

TASK_ROWS = 150_000
WANTED_SPEED_UP = 2.0
INDEX_BUDGET = 0.30

Family = Literal[
    "time_range", "multi_filter", "high_cardinality", "join", "top_k", "sargability", "correlated", "decoy"
]
FAMILIES: tuple[Family, ...] = get_args(Family)


class TuningTask(BaseModel, frozen=True):
    """One slow query, and the speed-up that is wanted."""

    id: str
    family: Family | None = None
    schema_name: str = "events"
    seed: int = Field(0, description="Seed of the database.")
    description: str
    query: str = ""
    tables: list[str] = []
    wanted_speed_up: float = WANTED_SPEED_UP
    index_budget: float = INDEX_BUDGET
    database: str = ""
    ddl: str = ""
    catalogue: dict[str, dict[str, str]] = Field({}, description="All tables with their columns and types.")
    time: Column | None = Field(None, description="When the facts were, if known.")

    @property
    def is_own(self) -> bool:
        """Return whether the database is the user's own."""
        return bool(self.database or self.ddl)

    @property
    def dialect(self) -> Dialect:
        return "postgres" if self.database.startswith(("postgresql://", "postgres://")) else "sqlite"

    @property
    def posed(self) -> dict[str, Any]:
        """Return the task's input for its world, beside the database."""
        return self.model_dump(include={"query", "wanted_speed_up", "index_budget"})

    @property
    def structure(self) -> Structure:
        """Return the structure of the query. Raises BadInput."""
        return analyse(self.query, self.catalogue, self.dialect)


class _Shape(BaseModel):
    """The description and query of a task with placeholders; `draw` has what their values are drawn from."""

    asks: str
    query: str
    draw: dict[str, list[Any] | str] = {}
    with_entity: bool = False
    budget: float = INDEX_BUDGET
    epoch: "_Shape | None" = None


@cache
def _shapes() -> dict[Family, dict[str, _Shape]]:
    text = (Path(__file__).parent / "queries.yaml").read_text(encoding="utf-8")
    return TypeAdapter(dict[Family, dict[str, _Shape]]).validate_python(yaml.safe_load(text))


class _Lookup:
    """The value of a placeholder such as `{at[days]}` or `{at[500]}`: a function of a number."""

    def __init__(self, function: Callable[[float], object], drawn: Mapping[str, Any]) -> None:
        self._function, self._drawn = function, drawn

    def __getitem__(self, key: int | str) -> object:
        # `{at[days-30]}`: 30 days less than was drawn for `days`.
        first, *less = (float(self._drawn.get(name, name)) for name in str(key).split("-"))
        return self._function(first - sum(less))


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
    # Each schema once before any comes again, in an order drawn anew.
    rounds = [dice.sample(list(schemas), len(schemas)) for _ in range(math.ceil(count / len(schemas)))]
    places = [name for names in rounds for name in names][:count]
    drawn = []
    for number, (family, place) in enumerate(zip(turns, places, strict=True), start=1):
        shape = _filled(dice.choice(list(_shapes()[family].values())), SCHEMAS[place], dice)
        drawn.append(_as_task(f"task-{seed}-{number:04d}", family, SCHEMAS[place], shape, database_seed))
    return drawn


def story(database_seed: int = 0) -> list[TuningTask]:
    """Return the three tasks of the paper's example (§7): discovery, reuse, and the edge case."""
    dice = random.Random("the paper's story")  # noqa: S311
    made: tuple[tuple[str, Family, str, str], ...] = (
        ("story-1-discovery", "time_range", "events", "counted_range"),
        ("story-2-reuse", "time_range", "sales", "counted_range"),
        ("story-3-edge-case", "multi_filter", "transactions", "range_and_high_amount"),
    )
    return [
        _as_task(name, family, schema, _filled(_shapes()[family][shape], schema, dice), database_seed)
        for name, family, schema, shape in ((*each[:2], SCHEMAS[each[2]], each[3]) for each in made)
    ]


def judge(task: TuningTask, measured: Measurement) -> Trial:
    """Judge whether a measurement solves a task: correct, fast enough, and within the index budget."""
    at_least = "more than " if measured.stopped else ""
    fast_enough = measured.speed_up >= task.wanted_speed_up
    index_share = measured.index_bytes / measured.table_bytes if measured.table_bytes else 0.0
    small_enough = index_share <= task.index_budget
    slow = f" (the original was stopped after {measured.baseline_seconds:g} s)" if measured.stopped else ""
    said = f"{at_least}{measured.speed_up:.1f} times as fast{slow}."
    if not measured.correct:
        said = measured.refused or measured.error or "The result is wrong."
    elif not fast_enough:
        said = f"{at_least}{measured.speed_up:.2f} times as fast; {task.wanted_speed_up:g} times is required."
    elif not small_enough:
        said = f"The indexes take {index_share:.0%} of the tables; {task.index_budget:.0%} is free."
    seconds = Metric(
        name="seconds",
        value=measured.solution_seconds,
        baseline=measured.baseline_seconds,
        wanted=task.wanted_speed_up,
        stopped=measured.stopped,
    )
    size = Metric(name="index_share", value=index_share, limit=task.index_budget)
    return Trial(
        correct=measured.correct,
        solved=measured.correct and fast_enough and small_enough,
        gain=measured.speed_up,
        wanted=task.wanted_speed_up,
        metrics=[seconds, size],
        evidence=measured.plan_after,
        summary=said,
        problem=measured.refused or measured.error,
    )


def _refuse_unknown(given: Sequence[str], known: Sequence[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown or not given:
        raise BadInput(f"Unknown: {unknown or 'nothing given'}.", hint=f"There are {', '.join(known)}.")


def _as_task(name: str, family: Family, schema: Schema, shape: _Shape, database_seed: int) -> TuningTask:
    free = f"New indexes may take {shape.budget:.0%} of the tables' size."
    room = free if shape.budget else "The tables are written to all the time: no index may be added."
    return TuningTask(
        id=name,
        family=family,
        schema_name=schema.name,
        seed=database_seed,
        description=f"{shape.asks} {room}",
        query=shape.query,
        tables=[schema.fact, schema.entity] if shape.with_entity else [schema.fact],
        index_budget=shape.budget,
        catalogue=schema.tables(),
        time=schema.time,
    )


def _amount(upper_share: float) -> int:
    """Return the amount that this share of facts exceeds: a quantile of the distribution in `draw`."""
    return int(MEDIAN_AMOUNT * math.exp(AMOUNT_SPREAD * NormalDist().inv_cdf(1 - upper_share)))


def _filled(shape: _Shape, schema: Schema, dice: random.Random) -> _Shape:
    """Draw the values of a shape's placeholders, and fill in a schema's names."""
    if schema.epoch and shape.epoch:  # times are numbers there, and text functions do not fit
        shape = shape.epoch
    fields = schema.model_dump()
    named = {**fields, **fields["columns"], "e": fields["entity_columns"], "half": schema.entities // 2}
    drawn = {name: _drawn(said, named, dice) for name, said in shape.draw.items()}
    numbers: Mapping[str, Callable[[float], object]] = {
        "at": schema.moment,
        "date": schema.date,
        "above": _amount,
        "thrice_above": lambda share: 3 * _amount(share),
        "statuses": lambda n: schema.statuses[int(n)],
        "channels": lambda n: schema.channels[int(n)],
        "words": lambda n: CELL_WORDS[int(n)],
    }
    lookups = {name: _Lookup(function, drawn) for name, function in numbers.items()}
    words = {**named, "Subject": schema.subject.capitalize(), **drawn, **lookups}
    return shape.model_copy(
        update={part: getattr(shape, part).format_map(words) for part in ("asks", "query")}
    )


def _drawn(said: list[Any] | str, named: Mapping[str, Any], dice: random.Random) -> Any:
    if isinstance(said, list):
        return dice.choice(said)
    first, last = said.format_map(named).split("..")
    return dice.randint(int(first), int(last))
