"""Query tuning: run a solution on a real database and measure it."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple, Self, cast

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
_described: dict[str, str] = {}  # by key: a changed SQLite file has another; a server is described once
_keeping: dict[tuple[str, str], bool] = {}


Asked = tuple[DatabaseCopy, str]
Timing = tuple[float, float, float]
"""The speed-up, and the seconds of the original and of a solution, one right after the other."""


class Baseline(NamedTuple):
    """The first run of the original query: its result, None if it was stopped, and its seconds."""

    rows: list[Row] | None
    seconds: float


SLOW_SECONDS = 1.0
"""Seconds above which an original is measured only once; a faster one is measured beside each solution."""
HALF_OF_ROWS = 0.5
REDUCTIONS = (10, 100, 1000)
MIN_SECONDS = 1e-9
MIN_TIMINGS = 3
"""Minimum number of pairs of runs, unless they take twice the time."""
_baselines: dict[tuple[str, str], Baseline] = {}


@dataclass
class SqlTuning:
    """A database with a slow query; every call works on a copy and may block for seconds.

    Call it off the event loop (`asyncio.to_thread`). Whatever a solution holds, `run` answers with a
    `Measurement`; only a wrong use of this class itself raises.
    """

    database: Database
    query: str
    limits: Limits

    @classmethod
    def of(cls, task: TuningTask, *, rows: int = TASK_ROWS, limits: Limits | None = None) -> Self:
        """Open the database of a task, made on first use, with its slow query. Raises BadInput, NotFound."""
        limits = limits or Limits()
        if task.is_own:
            return cls(own_database(task, rows, task.tables), task.query, limits)
        if rows < 1 or task.seed < 0:
            given = f"{rows} and {task.seed}"
            raise BadInput(f"A database has at least one row and a seed from 0 on, not {given}.")
        return cls(SqliteDatabase.drawn(find_schema(task.schema_name), task.seed, rows), task.query, limits)

    def schema(self) -> str:
        """Describe the tables: rows, columns with their distinct values, indexes."""
        if self.database.key not in _described:
            described = list[str]()
            with _turn, self.database.copy(Limits(seconds=60)) as copy:
                for table, columns in self.database.catalogue.items():
                    counted = ", ".join(f"COUNT(DISTINCT {name})" for name in map(quoted, columns))
                    ((rows, *distinct),), _ = copy.ask(f"SELECT COUNT(*), {counted} FROM {quoted(table)}")
                    counts = zip(columns.items(), distinct, strict=True)
                    named = ", ".join(f"{name} {kind} ({number} distinct)" for (name, kind), number in counts)
                    there = "; ".join(copy.indexes(table))
                    ending = f"indexes: {there}" if there else "no indexes"
                    described.append(f"{table}: {rows} rows; {named}; {ending}")
            _described[self.database.key] = "\n".join(described)
        return _described[self.database.key]

    def explain(self, sql: str = "") -> str:
        """Return the database's plan for a query; by default for the slow query."""
        try:
            query = checked_query(sql or self.query, self.database.dialect, self.database.catalogue)
            with _turn, self.database.copy(self.limits) as copy:
                return copy.plan(query)
        except (Refused, Stopped, Failed) as reason:
            return f"No plan: {reason}"

    def keeps_most(self, filters: Sequence[Filter]) -> bool:
        """Return whether the query's filters keep more than half of each table's rows, counted once."""
        key = (self.database.key, self.query)
        if key not in _keeping:
            predicates, shares = dict[str, list[str]](), list[float]()
            for each in filters:
                predicates.setdefault(each.column.table, []).append(f"({each.predicate})")
            try:
                with _turn, self.database.copy(self.limits) as copy:
                    for table, said in predicates.items():
                        share = f"COUNT(*) * 1.0 / (SELECT COUNT(*) FROM {table})"
                        query = f"SELECT {share} FROM {table} WHERE {' AND '.join(said)}"
                        rows, _ = copy.ask(
                            checked_query(query, self.database.dialect, self.database.catalogue)
                        )
                        shares.append(float(str(rows[0][0] or 0)))  # nothing, where the table is empty
            except (Refused, Stopped, Failed):
                shares.append(0.0)  # what cannot be counted is taken to keep few rows: an index is tried
            _keeping[key] = bool(shares) and min(shares) > HALF_OF_ROWS
        return _keeping[key]

    def run(self, solution: Solution) -> Measurement:
        """Run the original and the solution on one copy, compare their results, and time both."""
        measured = Measurement(clock=self.database.clock)
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
        dialect, catalogue = self.database.dialect, self.database.catalogue
        original = checked_query(self.query, dialect, catalogue)
        rewritten = checked_query(solution.query or self.query, dialect, catalogue)
        statements = checked_preparation(solution.statements, dialect, catalogue)
        with self.database.copy(self.limits) as copy:
            measured.table_bytes = copy.size()
            measured.plan_before = copy.plan(original)
            with self._original(original) as (baseline, again):
                measured.baseline_seconds, measured.stopped = baseline.seconds, baseline.rows is None
                for statement in statements:
                    before = copy.size()
                    copy.prepare(statement)
                    # The statistics of ANALYZE take room, too, but are no index.
                    if isinstance(parse(statement, self.database.dialect), exp.Create):
                        measured.index_bytes += max(0, copy.size() - before)
                measured.plan_after = copy.plan(rewritten)
                found, timing = self._raced(again, (copy, rewritten), baseline)
        speed_up, measured.baseline_seconds, measured.solution_seconds = timing
        measured.error = self._compared(baseline, found, (original, rewritten), statements, measured)
        measured.correct = not measured.error
        if measured.correct:
            measured.speed_up = speed_up

    @contextmanager
    def _original(self, query: str) -> Iterator[tuple[Baseline, Asked | None]]:
        """Yield the first run of the original, and a way to run it again; a slow one runs once."""
        key = (self.database.key, query)
        if key in _baselines:
            yield _baselines[key], None
            return
        with self.database.copy(self.limits) as copy:  # of its own: the solution's indexes are not in it
            try:
                found = Baseline(*copy.ask(query, self.limits.baseline_seconds))
            except Late:
                found = Baseline(None, self.limits.baseline_seconds)
            is_slow = found.rows is None or found.seconds > SLOW_SECONDS
            if is_slow:
                _baselines[key] = found
            yield found, None if is_slow else (copy, query)

    def _raced(self, one: Asked | None, other: Asked, baseline: Baseline) -> tuple[list[Row], Timing]:
        """Run the original and a solution in turn; return the solution's rows and the median timing."""
        # No less than the original took: what needs more than `seconds` may still be faster than that.
        most, (copy, solution) = max(self.limits.seconds, baseline.seconds), other
        # A processor's pace changes within a hundredth of a second, by a factor of two and more: runs side by
        # side are slowed alike, and a moment that hits one of both is an outlier, which the median ignores.
        timings, spent, original = list[Timing](), 0.0, baseline.seconds
        while True:
            rows, seconds = copy.ask(solution, most)
            timings.append((original / max(seconds, MIN_SECONDS), original, seconds))
            spent += seconds + (original if one is not None or len(timings) == 1 else 0)
            enough = self.limits.enough * (1 + (len(timings) < MIN_TIMINGS))
            if len(timings) >= self.limits.runs or spent >= enough:
                return rows, sorted(timings)[len(timings) // 2]
            if one is not None:
                _, original = one[0].ask(one[1], self.limits.baseline_seconds)

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
                with suppress(Late), self.database.smaller(by).copy(self.limits) as copy:
                    measured.rows, wrong = self._same_on(copy, original, rewritten, statements)
                    break
        else:
            measured.rows = len(baseline.rows)
            wrong = differences(baseline.rows, found, original, self.database.dialect, self._asked_anew)
        if wrong:
            return wrong
        with self.database.twin(original, self.limits) as twin:
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

    def _asked_anew(self, query: str) -> list[Row]:
        with self.database.copy(self.limits) as copy:
            return copy.ask(query, self.limits.baseline_seconds)[0]

    def _same_on(
        self, copy: DatabaseCopy, original: str, rewritten: str, statements: list[str]
    ) -> tuple[int, str]:
        """Run both on a database; return the rows of the original, and how the solution's differ."""
        expected, _ = copy.ask(original)
        for statement in statements:
            copy.prepare(statement)
        found, _ = copy.ask(rewritten)
        dialect = self.database.dialect
        return len(expected), differences(expected, found, original, dialect, lambda sql: copy.ask(sql)[0])


def own_database(task: TuningTask, rows: int, tables: Sequence[str] | None = None) -> Database:
    """Open a database of the user's own, of which `tables` are worked on. Raises BadInput, StorageFailure."""
    if task.dialect == "postgres":
        with needs("PostgreSQL", "postgres"):
            from mneme.environments.sql_tuning.postgres import PostgresDatabase  # noqa: PLC0415  (an extra)
        return PostgresDatabase(task.database, tables)
    if task.database:
        return SqliteDatabase.read(task.database)
    return SqliteDatabase.declared(task.ddl, task.query, rows)


def differences(
    expected: Sequence[Row],
    found: Sequence[Row],
    query: str,
    dialect: Dialect,
    ask: Callable[[str], Sequence[Row]],
) -> str:
    """Return the difference of two results of a query, in one line; "" if they are equal.

    Rows that tie in the sort keys may change places; everything else is compared exactly. `ask` runs a query.
    """
    if len(expected) != len(found):
        return f"The solution gives {len(found)} rows, the original {len(expected)}."
    tree = cast(exp.Query, parse(query, dialect))
    keys, others = _sort_keys(tree, expected), _sort_keys(tree, found)
    missing = Counter(expected) - Counter(found)
    if missing and keys == others:  # of rows that tie at the end of a LIMIT, any may be taken
        tree.set("limit", None)
        tree.set("offset", None)
        missing = missing if Counter(found) - Counter(ask(tree.sql(dialect))) else Counter()
    if missing:
        other = next(iter(Counter(found) - Counter(expected)))
        example = f"the original gives {next(iter(missing))!r}, the solution {other!r}"
        return f"{missing.total()} of {len(expected)} rows differ: {example}."
    return "" if keys == others else "The rows are the same, but in another order than the original's."


def _sort_keys(tree: exp.Query, rows: Sequence[Row]) -> list[list[object]]:
    """Return each row's sort keys: output columns by number, name or expression, else the whole row."""
    order, places = tree.args.get("order"), list[int | None]()
    names = [{output.alias, output.unalias().sql(), output.output_name} for output in tree.selects]
    for key in [each.this for each in order.expressions] if order else []:
        known = (place for place, each in enumerate(names) if key.sql() in each)
        is_number = isinstance(key, exp.Literal) and key.is_int
        places.append(int(key.this) - 1 if is_number else next(known, None))
    return [[row if place is None else row[place] for place in places] for row in rows]
