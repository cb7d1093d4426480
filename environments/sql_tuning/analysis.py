"""Analyse a query's structure: its filters, groups, orders, joins, and what hides a column.

This module needs no database and measures nothing.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal

import sqlglot
from pydantic import BaseModel, ConfigDict
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

RANGES = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
COMPARISONS = (exp.EQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
MIRRORED: Mapping[type[exp.Expr], type[exp.Expr]] = {exp.EQ: exp.EQ, **Simplifier.INVERSE_COMPARISONS}


class Column(BaseModel):
    """A column of a table, by their names in the database."""

    model_config = ConfigDict(frozen=True)

    table: str
    column: str


class Filter(BaseModel):
    """A predicate that an index on its column can answer, or, as an inequality, hardly."""

    column: Column
    kind: Kind
    predicate: str


class Hidden(BaseModel):
    """A predicate that keeps an index on its column from being used."""

    column: Column
    by: By
    expression: str
    predicate: str


class Join(BaseModel):
    """Two columns that a query holds equal, in one level or, `correlated`, across two."""

    left: Column
    right: Column
    correlated: bool


class OrderKey(BaseModel):
    column: Column
    descending: bool


class Structure(BaseModel):
    """What a query is made of."""

    tables: list[str]
    filters: list[Filter]
    hidden: list[Hidden]
    alternatives: list[Column]
    group: list[Column]
    order: list[OrderKey]
    limit: int | None
    joins: list[Join]
    correlated: list[str]
    used: list[Column]

    def of(self, kind: Kind) -> list[Column]:
        """Give the columns filtered in one way."""
        return list(dict.fromkeys(each.column for each in self.filters if each.kind == kind))

    def features(self) -> list[str]:
        """Name what matters for tuning, in words that a card's condition can use."""
        return list(_features(self))


def analyse(query: str, catalogue: Catalogue, dialect: Dialect = "sqlite") -> Structure:
    """Read a query's structure; a query that cannot be read raises `BadInput`."""
    return _analysed(query, json.dumps({table: dict(kinds) for table, kinds in catalogue.items()}), dialect)


@lru_cache(maxsize=64)
def _analysed(query: str, tables: str, dialect: Dialect) -> Structure:
    """Read a structure once: every pattern that is tried begins with the same query's."""
    catalogue = json.loads(tables)
    return _Reader(qualified(query, catalogue, dialect), catalogue, dialect).structure()


def qualified(query: str, catalogue: Catalogue, dialect: Dialect) -> exp.Query:
    """Parse a query and name each column's table."""
    tables: dict[str, object] = {table: dict(columns) for table, columns in catalogue.items()}
    try:
        tree = qualify(
            sqlglot.parse_one(query, read=dialect),
            schema=tables,
            dialect=dialect,
            quote_identifiers=False,
            identify=False,
            expand_alias_refs=False,
        )
    except (SqlglotError, RecursionError) as unreadable:
        raise BadInput(f"The query cannot be analysed: {unreadable}") from unreadable
    if not isinstance(tree, exp.Query):
        raise BadInput("Only a query has a structure to analyse.")
    return tree


def written(tree: exp.Expr, dialect: Dialect) -> str:
    """Write SQL; a function keeps the name that both databases know, or an index on it would not match."""
    return tree.transform(_with_short_substr).sql(dialect)


def _with_short_substr(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Substring):
        return node
    given = (node.this, node.args.get("start"), node.args.get("length"))
    return exp.Anonymous(this="SUBSTR", expressions=[each for each in given if each is not None])


def conjuncts(select: exp.Select) -> Iterator[exp.Expr]:
    """Give the predicates that must all hold: those of WHERE and of inner joins."""
    conditions = [select.args.get("where"), *select.args.get("joins", [])]
    for condition in conditions:
        held = condition.args.get("on") if isinstance(condition, exp.Join) else condition and condition.this
        if held is not None:
            held = held.unnest()
            yield from (each.unnest() for each in (held.flatten() if isinstance(held, exp.And) else [held]))


def compared(predicate: exp.Expr) -> tuple[exp.Expr, type[exp.Expr], exp.Expr] | None:
    """Give a comparison with a constant as (side with columns, comparison, constant)."""
    if not isinstance(predicate, COMPARISONS):
        return None
    left, right = predicate.this, predicate.expression
    if _is_constant(right) and not _is_constant(left):
        return left, type(predicate), right
    if _is_constant(left) and not _is_constant(right):
        return right, MIRRORED[type(predicate)], left
    return None


def table_of(column: exp.Expr) -> str:
    """Find the table behind a column's qualifier, in the nearest level that names it."""
    level = column.find_ancestor(exp.Select)
    while level is not None:
        start = level.args.get("from_") or level.args.get("from")
        for source in [part.this for part in (start, *level.args.get("joins", [])) if part is not None]:
            if source.alias_or_name == column.args["table"].name:
                return source.name if isinstance(source, exp.Table) else ""
        level = level.find_ancestor(exp.Select)
    return ""


def _is_constant(side: exp.Expr) -> bool:
    return side.find(exp.Column, exp.Query) is None


