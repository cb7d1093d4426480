"""The query-tuning world as agents see it: its tools, what a query is made of, what a pattern comes to.

A card's condition is read as features with `;` between them. A general feature (`range filter`) holds for
every particular one (`one range filter`, `range filters`); a condition in other words is shown to a model
and left alone by rules.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Annotated

import yaml
from langchain_core.tools import BaseTool, tool
from langgraph.channels import EphemeralValue
from pydantic import Field
from typing_extensions import NotRequired, TypedDict  # noqa: UP035

from mneme.core.errors import BadInput
from mneme.environments.sql_tuning import (
    Limits,
    Solution,
    SqlTuning,
    TuningTask,
    analyse,
    describe,
    find_schema,
    instantiate,
    judge,
    structure_of,
)
from mneme.environments.sql_tuning.tasks import BUDGET, WANTED
from mneme.library import EXAMPLES
from mneme.nodes.learning.context import TeamContext
from mneme.nodes.messages import ChatMessages
from mneme.prompts.learning.tuning import REMEDIES, Advice, Measurement

STORY: dict[str, dict[str, str]] = {
    each["id"]: each for each in yaml.safe_load((EXAMPLES / "story.yaml").read_text(encoding="utf-8"))
}
"""The tasks that come with Mneme, by their ids: `task`, `schema` and `query`."""
FIRST_IDEAS = (
    "REWRITE sargable",
    "INDEX (filter)",
    "INDEX (join)",
    "INDEX (order)",
    "INDEX (hidden)",
    "KEEP",
)
"""What a textbook begins with: the simplest rewriting, or an index on the first filter."""
FURTHER = "further columns"
GENERAL = {
    "one equality filter": "equality filter",
    "equality filters": "equality filter",
    "one range filter": "range filter",
    "range filters": "range filter",
    FURTHER: "",
}
STRUCTURE = {
    *(f"column hidden by {by}" for by in ("function", "cast", "arithmetic", "leading wildcard", "pattern")),
    *("more than three filters", "OR across columns", "correlated subquery", "join", "top-k order"),
}
"""Features that make a query another kind of query: a condition that does not name them is about others."""
FEATURES = {*GENERAL, *GENERAL.values(), *STRUCTURE, "grouping"}
QUICK_TRIAL = Limits(runs=5, enough=0.1)
"""A quick trial of a draft; what counts is measured in full afterwards."""


class Problem(TypedDict):
    """A task as the graph is given it; where it is run, its query is needed."""

    task: NotRequired[
        Annotated[
            str,
            Field(
                "", description="What is to be solved, in words.", examples=["Speed up the report of sales."]
            ),
        ]
    ]
    example: NotRequired[
        Annotated[
            str,
            Field(
                "",
                description="Instead of task and query: a task that comes with Mneme, run and measured.",
                examples=[next(iter(STORY))],
                json_schema_extra={"enum": ["", *STORY]},
            ),
            EphemeralValue,
        ]
    ]
    messages: NotRequired[Annotated[ChatMessages, EphemeralValue]]
    task_id: NotRequired[
        Annotated[
            str,
            Field(
                "",
                description="Its id: a task counts once for a card. Else one is made.",
                examples=["report-1"],
            ),
        ]
    ]
    query: NotRequired[
        Annotated[
            str,
            Field(
                "",
                description="The slow query; needed where the context names an environment.",
                examples=["SELECT user_id, COUNT(*) FROM user_events GROUP BY user_id"],
            ),
        ]
    ]
    wanted_speed_up: NotRequired[
        Annotated[float, Field(WANTED, description="How many times as fast is fast enough.", examples=[2.0])]
    ]
    index_budget: NotRequired[
        Annotated[
            float,
            Field(BUDGET, description="What new indexes may take, as a share of the tables.", examples=[0.3]),
        ]
    ]


@dataclass(frozen=True)
class TaskDatabase:
    """One query on one database. Trials block for a while, so they run beside the event loop."""

    task: TuningTask
    rows: int

    @classmethod
    def of(cls, problem: Problem, context: TeamContext, schema_name: str = "") -> "TaskDatabase":
        """Lay out a task on its database. Raises BadInput, NotFound for an unknown schema."""
        query = problem.get("query", "").strip().rstrip(";")
        if not query:
            raise BadInput(
                "The environment sql_tuning needs the slow query.",
                "Give `query`, or leave the environment out.",
            )
        schema = find_schema(schema_name or context.schema_name)
        limits = {name: problem[name] for name in ("wanted_speed_up", "index_budget") if problem.get(name)}
        task = TuningTask(
            id=problem.get("task_id") or "task",
            family="time_range",  # not looked at: the structure of the query says what it is
            schema_name=schema.name,
            seed=context.database_seed,
            description=problem.get("task", ""),
            query=query,
            tables=sorted(analyse(query, schema.tables()).tables, key=lambda table: table != schema.fact),
            **limits,
        )
        return cls(task, context.rows)

    @cached_property
    def features(self) -> list[str]:
        """Name what matters in the query, `further columns` being those that it only reads."""
        made = structure_of(self.task)
        named = {*made.group, *(each.column for each in made.filters), *(key.column for key in made.order)}
        named |= {each.column for each in made.hidden} | {c for j in made.joins for c in (j.left, j.right)}
        named |= set(made.alternatives)
        schema = find_schema(self.task.schema_name).tables()
        keys = {(table, next(iter(columns))) for table, columns in schema.items()}
        further = [c for c in made.used if c not in named and (c.table, c.column) not in keys]
        return [*made.features(), *([FURTHER] if further else [])]

    def advice(self, condition: str, pattern: str) -> Advice:
        """Make a pattern out for the query, and say whether its condition holds."""
        holds, asks = applies(condition, self.features), specificity(condition)
        try:
            made = instantiate(pattern, self.task)
        except BadInput as not_here:
            return Advice(
                condition=condition, pattern=pattern, applies=holds, specificity=asks, why_not=str(not_here)
            )
        return Advice(
            condition=condition,
            pattern=pattern,
            applies=holds,
            specificity=asks,
            statements=made.statements,
            query=made.query,
        )

    def first_ideas(self) -> list[Advice]:
        """Return what a textbook would begin with, where it can be done."""
        return [each for pattern in FIRST_IDEAS if (each := self.advice("", pattern)).feasible]

    def remedies(self) -> list[str]:
        """Return the patterns that can be carried out here, in no order of merit."""
        return [pattern for pattern in REMEDIES if self.advice("", pattern).feasible]

    def describe(self, statements: list[str], query: str) -> str:
        """Say a solution as a pattern; words for what is in no pattern."""
        try:
            return describe(Solution(statements=statements, query=query), self.task)
        except BadInput:
            return ""

    async def attempt(self, statements: list[str], query: str, limits: Limits | None = None) -> Measurement:
        """Run a solution on a throw-away copy; a refusal or an error is a failure, told in words."""
        return await asyncio.to_thread(self._attempt, Solution(statements=statements, query=query), limits)

    def _attempt(self, solution: Solution, limits: Limits | None) -> Measurement:
        with SqlTuning.of(self.task, rows=self.rows, limits=limits) as world:
            measured = world.run(solution)
        judgement = judge(self.task, measured)
        return Measurement(
            correct=measured.correct,
            speed_up=measured.speed_up,
            wanted=self.task.wanted_speed_up,
            seconds=measured.solution_seconds,
            baseline=measured.baseline_seconds,
            index_share=measured.index_share,
            budget=self.task.index_budget,
            plan=measured.plan_after,
            solved=judgement.solved,
            summary=judgement.why,
            problem=measured.refused or measured.error,
        )

    def tools(self) -> Sequence[BaseTool]:
        """Return the researcher's tools."""

        @tool
        async def schema() -> str:
            """Describe the tables: rows, columns with their distinct values, indexes."""
            return await asyncio.to_thread(_described, self.task.schema_name, self.task.seed, self.rows)

        @tool
        async def explain(sql: str) -> str:
            """Show the plan by which the database would run a query."""
            return await asyncio.to_thread(self._explain, sql)

        @tool
        async def measure(statements: list[str], query: str) -> str:
            """Try CREATE INDEX statements and a query (empty: the original) on a throw-away copy."""
            return str(await self.attempt(statements, query, QUICK_TRIAL))

        return [schema, explain, measure]

    def _explain(self, sql: str) -> str:
        with SqlTuning.of(self.task, rows=self.rows) as world:
            return world.explain(sql)


