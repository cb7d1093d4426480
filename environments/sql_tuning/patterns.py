"""Patterns: short texts that name a remedy for any schema, such as `INDEX (range, group)`.

A pattern is steps with `;` between them:

    INDEX (parts) [WHERE parts]                  an index; WHERE makes it partial, on these filters
    COVERING INDEX (parts)                       the same, with every other column that the query uses
    EACH INDEX (parts)                           an index for each column by itself
    REWRITE sargable | suffix | alternatives | correlated    what `rewriting` does
    ANALYZE                                      statistics
    KEEP                                         leave everything as it is

Parts are columns by what the query does with them: `time`, `filter` (the first), `filters`, `equality`,
`range`, `others` (filters but the time), `inequality`, `group`, `order`, `join`, `alternatives`, `hidden`,
`expression`, `rest`. The paper's spellings are read as well: `time_column`, `group_column`, `filter1,
filter2, ..., group_column`. A part that the query does not have is left out, but an index whose first part is
absent does not apply.
"""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast, get_args

import sqlglot
import yaml
from pydantic import BaseModel
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mneme.core.errors import BadInput
from mneme.environments.sql_tuning.analysis import Column, Structure, analyse
from mneme.environments.sql_tuning.guard import Dialect
from mneme.environments.sql_tuning.rewriting import Rewriting, rewrite
from mneme.environments.sql_tuning.tasks import TuningTask
from mneme.environments.worlds import Solution

Shape = Literal["INDEX", "COVERING INDEX", "EACH INDEX", "REWRITE", "ANALYZE", "KEEP"]

_words: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("patterns.yaml").read_text(encoding="utf-8"))
PATTERN_PARTS: Mapping[str, str] = _words["parts"]
_SPELLINGS: Mapping[str, str] = _words["spellings"]
FIRST_IDEAS, REMEDIES = tuple(_words["first_ideas"]), tuple(_words["remedies"])
DEFINITION = "\n".join(
    [
        _words["definition"],
        f"Parts are: {'; '.join(f'{name}: {what}' for name, what in PATTERN_PARTS.items())}.",
    ]
)
_INDEX = re.compile(r"(?:(COVERING|EACH|PARTIAL)\s+)?INDEX\s*\(([^()]*)\)(?:\s+WHERE\s+(.+))?", re.IGNORECASE)
_REWRITE = re.compile(r"REWRITE\s+(\w+)", re.IGNORECASE)
_NUMBERED = re.compile(r"filter[ _]?(\d)")


class Step(BaseModel):
    """One step of a pattern."""

    shape: Shape
    parts: list[str] = []
    where: list[str] = []

    def text(self) -> str:
        """Return the step in the words of the vocabulary."""
        if self.shape == "REWRITE":
            return f"REWRITE {self.parts[0]}"
        if not self.parts:
            return self.shape
        where = f" WHERE {', '.join(self.where)}" if self.where else ""
        return f"{self.shape} ({', '.join(self.parts)}){where}"


class DoesNotApply(BadInput):
    """The pattern names a part that the query does not have."""


def read_pattern(text: str) -> list[Step]:
    """Parse a pattern's steps. Raises `BadInput` for words outside the vocabulary."""
    steps = list[Step]()
    for said in filter(None, map(str.strip, re.split(r";|\bTHEN\b", text, flags=re.IGNORECASE))):
        if said.upper() in ("ANALYZE", "KEEP"):
            steps.append(Step(shape=cast(Shape, said.upper())))
        elif found := _REWRITE.fullmatch(said):
            if (name := found[1].lower()) not in (known := get_args(Rewriting)):
                raise BadInput(f"There is no rewriting {name!r}.", hint=f"There are {', '.join(known)}.")
            steps.append(Step(shape="REWRITE", parts=[name]))
        elif found := _INDEX.fullmatch(said):
            word = (found[1] or "").upper()
            shape = f"{word} INDEX" if word in ("COVERING", "EACH") else "INDEX"
            parts, where = _parts(found[2]), _parts(found[3] or "")
            steps.append(Step(shape=cast(Shape, shape), parts=parts, where=where))
        else:
            raise BadInput(f"{said!r} is not a step of a pattern.", hint="For example: INDEX (range, group)")
    if not steps:
        raise BadInput("A pattern has at least one step.", hint="For example: INDEX (range, group)")
    return steps


