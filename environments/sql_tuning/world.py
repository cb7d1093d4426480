"""Query tuning as a world: a slow query on a database that comes with Mneme, or on the user's own."""

import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import sqlglot
from pydantic import ValidationError
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mneme.core.errors import BadInput
from mneme.environments.sql_tuning import analysis
from mneme.environments.sql_tuning.generating import find_schema
from mneme.environments.sql_tuning.patterns import (
    DEFINITION,
    FIRST_IDEAS,
    REMEDIES,
    canonical,
    describe,
    instantiate,
)
from mneme.environments.sql_tuning.records import Limits
from mneme.environments.sql_tuning.tasks import TuningTask, judge, tasks
from mneme.environments.sql_tuning.tuning import SqlTuning, own_database
from mneme.environments.trial import NOISE
from mneme.environments.worlds import Solution, Task, Trial, World, WorldKind, parts_of, stated

QUICK_TRIAL = Limits(runs=21, enough=0.2)
"""A quick trial of a draft, long enough that a disturbance of some milliseconds decides nothing."""
LONG_TRIAL = Limits(runs=45, enough=1.5)
"""Limits of a repeated trial, for a solution that noise alone may accept or reject."""
QUERY_PREFIX = "Query: "
WORLD_ROWS = 60_000
SIMILAR_TASKS_DRAWN = 160
"""Number of drawn tasks among which similar ones are found."""
TUNING_FORM = """\
Statements are CREATE INDEX and ANALYZE alone, in order; the query is the given one written anew, ""
where it stays as it is. Answer, files and diff stay empty."""


class PatternLanguage:
    """The patterns of query tuning."""

    definition = DEFINITION
    check = staticmethod(canonical)


class SqlTuningKind(WorldKind):
    """Slow queries."""

    name = "sql_tuning"
    vocabulary = "\n".join([DEFINITION, *REMEDIES, *sorted(analysis.SQL_FEATURES)])

    def names(self, material: str) -> Sequence[str]:
        """Return the tables, columns and aliases of the query that a task was about."""
        try:
            query = sqlglot.parse_one(material.removeprefix(QUERY_PREFIX), read="sqlite")
        except SqlglotError:  # it was shortened: its words in place of its names
            return re.findall(r"[^\W\d]\w+", material.removeprefix(QUERY_PREFIX))
        return sorted({each.name for each in query.find_all(exp.Identifier)})

    def open(self, task: Task) -> "SqlWorld":
        """Lay out a task on its database. Raises BadInput, NotFound for an unknown schema."""
        given, rows = stated(task.given), int(task.given.get("rows") or WORLD_ROWS)
        named = {"id": task.id, "description": task.text, "seed": given.get("database_seed", 0)}
        try:
            laid = TuningTask.model_validate({**given, **named})
        except ValidationError as wrong:
            raise BadInput(f"The task of query tuning: {wrong.errors()[0]['msg']}.", "Check it.") from wrong
        query = laid.query.strip().rstrip(";")
        if not query:
            hint = "Give `query` (--query), or leave the environment (--world) out."
            raise BadInput("The environment sql_tuning needs the slow query.", hint)
        laid, schema = laid.model_copy(update={"query": query}), None
        if laid.is_own:
            catalogue = own_database(laid, rows).catalogue
        else:
            schema = find_schema(laid.schema_name)
            catalogue = schema.tables()
        laid = laid.model_copy(update={"catalogue": catalogue, "time": schema.time if schema else None})
        read = laid.structure
        # Tables that refer to others by a joined column are large: patterns are about them first.
        keys = {name: next(iter(columns)) for name, columns in catalogue.items()}
        facts = {schema.fact} if schema else {end.table for end in read.ends if end.column != keys[end.table]}
        tables = sorted(read.tables, key=lambda table: table not in facts)
        return SqlWorld(laid.model_copy(update={"tables": tables}), rows)

    def similar(self, task: Task, seed: int) -> Sequence[Task]:
        """Draw tasks on the databases that come with Mneme."""
        own = {"database": "", "ddl": ""}
        database_seed = int(task.given.get("database_seed") or 0)
        return [
            Task(
                id=each.id,
                text=each.description,
                group=each.schema_name,
                given={**task.given, **each.posed, "schema_name": each.schema_name, **own},
            )
            for each in tasks(seed, SIMILAR_TASKS_DRAWN, database_seed=database_seed)
        ]