@lru_cache(maxsize=64)
def _described(schema: str, seed: int, rows: int) -> str:
    with SqlTuning.open(schema, seed, rows) as world:
        tables = world.schema()
    return "\n".join(
        f"{table.name}: {table.rows} rows; "
        + ", ".join(f"{column.name} {column.type} ({column.distinct} distinct)" for column in table.columns)
        + (f"; indexes: {'; '.join(table.indexes)}" if table.indexes else "; no indexes")
        for table in tables
    )


def general(features: Sequence[str]) -> list[str]:
    """Leave out of features what is particular to one query: how many filters, what else it reads."""
    return [each for each in dict.fromkeys(GENERAL.get(feature, feature) for feature in features) if each]


def applies(condition: str, features: Sequence[str]) -> bool | None:
    """Say whether a condition holds for a query with these features; None where it says something else."""
    asked = [part.strip() for part in condition.split(";") if part.strip()]
    if any(part not in FEATURES for part in asked):
        return None
    named = STRUCTURE.intersection(features) <= {*asked}
    return named and {*asked} <= {*features, *general(features)}


def specificity(condition: str) -> int:
    """Say how much a condition asks for: a particular feature counts for two general ones."""
    asked = {part.strip() for part in condition.split(";") if part.strip()}
    return sum(1 if part in GENERAL.values() else 2 for part in asked)
