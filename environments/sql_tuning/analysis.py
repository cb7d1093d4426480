"""Analyse a query's structure: its filters, groups, orders, joins, and expressions that hide a column.

This module needs no database and measures nothing. Its features are the conditions of cards, with `;` between
them: a general feature (`range filter`) holds for every particular one (`one range filter`, `range filters`);
a condition in other words is shown to a model, and rules ignore it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.optimizer.simplify import Simplifier

from mneme.core.errors import BadInput
from mneme.environments.sql_tuning.guard import Dialect

Catalogue = Mapping[str, Mapping[str, str]]  # table -> column -> type, the key first
Kind = Literal["equality", "range", "inequality"]
By = Literal["function", "cast", "arithmetic", "leading wildcard", "pattern"]

COMPARISON_NODES = (exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
# `5 < x` is read as `x > 5`: sqlglot's "inverse" swaps the sides, it does not negate.
MIRRORED: Mapping[type[exp.Expr], type[exp.Expr]] = {exp.EQ: exp.EQ, **Simplifier.INVERSE_COMPARISONS}


class Column(NamedTuple):
    """A column of a table, by their names in the database."""

    table: str
    column: str


class Filter(NamedTuple):
    """A predicate that an index on its column can answer; an inequality gains little from it."""

    column: Column
    kind: Kind
    predicate: str


class Hidden(NamedTuple):
    """A predicate that keeps an index on its column from being used."""

    column: Column
    by: By
    expression: str


@dataclass
class Structure:
    """The structure of a query."""

    tables: list[str]
    used: list[Column]
    filters: list[Filter] = field(default_factory=list)
    hidden: list[Hidden] = field(default_factory=list)
    alternatives: list[Column] = field(default_factory=list)
    group: list[Column] = field(default_factory=list)
    order: dict[Column, bool] = field(default_factory=dict)
    """The columns that the result is sorted by, and whether each descends."""
    ends: list[Column] = field(default_factory=list)
    """The columns that are compared with a column: the ends of joins."""
    joined: bool = False
    """Whether a join is within one level of the query, not only across two, as correlated subqueries have."""
    correlated: list[str] = field(default_factory=list)
    """The correlated subqueries."""
    limit: int | None = None

    def of(self, kind: Kind) -> list[Column]:
        """Return the columns filtered in one way."""
        return list(dict.fromkeys(each.column for each in self.filters if each.kind == kind))


def analyse(query: str, catalogue: Catalogue, dialect: Dialect = "sqlite") -> Structure:
    """Analyse a query. Raises `BadInput` if it cannot be parsed."""
    # As JSON, since lru_cache cannot hash a mapping.
    return _analysed(query, json.dumps({table: dict(kinds) for table, kinds in catalogue.items()}), dialect)


@lru_cache(maxsize=64)
def _analysed(query: str, tables: str, dialect: Dialect) -> Structure:
    """Analyse a query once: every tried pattern starts from the same query."""
    catalogue = json.loads(tables)
    return _Reader(qualified(query, catalogue, dialect), catalogue, dialect).found


def qualified(query: str, catalogue: Catalogue, dialect: Dialect) -> exp.Query:
    """Parse a query and name each column's table."""
    tables: dict[str, object] = {table: dict(columns) for table, columns in catalogue.items()}
    try:
        parsed = sqlglot.parse_one(query, read=dialect)
        # Names stay unquoted: indexes and patterns are written with them as the query has them.
        tree = qualify(parsed, schema=tables, dialect=dialect, quote_identifiers=False, identify=False)
    except (SqlglotError, RecursionError) as unreadable:
        meant = [table for table in tables if table.lower() in query.lower()] or tables
        there = "; ".join(f"{table} ({', '.join(catalogue[table])})" for table in meant)
        raise BadInput(f"The query cannot be analysed: {unreadable}", f"There are {there}.") from unreadable
    if not isinstance(tree, exp.Query):
        raise BadInput("Only a query has a structure to analyse.", "Begin it with SELECT or WITH.")
    return tree