def canonical(text: str) -> str:
    """Return the canonical form of a pattern, so that two spellings are equal."""
    return "; ".join(step.text() for step in read_pattern(text))


def instantiate(pattern: str, task: TuningTask) -> Solution:
    """Apply a pattern to a task's query. Raises `DoesNotApply` if the query lacks what the pattern names."""
    query, structure, statements = task.query, task.structure, list[str]()
    for step in read_pattern(pattern):
        if step.shape == "REWRITE":
            how = cast(Rewriting, step.parts[0])
            rewritten = rewrite(how, query, task.catalogue, task.dialect)
            if rewritten == query:
                raise DoesNotApply(f"There is nothing to rewrite as {how}.")
            query = rewritten
            if how in ("sargable", "suffix"):  # the others leave the original's structure the better guide
                structure = analyse(query, task.catalogue, task.dialect)
        elif step.shape == "ANALYZE":
            statements.append("ANALYZE")
        elif step.shape != "KEEP":
            statements += _indexes(step, structure, task, len(statements))
    return Solution(statements=statements, query=query if query != task.query else "")


def describe(solution: Solution, task: TuningTask) -> str:
    """Describe a solution as a pattern: each index by the query's use of its columns.

    Raises `DoesNotApply` for a rewriting without a name, `BadInput` for a query that cannot be parsed.
    """
    structure, dialect = task.structure, task.dialect
    steps = []
    if solution.query and _parsed(solution.query, dialect) != _parsed(task.query, dialect):
        steps.append(f"REWRITE {_how(structure)}")
        if _how(structure) in ("sargable", "suffix"):
            structure = analyse(solution.query, task.catalogue, dialect)
    columns = columns_by_part(structure, task.time)
    ranges = ("time", "others") if task.time in columns["range"] else ("range",)
    first = ("equality", *ranges, "join", "group", "order", "alternatives", "hidden")
    # Reversed, so that a column has the first of its roles: of equal keys the last one stays.
    roles = {column: role for role in reversed(first) for column in columns[role]}
    said = [_said(statement, roles, dialect) for statement in solution.statements]
    # Equal steps are indexes on several columns of one part, which EACH makes.
    steps += [f"EACH {step}" if step.startswith("INDEX") and said.count(step) > 1 else step for step in said]
    return "; ".join(filter(None, dict.fromkeys(steps))) or "KEEP"


def _parts(text: str) -> list[str]:
    """Parse the parts of an index, in any of their spellings."""
    parts = list[str]()
    for said in filter(None, map(str.strip, re.split(r",|\bAND\b", text, flags=re.IGNORECASE))):
        word = re.sub(r"[ _]?columns?$", "", said.lower()).strip()
        word = "filters" if _NUMBERED.fullmatch(word) else _SPELLINGS.get(word, word)
        if word not in PATTERN_PARTS:
            raise BadInput(
                f"{said!r} is not a part of a pattern.", hint=f"There are {', '.join(PATTERN_PARTS)}."
            )
        parts.append(word)
    return list(dict.fromkeys(parts))


def columns_by_part(structure: Structure, time: Column | None) -> dict[str, list[Column]]:
    """Return the columns of each part."""
    equality, ranges = structure.of("equality"), structure.of("range")
    times, filters = [time] if time and time in ranges else ranges[:1], equality + ranges
    return {
        "time": times,
        "filter": (times or filters)[:1],
        "filters": filters,
        "equality": equality,
        "range": ranges,
        "inequality": structure.of("inequality"),
        "others": [each for each in filters if each not in times],
        "group": structure.group,
        "order": [*structure.order],
        "join": structure.ends,
        "alternatives": structure.alternatives,
        "hidden": [each.column for each in structure.hidden],
    }


