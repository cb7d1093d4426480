"""Query tuning: run a solution on a real database and measure it."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import NamedTuple, Self, cast

import sqlglot
from sqlglot import exp

from mneme.core.errors import BadInput, needs
from mneme.environments.sql_tuning.analysis import Filter
from mneme.environments.sql_tuning.databases import Database, DatabaseCopy, quoted
from mneme.environments.sql_tuning.generating import find_schema
from mneme.environments.sql_tuning.guard import (
    Dialect,
    checked_preparation,
    checked_query,
    parse,
)
from mneme.environments.sql_tuning.records import (
    Failed,
    Late,
    Limits,
    Measurement,
    Refused,
    Row,
    Stopped,
)
from mneme.environments.sql_tuning.sqlite import SqliteDatabase
from mneme.environments.sql_tuning.tasks import TASK_ROWS, TuningTask
from mneme.environments.worlds import Solution

# Two measurements at once would slow each other down, so one waits for the other.
_turn = threading.Lock()
_described: dict[str, str] = {}  # a made database stays as it is
_keeping: dict[tuple[str, str], bool] = {}


Asked = tuple[DatabaseCopy, str]


class Baseline(NamedTuple):
    """The original query: its result where it came to an end, and its seconds."""

    rows: list[Row] | None
    seconds: float


class Pair(NamedTuple):
    """The seconds of the original and of a solution, one right after the other."""

    baseline: float
    solution: float

    @property
    def speed_up(self) -> float:
        return self.baseline / max(self.solution, MIN_SECONDS)


Order = Callable[[Row], object]
SIGNIFICANT_DIGITS = 10
"""Significant digits of a floating-point number: a sum in another order differs in the last ones."""
SLOW_SECONDS = 1.0
"""Seconds from which on an original is measured once and for all; a faster one beside each solution."""
HALF_OF_ROWS = 0.5
REDUCTIONS = (10, 100, 1000)
MIN_SECONDS = 1e-9
MIN_TIMINGS = 3
"""Pairs of runs below which twice the time may be spent."""
_baselines: dict[tuple[str, str], Baseline] = {}


class SqlTuning:
    """A database with a slow query; every call works on a copy and may block for seconds.

    Call it off the event loop (`asyncio.to_thread`). Whatever a solution holds, `run` answers with a
    `Measurement`; only a wrong use of this class itself raises.
    """

    def __init__(self, database: Database, query: str = "", limits: Limits | None = None) -> None:
        self._database, self.dialect = database, database.dialect
        self.query = query
        self.limits = limits or Limits()

    @classmethod
    def of(cls, task: TuningTask, *, rows: int = TASK_ROWS, limits: Limits | None = None) -> Self:
        """Open the database of a task, made on first use, with its slow query. Raises BadInput, NotFound."""
        if task.is_own:
            return cls(own_database(task, rows, task.tables), task.query, limits)
        if rows < 1 or task.seed < 0:
            given = f"{rows} and {task.seed}"
            raise BadInput(f"A database has at least one row and a seed from 0 on, not {given}.")
        return cls(SqliteDatabase.drawn(find_schema(task.schema_name), task.seed, rows), task.query, limits)

    def within(self, limits: Limits) -> "SqlTuning":
        """Return the same database and query, with other limits."""
        return SqlTuning(self._database, self.query, limits)

    def schema(self) -> str:
        """Describe the tables: rows, columns with their distinct values, indexes."""
        if self._database.key not in _described:
            described = list[str]()
            with _turn, self._database.copy(Limits(seconds=60)) as copy:
                for table, columns in self._database.catalogue.items():
                    counted = ", ".join(f"COUNT(DISTINCT {name})" for name in map(quoted, columns))
                    ((rows, *distinct),), _ = copy.ask(f"SELECT COUNT(*), {counted} FROM {quoted(table)}")
                    counts = zip(columns.items(), distinct, strict=True)
                    named = ", ".join(f"{name} {kind} ({number} distinct)" for (name, kind), number in counts)
                    there = "; ".join(copy.indexes(table))
                    ending = f"indexes: {there}" if there else "no indexes"
                    described.append(f"{table}: {rows} rows; {named}; {ending}")
            _described[self._database.key] = "\n".join(described)
        return _described[self._database.key]

    def explain(self, sql: str = "") -> str:
        """Return the database's plan for a query; by default for the slow query."""
        try:
            query = checked_query(sql or self.query, self.dialect, self._database.catalogue)
            with _turn, self._database.copy(self.limits) as copy:
                return copy.plan(query)
        except (Refused, Stopped, Failed) as reason:
            return f"No plan: {reason}"

    def keeps_most(self, filters: Sequence[Filter]) -> bool:
        """Return whether the query's filters keep more than half of each table's rows, counted once.

        Filters that cannot be counted, such as one that takes too long, are taken to keep few rows.
        """
        key = (self._database.key, self.query)
        if key not in _keeping:
            predicates, shares = dict[str, list[str]](), list[float]()
            for each in filters:
                predicates.setdefault(each.column.table, []).append(f"({each.predicate})")
            try:
                with _turn, self._database.copy(self.limits) as copy:
                    for table, said in predicates.items():
                        share = f"COUNT(*) * 1.0 / (SELECT COUNT(*) FROM {table})"
                        query = f"SELECT {share} FROM {table} WHERE {' AND '.join(said)}"
                        rows, _ = copy.ask(checked_query(query, self.dialect, self._database.catalogue))
                        shares.append(float(str(rows[0][0] or 0)))  # nothing, where the table is empty
            except (Refused, Stopped, Failed):
                shares.append(0.0)
            _keeping[key] = bool(shares) and min(shares) > HALF_OF_ROWS
        return _keeping[key]

    def run(self, solution: Solution) -> Measurement:
        """Run the original and the solution on one copy, compare their results, and time both."""
        measured = Measurement(clock=self._database.clock)
        if not self.query:
            raise BadInput("There is no query to compare with.", hint="Give the task one.")
        try:
            with _turn:
                self._measure(solution, measured)
        except Refused as refused:
            measured.refused = str(refused)
        except (Stopped, Failed) as failed:
            measured.error = str(failed)
        return measured

    def _measure(self, solution: Solution, measured: Measurement) -> None:
        if (count := len(solution.statements)) > self.limits.statements:
            raise Refused(f"{count} statements; {self.limits.statements} may prepare a query.")
        dialect, catalogue = self.dialect, self._database.catalogue
        original = checked_query(self.query, dialect, catalogue)
        rewritten = checked_query(solution.query or self.query, dialect, catalogue)
        statements = checked_preparation(solution.statements, dialect, catalogue)
        with self._database.copy(self.limits) as copy:
            measured.table_bytes = copy.size()
            measured.plan_before = copy.plan(original)
            with self._original(original) as (baseline, again):
                measured.baseline_seconds, measured.stopped = baseline.seconds, baseline.rows is None
                for statement in statements:
                    before = copy.size()
                    copy.prepare(statement)
                    if isinstance(parse(statement, self.dialect), exp.Create):
                        measured.index_bytes += max(0, copy.size() - before)
                measured.plan_after = copy.plan(rewritten)
                found, pair = self._raced(again, (copy, rewritten), baseline)
        measured.baseline_seconds, measured.solution_seconds = pair
        measured.error = self._compared(baseline, found, (original, rewritten), statements, measured)
        measured.correct = not measured.error
        if measured.correct:
            measured.speed_up = pair.speed_up

    @contextmanager
    def _original(self, query: str) -> Iterator[tuple[Baseline, Asked | None]]:
        """Yield the first run of the original, and a way to run it again; a slow one runs once."""
        key = (self._database.key, query)
        if key in _baselines:
            yield _baselines[key], None
            return
        with self._database.copy(self.limits) as copy:
            try:
                found = Baseline(*copy.ask(query, self.limits.baseline_seconds))
            except Late:
                found = Baseline(None, self.limits.baseline_seconds)
            is_slow = found.rows is None or found.seconds > SLOW_SECONDS
            if is_slow:
                _baselines[key] = found
            yield found, None if is_slow else (copy, query)

    def _raced(self, one: Asked | None, other: Asked, baseline: Baseline) -> tuple[list[Row], Pair]:
        """Run the original and a solution in turn; give the solution's rows and the pair of median speed-up.

        A processor's pace changes within a hundredth of a second, by a factor of two and more: what runs side
        by side is slowed alike, and a moment that hits one of both is an outlier.
        """
        most, (copy, solution) = max(self.limits.seconds, baseline.seconds), other
        rows, first = copy.ask(solution, most)
        pairs = [Pair(baseline.seconds, first)]
        spent = sum(pairs[0])
        while len(pairs) < self.limits.runs and spent < self.limits.enough * (1 + (len(pairs) < MIN_TIMINGS)):
            original = baseline.seconds
            if one is not None:
                _, original = one[0].ask(one[1], self.limits.baseline_seconds)
            pairs.append(Pair(original, copy.ask(solution, most)[1]))
            spent += pairs[-1].solution + (0 if one is None else original)
        return rows, sorted(pairs, key=lambda pair: pair.speed_up)[len(pairs) // 2]

    def _compared(
        self,
        baseline: Baseline,
        found: list[Row],
        queries: tuple[str, str],
        statements: list[str],
        measured: Measurement,
    ) -> str:
        """Return how the results differ: on the data, if the original ends there, and on adversarial rows."""
        original, rewritten = queries
        if baseline.rows is None:
            wrong = ""  # compared on the first smaller database on which the original comes to an end
            for by in REDUCTIONS:
                with suppress(Late), self._database.smaller(by).copy(self.limits) as copy:
                    measured.rows, wrong = self._same_on(copy, original, rewritten, statements)
                    break
        else:
            order, whole = order_of(original, self.dialect), partial(self._whole, original)
            measured.rows, wrong = len(baseline.rows), differences(baseline.rows, found, order, whole)
        if wrong:
            return wrong
        with self._database.twin(original, self.limits) as twin:
            try:
                twin.ask(original)
            except (Failed, Stopped):  # in PostgreSQL, a made text that is no number stops a cast
                pass
            else:
                measured.proven_on, wrong = self._same_on(twin, original, rewritten, statements)
        if wrong:
            return f"On rows made to tell them apart (case, NULL, duplicates, ties): {wrong}"
        if not measured.rows and not measured.proven_on:
            return "The original gives no row, on these data or on made ones: an empty result proves nothing."
        return ""

    def _whole(self, original: str) -> list[Row]:
        """Return the rows of a query without its LIMIT."""
        with self._database.copy(self.limits) as copy:
            return copy.ask(without_limit(original, self.dialect), self.limits.baseline_seconds)[0]

    def _same_on(
        self, copy: DatabaseCopy, original: str, rewritten: str, statements: list[str]
    ) -> tuple[int, str]:
        """Run both on a database; return the rows of the original, and how the solution's differ."""
        expected, _ = copy.ask(original)
        for statement in statements:
            copy.prepare(statement)
        found, _ = copy.ask(rewritten)

        def whole() -> list[Row]:
            return copy.ask(without_limit(original, self.dialect))[0]

        return len(expected), differences(expected, found, order_of(original, self.dialect), whole)


def own_database(task: TuningTask, rows: int, tables: Sequence[str] | None = None) -> Database:
    """Open a database of the user's own, of which `tables` are worked on. Raises BadInput, StorageFailure."""
    if task.dialect == "postgres":
        with needs("PostgreSQL", "postgres"):
            from mneme.environments.sql_tuning.postgres import PostgresDatabase  # noqa: PLC0415  (an extra)
        return PostgresDatabase(task.database, tables)
    if task.database:
        return SqliteDatabase.read(task.database)
    return SqliteDatabase.declared(task.ddl, task.query, rows)


def order_of(query: str, dialect: Dialect) -> Order | None:
    """Return the sort keys of a query; the whole row if a sort key is not in its rows."""
    tree = parse(query, dialect)
    order = tree.args.get("order")
    if order is None:
        return None
    names = [
        {output.alias, output.unalias().sql(), output.output_name} for output in cast(exp.Query, tree).selects
    ]
    places = list[int | None]()  # the output column that a sort key is: by number, name or expression
    for key in [each.this for each in order.expressions]:
        if isinstance(key, exp.Literal) and key.is_int:
            places.append(int(key.this) - 1)
        else:
            places.append(next((place for place, known in enumerate(names) if key.sql() in known), None))
    return lambda row: tuple(row if place is None else row[place] for place in places)


def differences(
    expected: Sequence[Row], found: Sequence[Row], order: Order | None, of: Callable[[], Sequence[Row]]
) -> str:
    """Return the difference of two results, in one line; "" if they are equal.

    Rows that tie in the sort keys may change places; everything else is compared exactly. `of` gives all rows
    before a LIMIT: any of the rows that tie at its end may be taken.
    """
    wanted, given = [_rounded(row) for row in expected], [_rounded(row) for row in found]
    if len(wanted) != len(given):
        return f"The solution gives {len(given)} rows, the original {len(wanted)}."
    missing = Counter(wanted) - Counter(given)
    same_order = order is None or [order(row) for row in wanted] == [order(row) for row in given]
    # Of rows that tie at the end of a LIMIT, any may be taken.
    if missing and not (same_order and not Counter(given) - Counter(map(_rounded, of()))):
        other = next(iter(Counter(given) - Counter(wanted)))
        example = f"the original gives {next(iter(missing))!r}, the solution {other!r}"
        return f"{missing.total()} of {len(wanted)} rows differ: {example}."
    return "" if same_order else "The rows are the same, but in another order than the original's."


def _rounded(row: Row) -> Row:
    return tuple(float(f"{cell:.{SIGNIFICANT_DIGITS}g}") if isinstance(cell, float) else cell for cell in row)


def without_limit(query: str, dialect: Dialect) -> str:
    """Return a query without its LIMIT."""
    tree = sqlglot.parse_one(query, read=dialect)
    tree.set("limit", None)
    tree.set("offset", None)
    return tree.sql(dialect)
