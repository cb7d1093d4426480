"""Standard query rewritings; each can change the result on some data, which a run shows.

- sargable: take a function, a cast, arithmetic or a prefix pattern off a filtered column;
- suffix: compare the end of a text with what follows a leading wildcard, so that an index on the end helps;
- alternatives: turn OR across columns into a union of keys;
- correlated: turn an aggregate that is computed for each row into a join with one grouped pass.
"""

from collections.abc import Callable, Mapping
from typing import Literal, cast

from sqlglot import exp

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
    """Rewrite a query; give it back as it was where there is nothing to rewrite."""
    tree = qualified(query, catalogue, dialect)
    changed = _REWRITINGS[how](tree, catalogue, dialect)
    return written(tree, dialect) if changed else query


def _sargable(tree: exp.Query, catalogue: Catalogue, dialect: Dialect) -> bool:
    changed = False
    for select in list(tree.find_all(exp.Select)):
        for predicate in list(conjuncts(select)):
            bare = _bared(predicate, catalogue, dialect)
            if bare is not None:
                predicate.replace(bare)
                changed = True
    return changed


def _bared(predicate: exp.Expr, catalogue: Catalogue, dialect: Dialect) -> exp.Expr | None:
    """Say a predicate of its bare column, where that is known how.

    SQLite's LIKE takes no account of case, so that no range means what its prefix pattern means.
    """
    if isinstance(predicate, exp.Like):
        return _bared_prefix(predicate) if dialect == "postgres" else None
    found = compared(predicate)
    if found is None or not isinstance(found[2], (exp.Literal, exp.Neg)):
        return None
    side, comparison, constant = found
    for kind, bare in _BARE.items():
        if isinstance(side, kind):
            return bare(side, comparison, constant, catalogue)
    return None


def _bared_prefix(predicate: exp.Like) -> exp.Expr | None:
    pattern = predicate.expression
    prefix = pattern.name.removesuffix("%")
    plain = isinstance(predicate.this, exp.Column) and isinstance(pattern, exp.Literal)
    if not plain or not prefix or prefix == pattern.name or set("%_") & set(prefix):
        return None
    return _starts_with(predicate.this, prefix)


def _bared_substring(
    side: exp.Expr, comparison: type[exp.Expr], constant: exp.Expr, _: Catalogue
) -> exp.Expr | None:
    column, start, length = side.this, side.args.get("start"), side.args.get("length")
    text = constant.name
    whole = start is not None and start.name == "1" and length is not None and length.name == str(len(text))
    if not isinstance(column, exp.Column) or not whole or not constant.is_string:
        return None
    if comparison is exp.EQ:
        return _starts_with(column, text)
    return _compare(column, comparison, constant) if comparison in (exp.GTE, exp.LT) else None


def _bared_lower(
    side: exp.Expr, comparison: type[exp.Expr], constant: exp.Expr, _: Catalogue
) -> exp.Expr | None:
    if not isinstance(side.this, exp.Column) or constant.name != constant.name.lower():
        return None
    return _compare(side.this, comparison, constant)


def _bared_cast(
    side: exp.Expr, comparison: type[exp.Expr], constant: exp.Expr, catalogue: Catalogue
) -> exp.Expr | None:
    """Compare a column with a constant of its own type; only equality survives that."""
    if not isinstance(side.this, exp.Column) or comparison is not exp.EQ:
        return None
    is_text = catalogue.get(table_of(side.this), {}).get(side.this.name) == "TEXT"
    same = exp.Literal.string(constant.name) if is_text else exp.Literal.number(constant.name)
    return _compare(side.this, comparison, same)