def written(tree: exp.Expr, dialect: Dialect) -> str:
    """Return the SQL, with SUBSTR under that name."""
    # sqlglot would write SUBSTRING, and an index on SUBSTR(…) serves only expressions of the same name.
    whole = exp.Paren(this=tree.copy())  # a parent, from which the tree itself can be replaced
    for node in [*whole.find_all(exp.Substring)]:
        given = (node.args.get(part) for part in ("this", "start", "length"))
        node.replace(exp.Anonymous(this="SUBSTR", expressions=[each for each in given if each is not None]))
    sql: str = whole.this.sql(dialect)
    return sql


def conjuncts(select: exp.Select) -> Iterator[exp.Expr]:
    """Return the predicates that must all hold: those of WHERE and of each ON."""
    conditions = [select.args.get("where"), *select.args.get("joins", [])]
    for condition in conditions:
        held = condition.args.get("on") if isinstance(condition, exp.Join) else condition and condition.this
        if held is not None:
            held = held.unnest()  # sqlglot keeps parentheses as nodes
            yield from (each.unnest() for each in (held.flatten() if isinstance(held, exp.And) else [held]))


def compared(predicate: exp.Expr) -> tuple[exp.Expr, type[exp.Expr], exp.Expr] | None:
    """Return a comparison with a constant as (side with columns, comparison, constant)."""
    if not isinstance(predicate, COMPARISON_NODES):
        return None
    left, right = predicate.this, predicate.expression
    constant = [side.find(exp.Column, exp.Query) is None for side in (left, right)]
    if constant == [False, True]:
        return left, type(predicate), right
    return (right, MIRRORED[type(predicate)], left) if constant == [True, False] else None


def table_of(column: exp.Expr) -> str:
    """Return the table of a column's qualifier, from the nearest level that names it."""
    level = column.find_ancestor(exp.Select)
    while level is not None:
        sources = (level.args.get("from_"), *level.args.get("joins", []))
        for source in [part.this for part in sources if part is not None]:
            if source.alias_or_name == column.args["table"].name:
                return source.name if isinstance(source, exp.Table) else ""
        level = level.find_ancestor(exp.Select)  # a correlated subquery names tables of its outer query
    return ""


class _Reader:
    """Collect a structure from a qualified query."""

    def __init__(self, tree: exp.Query, catalogue: Catalogue, dialect: Dialect) -> None:
        self._catalogue, self._dialect = catalogue, dialect
        scopes = traverse_scope(tree)
        # Columns of an outer query, by identity: an equal column elsewhere may belong to its own level.
        self._outer = {id(column) for scope in scopes for column in scope.external_columns}
        self.found = Structure(
            tables=list(dict.fromkeys(t.name for t in tree.find_all(exp.Table) if t.name in catalogue)),
            used=list(dict.fromkeys(self._columns(tree))),
            correlated=[each.expression.sql(dialect) for each in scopes if each.is_correlated_subquery],
        )
        for select in tree.find_all(exp.Select):
            for predicate in conjuncts(select):
                self._take(predicate)
            for key in select.args["group"].expressions if select.args.get("group") else []:
                self.found.group += self._columns(key)
        order, limit = tree.args.get("order"), tree.args.get("limit")
        aliases = {each.alias: each.unalias() for each in tree.selects if each.alias}
        for key in order.expressions if order else []:
            known = aliases.get(key.this.name, key.this)
            if not isinstance(known, exp.Column):
                break  # an index cannot give what is computed, nor anything after it
            self.found.order |= dict.fromkeys(self._columns(known), bool(key.args.get("desc")))
        if limit is not None and isinstance(limit.expression, exp.Literal) and limit.expression.is_int:
            self.found.limit = int(limit.expression.name)

    def _take(self, predicate: exp.Expr) -> None:
        """Record a predicate's kind: an OR, a join, a pattern, or a compared or hidden column."""
        sides = predicate.args.get("this"), predicate.args.get("expression")
        if isinstance(predicate, exp.Or):
            columns = [column for branch in predicate.flatten() for column in self._columns(branch)]
            if len(set(columns)) > 1:
                self.found.alternatives += list(dict.fromkeys(columns))
        elif isinstance(predicate, exp.EQ) and all(isinstance(each, exp.Column) for each in sides):
            ends = self._columns(predicate)
            if len(ends) == 2:  # else a side is a column of a subquery or WITH clause
                self.found.ends += ends
                self.found.joined |= len({id(side) in self._outer for side in sides}) == 1
        elif isinstance(predicate, (exp.Like, exp.ILike)):
            pattern = predicate.expression
            # A pattern that is computed may begin with a wildcard.
            leading = pattern.name.startswith(("%", "_")) or not isinstance(pattern, exp.Literal)
            for column in self._columns(predicate.this)[:1]:
                by: By = "leading wildcard" if leading else "pattern"
                self.found.hidden.append(Hidden(column, by, self._plain(predicate.this)))
        else:
            side, kind = _side_and_kind(predicate)
            columns = self._columns(side) if side is not None else []
            if side is None or not columns:
                return
            if isinstance(side, exp.Column):
                self.found.filters.append(Filter(columns[0], kind, self._plain(predicate)))
                return
            by = "arithmetic" if isinstance(side, exp.Binary | exp.Neg | exp.Paren) else "function"
            by = "cast" if isinstance(side, exp.Cast) else by
            self.found.hidden.append(Hidden(columns[0], by, self._plain(side)))

    def _columns(self, side: exp.Expr) -> list[Column]:
        named = (each for each in side.find_all(exp.Column) if each.args.get("table"))
        found = [Column(table_of(each), each.name) for each in named]
        return [column for column in found if column.table in self._catalogue]

    def _plain(self, expression: exp.Expr) -> str:
        """Return an expression without the tables' names, as an index needs it."""
        copy = expression.copy()
        for column in list(copy.find_all(exp.Column)):
            column.set("table", None)
        return written(copy, self._dialect)