def _indexes(step: Step, structure: Structure, task: TuningTask, made: int) -> list[str]:
    """Return the statements of a step, numbered after those that are made. Raises DoesNotApply."""
    keys = partial(_keys, structure, task)
    tables = [table for table in task.tables if table in task.catalogue]
    if not tables:
        raise DoesNotApply("The query reads no table.")
    # The table that has most of the parts; the first named where several do.
    table = max(tables, key=lambda each: sum(bool(keys(each, [part])) for part in step.parts))
    columns = keys(table, [*step.parts, *(["rest"] if step.shape == "COVERING INDEX" else [])])
    named = [part for part in step.parts if part != "rest"]
    if not keys(table, named[:1]):
        first = named[0] if named else "part"
        raise DoesNotApply(f"The query has no {first} for the index to begin with.")
    wanted = {Column(table, name) for name in keys(table, step.where)}
    where = [each for each in structure.filters if each.column in wanted]
    if step.where and not where:
        raise DoesNotApply(f"The query has none of {', '.join(step.where)}.")
    predicates = dict.fromkeys(each.predicate for each in where)  # inner queries may repeat one
    fixed = {  # one value only, which the index need not hold
        each.column.column for each in where if each.kind == "equality" and " IN " not in each.predicate
    }
    kept = [column for column in columns if column not in fixed]
    groups = [[each] for each in columns] if step.shape == "EACH INDEX" else [kept or columns]
    ending = f" WHERE {' AND '.join(predicates)}" if predicates else ""
    return [
        f"CREATE INDEX idx_{table}_{number} ON {table} ({', '.join(group)}){ending}"
        for number, group in enumerate(groups, start=made + 1)
    ]


def _keys(structure: Structure, task: TuningTask, table: str, parts: Sequence[str]) -> list[str]:
    """Return what an index on a table lists for these parts, each column or expression once."""
    by_part, found, is_sqlite = columns_by_part(structure, task.time), list[str](), task.dialect == "sqlite"
    for part in parts:
        if part == "rest":  # an index of SQLite holds the rowid in any case, which an integer key is
            key = next(iter(task.catalogue[table])) if is_sqlite else ""
            found += [each.column for each in structure.used if each.table == table and each.column != key]
        elif part == "order":
            keys = {key.column: down for key, down in structure.order.items() if key.table == table}
            mixed = len({*keys.values()}) > 1  # an index can be read backwards as a whole
            found += [f"{name} DESC" if mixed and down else name for name, down in keys.items()]
        elif part == "expression":
            for hidden in (each for each in structure.hidden if each.column.table == table):
                if hidden.by == "pattern" and is_sqlite:  # its LIKE takes no account of ASCII's case
                    found.append(f"{hidden.column.column} COLLATE NOCASE")
                elif hidden.expression != hidden.column.column:
                    found.append(f"({hidden.expression})")
        else:
            found += [each.column for each in by_part[part] if each.table == table]
    return list(dict.fromkeys(found))


def _how(structure: Structure) -> Rewriting:
    """Guess which problem of the original query a rewriting solves."""
    if structure.correlated:
        return "correlated"
    if structure.alternatives:
        return "alternatives"
    if not structure.hidden:
        raise DoesNotApply("The vocabulary has no name for this rewriting.")
    return "suffix" if any(each.by == "leading wildcard" for each in structure.hidden) else "sargable"


def _parsed(sql: str, dialect: Dialect) -> exp.Expr | None:
    try:
        return sqlglot.parse_one(sql, read=dialect)
    except SqlglotError:
        return None


def _said(statement: str, roles: Mapping[Column, str], dialect: Dialect) -> str:
    """Return a preparatory statement as a step; "" for any other statement."""
    tree = _parsed(statement, dialect)
    if isinstance(tree, exp.Analyze):
        return "ANALYZE"
    index = tree.this if tree is not None else None
    if not isinstance(index, exp.Index):
        return ""
    table, params = index.args["table"].name, index.args["params"]
    parts = [_said_part(column, table, roles) for column in params.args.get("columns") or []]
    where = params.args.get("where")
    filtered = [_said_part(column, table, roles) for column in where.find_all(exp.Column)] if where else []
    return Step(shape="INDEX", parts=list(dict.fromkeys(parts)), where=list(dict.fromkeys(filtered))).text()


def _said_part(column: exp.Expr, table: str, roles: Mapping[Column, str]) -> str:
    bare = column.this if isinstance(column, exp.Ordered) else column
    if not isinstance(bare, exp.Column):
        return "expression"
    return roles.get(Column(table, bare.name), "rest")
