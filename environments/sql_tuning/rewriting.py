"""Standard query rewritings; each can change the result on some data, which a run shows.

- sargable: take a function, a cast, arithmetic or a prefix pattern off a filtered column;
- suffix: compare the end of a text with what follows a leading wildcard, so that an index on the end helps;
- alternatives: turn OR across columns into a union of keys;
- correlated: turn what is computed or looked up for each row into a join with one grouped pass.
"""

from collections.abc import Callable, Mapping
from typing import Literal

from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.optimizer.unnest_subqueries import unnest_subqueries

from mneme.environments.sql_tuning.analysis import (
    Catalogue,
    compared,
    conjuncts,
    qualified,
    table_of,
    written,
)
from mneme.environments.sql_tuning.guard import Dialect

Rewriting = Literal["sargable", "suffix", "alternatives", "correlated"]


def rewrite(how: Rewriting, query: str, catalogue: Catalogue, dialect: Dialect) -> str:
    """Rewrite a query; return it unchanged if there is nothing to rewrite."""
    tree = qualified(query, catalogue, dialect)
    before = tree.sql(dialect)
    if how != "correlated":
        conditions = [each for select in tree.find_all(exp.Select) for each in conjuncts(select)]
        for predicate in [*tree.find_all(exp.Like)] if how == "suffix" else conditions:
            if (changed := _CHANGES[how](predicate, catalogue, dialect)) is not None:
                predicate.replace(changed)
    elif any(scope.is_correlated_subquery for scope in traverse_scope(tree)):
        unnest_subqueries(tree)
    return written(tree, dialect) if tree.sql(dialect) != before else query


def _bared(predicate: exp.Expr, catalogue: Catalogue, dialect: Dialect) -> exp.Expr | None:
    """Rewrite a predicate to test its bare column, if a rule for it exists."""
    if isinstance(predicate, exp.Like):
        pattern, prefix = predicate.expression, predicate.expression.name.removesuffix("%")
        literal = isinstance(predicate.this, exp.Column) and isinstance(pattern, exp.Literal)
        plain = literal and prefix and prefix != pattern.name and not set("%_") & set(prefix)
        # SQLite's LIKE ignores case, so that no range is equal to its prefix pattern.
        return _starts_with(predicate.this, prefix) if plain and dialect == "postgres" else None
    found = compared(predicate)
    side, comparison, constant = found or (predicate, exp.EQ, predicate)
    if not isinstance(constant, exp.Literal | exp.Neg) or not isinstance(side.this, exp.Column):
        return None
    if isinstance(side, exp.Substring):
        return _bared_substring(side, comparison, constant)
    if isinstance(side, exp.Lower):  # equal only where the data are in lower case, which the run tells
        return _compare(side.this, comparison, constant) if constant.name == constant.name.lower() else None
    if isinstance(side, exp.Cast) and comparison is exp.EQ:  # in the column's own type, only equality stays
        is_text = catalogue.get(table_of(side.this), {}).get(side.this.name) == "TEXT"
        same = exp.Literal.string if is_text else exp.Literal.number
        return _compare(side.this, comparison, same(constant.name))
    return _bared_arithmetic(side, comparison, constant) if isinstance(side, exp.Binary) else None


def _bared_substring(side: exp.Substring, comparison: type[exp.Expr], constant: exp.Expr) -> exp.Expr | None:
    start, length, text = side.args.get("start"), side.args.get("length"), constant.name
    whole = start is not None and start.name == "1" and length is not None and length.name == str(len(text))
    if not whole or not constant.is_string:
        return None
    if comparison is exp.EQ:
        return _starts_with(side.this, text)
    return _compare(side.this, comparison, constant) if comparison in (exp.GTE, exp.LT) else None


def _bared_arithmetic(side: exp.Binary, comparison: type[exp.Expr], constant: exp.Expr) -> exp.Expr | None:
    """Undo arithmetic with an integer on an integer column.

    `c * k > n` is `c > floor(n / k)`, and `c / k = n` is `c >= n * k AND c < (n + 1) * k`, for k, n > 0.
    """
    column, by, limit = side.this, _whole(side.expression), _whole(constant)
    if by is None or limit is None:
        return None
    if isinstance(side, exp.Add | exp.Sub):
        return _compare(column, comparison, limit - by if isinstance(side, exp.Add) else limit + by)
    up = comparison in (exp.GTE, exp.LT)
    if isinstance(side, exp.Mul) and by >= 1 and not (comparison is exp.EQ and limit % by):
        return _compare(column, comparison, -(-limit // by) if up else limit // by)  # rounded up, or down
    # Below 1 the databases round a quotient towards 0, and the bounds would be others.
    if not isinstance(side, exp.Div) or by < 1 or limit < 1:
        return None
    this, following = limit * by, (limit + 1) * by
    if comparison is exp.EQ:
        return exp.and_(_compare(column, exp.GTE, this), _compare(column, exp.LT, following))
    strict: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.GTE, exp.LTE: exp.LT}
    return _compare(column, strict.get(comparison, comparison), this if up else following)


def _whole(side: exp.Expr) -> int | None:
    if isinstance(side, exp.Neg):
        below = _whole(side.this)
        return None if below is None else -below
    return int(side.name) if isinstance(side, exp.Literal) and side.is_int else None


def _compare(column: exp.Expr, comparison: type[exp.Expr], constant: exp.Expr | int) -> exp.Expr:
    other = exp.Literal.number(constant) if isinstance(constant, int) else constant.copy()
    return comparison(this=column.copy(), expression=other)


def _starts_with(column: exp.Expr, prefix: str) -> exp.Expr:
    """Return the range of texts with a prefix: up to the prefix with its last character raised by one."""
    after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return exp.and_(
        _compare(column, exp.GTE, exp.Literal.string(prefix)),
        _compare(column, exp.LT, exp.Literal.string(after)),
    )


def _suffix(predicate: exp.Expr, _: Catalogue, dialect: Dialect) -> exp.Expr | None:
    column, pattern = predicate.this, predicate.expression
    end = pattern.name.removeprefix("%")
    plain = isinstance(column, exp.Column) and isinstance(pattern, exp.Literal)
    if not plain or not end or end == pattern.name or set("%_") & set(end):
        return None
    # SQLite has no RIGHT; its SUBSTR counts a negative start from the end.
    name, length = ("RIGHT", len(end)) if dialect == "postgres" else ("SUBSTR", -len(end))
    last = exp.Anonymous(this=name, expressions=[column.copy(), exp.Literal.number(length)])
    return exp.EQ(this=last, expression=exp.Literal.string(end))


def _union(predicate: exp.Expr, catalogue: Catalogue, _: Dialect) -> exp.Expr | None:
    columns = list(predicate.find_all(exp.Column))
    tables = {table_of(column) for column in columns}
    if not isinstance(predicate, exp.Or) or len(tables) != 1 or predicate.find(exp.Query) is not None:
        return None
    table, alias = tables.pop(), columns[0].table
    key = exp.column(next(iter(catalogue[table])), table=alias)
    branches = [
        exp.select(key.copy()).from_(exp.to_table(table).as_(alias)).where(branch.copy())
        for branch in predicate.flatten()
    ]
    return key.isin(query=exp.union(*branches))  # of keys: a row that meets both branches comes once


_CHANGES: Mapping[str, Callable[[exp.Expr, Catalogue, Dialect], exp.Expr | None]] = {
    "sargable": _bared,
    "suffix": _suffix,
    "alternatives": _union,
}
"""Function of each rewriting: it returns the new predicate; None if unchanged."""