def _side_and_kind(predicate: exp.Expr) -> tuple[exp.Expr | None, Kind]:
    """Return the side that a predicate tests, and the kind of test."""
    if found := compared(predicate):
        return found[0], "equality" if found[1] is exp.EQ else "range"
    if isinstance(predicate, exp.In):
        return (None if predicate.args.get("query") else predicate.this), "equality"
    if isinstance(predicate, exp.Between):
        return predicate.this, "range"
    if isinstance(predicate, exp.NEQ) and predicate.expression.find(exp.Column, exp.Query) is None:
        return predicate.this, "inequality"
    return None, "inequality"


FURTHER_COLUMNS = "further columns"
KEEPS_MOST = "filters keep most rows"
"""The filters leave more than half of each table, so that an index saves little."""
GENERAL = {
    "one equality filter": "equality filter",
    "equality filters": "equality filter",
    "one range filter": "range filter",
    "range filters": "range filter",
    FURTHER_COLUMNS: "",
    KEEPS_MOST: "",
}
STRUCTURE = {
    *(f"column hidden by {by}" for by in get_args(By)),
    *("more than three filters", "OR across columns", "correlated subquery", "join", "top-k order"),
}
"""Features that make another kind of query: a condition that does not name them does not apply to it."""
SQL_FEATURES = {*GENERAL, *GENERAL.values(), *STRUCTURE, "grouping"}


def features(structure: Structure, catalogue: Catalogue) -> list[str]:
    """Name what matters for tuning, `further columns` being those that a query only reads."""
    named = {*structure.group, *structure.order, *structure.ends, *structure.alternatives}
    named |= {each.column for each in structure.filters} | {each.column for each in structure.hidden}
    # A key is no further column: SQLite's indexes hold it anyway.
    named |= {Column(table, next(iter(columns))) for table, columns in catalogue.items()}
    equalities, ranges = structure.of("equality"), structure.of("range")
    filters, found = len({*equalities, *ranges, *structure.of("inequality")}), list[str]()
    if filters > 3:
        found.append("more than three filters")
    elif equalities:
        found.append("equality filters" if len(equalities) > 1 else "one equality filter")
    if filters <= 3 and ranges:
        found.append("range filters" if len(ranges) > 1 else "one range filter")
    found += sorted({f"column hidden by {each.by}" for each in structure.hidden})
    others = {
        "OR across columns": structure.alternatives,
        "correlated subquery": structure.correlated,
        "join": structure.joined,
        "grouping": structure.group,
        "top-k order": structure.limit is not None and structure.order,
        FURTHER_COLUMNS: {*structure.used} - named,
    }
    return found + [feature for feature, is_there in others.items() if is_there]