def _bared_product(
    side: exp.Expr, comparison: type[exp.Expr], constant: exp.Expr, _: Catalogue
) -> exp.Expr | None:
    """Divide by a positive whole factor: `c * k > n` is `c > floor(n / k)` for whole c."""
    column, factor, limit = side.this, _whole(side.expression), _whole(constant)
    if not isinstance(column, exp.Column) or factor is None or limit is None or factor < 1:
        return None
    if comparison is exp.EQ and limit % factor:
        return None
    up = comparison in (exp.GTE, exp.LT)
    return _compare(column, comparison, _number(-(-limit // factor) if up else limit // factor))


def _bared_quotient(
    side: exp.Expr, comparison: type[exp.Expr], constant: exp.Expr, _: Catalogue
) -> exp.Expr | None:
    """Multiply by a positive whole divisor: `c / k = n` is `c >= n * k AND c < (n + 1) * k`, for n > 0."""
    column, divisor, limit = side.this, _whole(side.expression), _whole(constant)
    if not isinstance(column, exp.Column) or divisor is None or limit is None or divisor < 1 or limit < 1:
        return None
    this, following = _number(limit * divisor), _number((limit + 1) * divisor)
    if comparison is exp.EQ:
        return exp.and_(_compare(column, exp.GTE, this), _compare(column, exp.LT, following))
    if comparison in (exp.GTE, exp.LT):
        return _compare(column, comparison, this)
    return _compare(column, exp.GTE if comparison is exp.GT else exp.LT, following)


def _bared_sum(
    side: exp.Expr, comparison: type[exp.Expr], constant: exp.Expr, _: Catalogue
) -> exp.Expr | None:
    column, added, limit = side.this, _whole(side.expression), _whole(constant)
    if not isinstance(column, exp.Column) or added is None or limit is None:
        return None
    return _compare(
        column, comparison, _number(limit - added if isinstance(side, exp.Add) else limit + added)
    )


Bare = Callable[[exp.Expr, type[exp.Expr], exp.Expr, Catalogue], exp.Expr | None]

_BARE: Mapping[type[exp.Expr], Bare] = {
    exp.Substring: _bared_substring,
    exp.Lower: _bared_lower,
    exp.Cast: _bared_cast,
    exp.Mul: _bared_product,
    exp.Div: _bared_quotient,
    exp.Add: _bared_sum,
    exp.Sub: _bared_sum,
}


def _whole(side: exp.Expr) -> int | None:
    if isinstance(side, exp.Neg):
        below = _whole(side.this)
        return None if below is None else -below
    return int(side.name) if isinstance(side, exp.Literal) and side.is_int else None


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)


def _compare(column: exp.Expr, comparison: type[exp.Expr], constant: exp.Expr) -> exp.Expr:
    return comparison(this=column.copy(), expression=constant.copy())


def _starts_with(column: exp.Expr, prefix: str) -> exp.Expr:
    """Bound the texts that start so: from the prefix to where its last character is one higher."""
    after = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    return exp.and_(
        _compare(column, exp.GTE, exp.Literal.string(prefix)),
        _compare(column, exp.LT, exp.Literal.string(after)),
    )


def _suffix(tree: exp.Query, _: Catalogue, dialect: Dialect) -> bool:
    changed = False
    for pattern in list(tree.find_all(exp.Like)):
        end = pattern.expression.name.removeprefix("%")
        plain = isinstance(pattern.this, exp.Column) and isinstance(pattern.expression, exp.Literal)
        if not plain or not end or end == pattern.expression.name or set("%_") & set(end):
            continue
        length = len(end) if dialect == "postgres" else -len(end)
        name = "RIGHT" if dialect == "postgres" else "SUBSTR"
        last = exp.Anonymous(this=name, expressions=[pattern.this.copy(), _number(length)])
        pattern.replace(exp.EQ(this=last, expression=exp.Literal.string(end)))
        changed = True
    return changed


def _alternatives(tree: exp.Query, catalogue: Catalogue, _: Dialect) -> bool:
    changed = False
    for select in list(tree.find_all(exp.Select)):
        for predicate in list(conjuncts(select)):
            columns = list(predicate.find_all(exp.Column))
            tables = {table_of(column) for column in columns}
            if isinstance(predicate, exp.Or) and len(tables) == 1 and predicate.find(exp.Query) is None:
                predicate.replace(_union_of_keys(predicate, columns[0], catalogue))
                changed = True
    return changed


def _union_of_keys(predicate: exp.Or, column: exp.Column, catalogue: Catalogue) -> exp.Expr:
    table, alias = table_of(column), column.table
    key = exp.column(next(iter(catalogue[table])), table=alias)
    branches = [
        exp.select(key.copy()).from_(exp.to_table(table).as_(alias)).where(branch.copy())
        for branch in predicate.flatten()
    ]
    return key.isin(query=exp.union(*branches))


def _correlated(tree: exp.Query, _: Catalogue, __: Dialect) -> bool:
    changed = False
    for number, subquery in enumerate(list(tree.find_all(exp.Subquery)), start=1):
        changed = _joined(subquery, f"each_{number}") or changed
    return changed


def _joined(subquery: exp.Subquery, name: str) -> bool:
    """Compute an aggregate for all keys in one pass, and join it with what asked for it row by row."""
    inner, outer = subquery.this, subquery.find_ancestor(exp.Select)
    if not isinstance(inner, exp.Select) or outer is None or not _is_one_aggregate(inner):
        return False
    own = {source.alias_or_name for source in inner.find_all(exp.Table)}
    keys = [(p, *_ends(p, own)) for p in conjuncts(inner) if _crosses(p, own)]
    rest = [p for p in conjuncts(inner) if not _crosses(p, own)]
    apart = all(column.table in own for p in rest for column in p.find_all(exp.Column))
    if not keys or not apart or any(not isinstance(p, exp.EQ) for p, _, _ in keys):
        return False
    grouped = _grouped(inner, [mine for _, mine, _ in keys], rest)
    on = exp.and_(
        *(
            exp.EQ(this=exp.column(f"key_{n}", table=name), expression=theirs.copy())
            for n, (_, _, theirs) in enumerate(keys)
        )
    )
    value = exp.column("value", table=name)
    counts = isinstance(inner.selects[0].unalias(), exp.Count)
    subquery.replace(exp.func("COALESCE", value, exp.Literal.number(0)) if counts else value)
    outer.join(grouped.subquery(name), on=on, join_type="LEFT", copy=False)
    return True


def _is_one_aggregate(inner: exp.Select) -> bool:
    plain = not any(
        inner.args.get(part) for part in ("group", "having", "limit", "order", "joins", "distinct")
    )
    return plain and len(inner.selects) == 1 and isinstance(inner.selects[0].unalias(), exp.AggFunc)


def _crosses(predicate: exp.Expr, own: set[str]) -> bool:
    return any(column.table not in own for column in predicate.find_all(exp.Column))


def _ends(predicate: exp.Expr, own: set[str]) -> tuple[exp.Expr, exp.Expr]:
    """Give an equality's inner and outer side."""
    left, right = cast(exp.Binary, predicate).left, cast(exp.Binary, predicate).right
    return (left, right) if isinstance(left, exp.Column) and left.table in own else (right, left)


def _grouped(inner: exp.Select, keys: list[exp.Expr], rest: list[exp.Expr]) -> exp.Select:
    grouped = inner.copy()
    grouped.set("where", None)
    grouped.set("expressions", [key.copy().as_(f"key_{n}") for n, key in enumerate(keys)])
    grouped.select(inner.selects[0].unalias().copy().as_("value"), copy=False)
    grouped.group_by(*(key.copy() for key in keys), copy=False)
    return grouped.where(*(each.copy() for each in rest), copy=False) if rest else grouped


_REWRITINGS: Mapping[str, Callable[[exp.Query, Catalogue, Dialect], bool]] = {
    "sargable": _sargable,
    "suffix": _suffix,
    "alternatives": _alternatives,
    "correlated": _correlated,
}