class _Reader:
    """Collect a structure from a qualified query."""

    def __init__(self, tree: exp.Query, catalogue: Catalogue, dialect: Dialect) -> None:
        self._tree = tree
        self._catalogue = catalogue
        self._dialect = dialect
        self._scopes = traverse_scope(tree)
        self._outer = {id(column) for scope in self._scopes for column in scope.external_columns}
        self._found = Structure(
            tables=list(dict.fromkeys(t.name for t in tree.find_all(exp.Table) if t.name in catalogue)),
            filters=[],
            hidden=[],
            alternatives=[],
            group=[],
            order=[],
            limit=None,
            joins=[],
            correlated=[each.expression.sql(dialect) for each in self._scopes if each.is_correlated_subquery],
            used=[],
        )

    def structure(self) -> Structure:
        for select in self._tree.find_all(exp.Select):
            for predicate in conjuncts(select):
                self._take(predicate)
            for key in select.args["group"].expressions if select.args.get("group") else []:
                self._found.group += self._columns(key)
        self._take_order()
        every = (each for column in self._tree.find_all(exp.Column) for each in self._columns(column))
        self._found.used = list(dict.fromkeys(every))
        return self._found

    def _take(self, predicate: exp.Expr) -> None:
        sides = predicate.args.get("this"), predicate.args.get("expression")
        if isinstance(predicate, exp.Or):
            columns = [column for branch in predicate.flatten() for column in self._columns(branch)]
            if len(set(columns)) > 1:
                self._found.alternatives += list(dict.fromkeys(columns))
        elif isinstance(predicate, exp.EQ) and all(isinstance(each, exp.Column) for each in sides):
            ends = self._columns(predicate)
            if len(ends) == 2:
                left, right = ((id(side) in self._outer) for side in sides)
                self._found.joins.append(Join(left=ends[0], right=ends[1], correlated=left != right))
        elif isinstance(predicate, (exp.Like, exp.ILike)):
            self._take_pattern(predicate)
        else:
            self._take_filter(predicate)

    def _take_filter(self, predicate: exp.Expr) -> None:
        side, kind = _side_and_kind(predicate)
        columns = self._columns(side) if side is not None else []
        if side is None or not columns:
            return
        if isinstance(side, exp.Column):
            said = Filter(column=columns[0], kind=kind, predicate=self._plain(predicate))
            self._found.filters.append(said)
            return
        by: By = "arithmetic" if isinstance(side, exp.Binary | exp.Neg | exp.Paren) else "function"
        self._hide(columns[0], "cast" if isinstance(side, exp.Cast) else by, side, predicate)

    def _take_pattern(self, predicate: exp.Expr) -> None:
        columns, pattern = self._columns(predicate.this), predicate.expression
        if not columns:
            return
        leading = pattern.name.startswith(("%", "_")) or not isinstance(pattern, exp.Literal)
        self._hide(columns[0], "leading wildcard" if leading else "pattern", predicate.this, predicate)

    def _hide(self, column: Column, by: By, side: exp.Expr, predicate: exp.Expr) -> None:
        expression, plain = self._plain(side), self._plain(predicate)
        self._found.hidden.append(Hidden(column=column, by=by, expression=expression, predicate=plain))

    def _take_order(self) -> None:
        order, limit = self._tree.args.get("order"), self._tree.args.get("limit")
        aliases = {each.alias: each.unalias() for each in self._tree.selects if each.alias}
        for key in order.expressions if order else []:
            known = aliases.get(key.this.name, key.this)
            if not isinstance(known, exp.Column):
                break  # an index cannot give what is computed, nor anything after it
            descending = bool(key.args.get("desc"))
            self._found.order += [OrderKey(column=c, descending=descending) for c in self._columns(known)]
        if limit is not None and isinstance(limit.expression, exp.Literal) and limit.expression.is_int:
            self._found.limit = int(limit.expression.name)

    def _columns(self, side: exp.Expr) -> list[Column]:
        found = [
            (table_of(column), column.name)
            for column in side.find_all(exp.Column)
            if column.args.get("table")
        ]
        return [Column(table=table, column=name) for table, name in found if table in self._catalogue]

    def _plain(self, expression: exp.Expr) -> str:
        """Write an expression without the tables' names, as an index needs it."""
        copy = expression.copy()
        for column in list(copy.find_all(exp.Column)):
            column.set("table", None)
        return written(copy, self._dialect)


def _side_and_kind(predicate: exp.Expr) -> tuple[exp.Expr | None, Kind]:
    """Give what a predicate tests, and how."""
    if found := compared(predicate):
        return found[0], "equality" if found[1] is exp.EQ else "range"
    if isinstance(predicate, exp.In):
        return (None if predicate.args.get("query") else predicate.this), "equality"
    if isinstance(predicate, exp.Between):
        return predicate.this, "range"
    if isinstance(predicate, exp.NEQ) and _is_constant(predicate.expression):
        return predicate.this, "inequality"
    return None, "inequality"


def _features(structure: Structure) -> Iterator[str]:
    equalities, ranges = structure.of("equality"), structure.of("range")
    filters = len({*equalities, *ranges, *structure.of("inequality")})
    if filters > 3:
        yield "more than three filters"
    elif equalities:
        yield "equality filters" if len(equalities) > 1 else "one equality filter"
    if filters <= 3 and ranges:
        yield "range filters" if len(ranges) > 1 else "one range filter"
    yield from sorted({f"column hidden by {each.by}" for each in structure.hidden})
    if structure.alternatives:
        yield "OR across columns"
    if structure.correlated:
        yield "correlated subquery"
    if any(not join.correlated for join in structure.joins):
        yield "join"
    if structure.group:
        yield "grouping"
    if structure.limit is not None and structure.order:
        yield "top-k order"