class SqlWorld(World):
    """One slow query on one database."""

    scope = "sql_tuning"
    noun = "queries"
    form = TUNING_FORM
    parts = ("statements", "query")
    language = PatternLanguage()

    def __init__(self, task: TuningTask, rows: int) -> None:
        self.task, self._tuning = task, SqlTuning.of(task, rows=rows)
        self._of_query = analysis.features(task.structure, task.catalogue)

    @cached_property
    def features(self) -> list[str]:
        """Name what matters in the query and its data, `further columns` being those that it only reads."""
        keeps_most = self._tuning.keeps_most(self.task.structure.filters)
        return [*self._of_query, *([analysis.KEEPS_MOST] if keeps_most else [])]

    @property
    def general(self) -> list[str]:
        """Return the features without the number of filters and the other columns."""
        general = (analysis.GENERAL.get(feature, feature) for feature in self._of_query)
        return [each for each in dict.fromkeys(general) if each]

    @property
    def versions(self) -> Mapping[str, str]:
        """Return SQLite's version; a PostgreSQL server is not asked for its own."""
        return {} if self.task.dialect == "postgres" else {"sqlite": sqlite3.sqlite_version}

    def material(self) -> str:
        """Return the slow query."""
        return f"{QUERY_PREFIX}{self.task.query}"

    def wanted(self) -> str:
        """Return the wanted speed, the size limit of indexes, and the engine."""
        engine = "PostgreSQL" if self.task.dialect == "postgres" else "SQLite"
        return (
            f"The same rows at least {self.task.wanted_speed_up:g} times as fast on {engine}; new indexes "
            f"may take {self.task.index_budget:.0%} of the tables' size. Allowed are CREATE INDEX, ANALYZE "
            "and another SELECT; no table may change."
        )

    @property
    def wanted_gain(self) -> float:
        """Return the speed-up that is wanted."""
        return self.task.wanted_speed_up

    def applies(self, condition: str) -> bool | None:
        """Return whether the query has the features that a condition names; None if it names others."""
        asked = {*parts_of(condition)}
        if not asked <= analysis.SQL_FEATURES:
            return None
        # Whether filters keep most rows is counted on the database, so only where a condition asks for it.
        features = self.features if analysis.KEEPS_MOST in asked else self._of_query
        # A join or a hidden column makes another kind of query: only a condition that names it fits.
        return analysis.STRUCTURE.intersection(features) <= asked <= {*features, *self.general}

    def specificity(self, condition: str) -> int:
        """Return how specific a condition is: a particular feature counts for two general ones."""
        return sum(1 if part in analysis.GENERAL.values() else 2 for part in {*parts_of(condition)})

    def carry_out(self, pattern: str) -> Solution:
        """Return a pattern instantiated for the query. Raises BadInput if the query lacks what it names."""
        return instantiate(pattern, self.task)

    def first_ideas(self) -> Sequence[str]:
        """Return first ideas from textbooks."""
        return FIRST_IDEAS

    def remedies(self) -> Sequence[str]:
        """Return remedies worth a trial."""
        return REMEDIES

    def describe(self, solution: Solution) -> str:
        """Describe a solution as a pattern; return "" if no pattern fits."""
        try:
            return describe(solution, self.task)
        except BadInput:
            return ""

    def attempt(self, solution: Solution, *, quick: bool = False) -> Trial:
        """Run a solution on a throw-away copy."""
        for limits in (QUICK_TRIAL if quick else Limits(), LONG_TRIAL):
            trial = judge(self.task, replace(self._tuning, limits=limits).run(solution))
            # Within noise of the target, the measurement is repeated, and longer.
            if not trial.correct or abs(trial.gain - trial.wanted) > NOISE * trial.wanted:
                break
        return trial

    def looks(self) -> Sequence[Callable[..., str]]:
        """Return the researcher's tools."""

        def measure(statements: list[str], query: str) -> str:
            """Try CREATE INDEX statements and a query (empty: the original) on a throw-away copy."""
            tried = self.attempt(Solution(statements=statements, query=query), quick=True)
            return f"{tried.summary}\nplan:\n{tried.evidence}"

        return [self._tuning.schema, self._tuning.explain, measure]
