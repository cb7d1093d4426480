"""Check which statements of a solution may run, before any database sees them.

The databases have checks of their own too (SQLite's authorizer, Postgres' read-only transactions); this check
comes first and says why a statement is refused.
"""

import logging
import re
from collections.abc import Collection, Sequence
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from mneme.environments.sql_tuning.records import Refused

Dialect = Literal["sqlite", "postgres"]

# The parser logs a warning where it takes a statement for a mere command; here that is a refusal.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

SWELLING = (exp.Repeat, exp.Pad, exp.Space, exp.Format)  # a short call that makes a huge text
MAX_STATEMENT_CHARS = 20_000  # sqlglot descends recursively: it must not get unlimited input
EXPLAIN = re.compile(r"\s*EXPLAIN\b(\s+QUERY\s+PLAN\b|\s*\([^)]*\)|\s+(ANALYZE|VERBOSE)\b)*", re.IGNORECASE)
# INTO makes a table, FOR UPDATE locks rows, and a Command is a statement that the parser does not model.
WRITERS = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Into, exp.Lock, exp.Command)

# Functions that the parser does not know by themselves, and that only compute.
PLAIN_FUNCTIONS = frozenset(
    {
        *("instr", "glob", "total", "julianday", "unixepoch", "strftime", "datetime"),
        *("hex", "unicode", "quote", "ifnull", "iif", "nullif", "mod", "div", "reverse", "btrim", "md5"),
        *("to_char", "to_number", "age", "percent_rank", "cume_dist"),
    }
)


def parse(sql: str, dialect: Dialect) -> exp.Expr:
    """Parse one statement. Raises Refused for none, for several, and for an unreadable one."""
    if len(sql) > MAX_STATEMENT_CHARS:
        raise Refused(f"The statement has {len(sql)} characters; {MAX_STATEMENT_CHARS} are the most.")
    try:
        trees = sqlglot.parse(sql, read=dialect)
        found = [each for each in trees if each is not None and not isinstance(each, exp.Semicolon)]
    except RecursionError as deep:
        raise Refused("The statement cannot be parsed: it is nested too deeply.") from deep
    except SqlglotError as unreadable:  # its message underlines a place with terminal escapes
        said = " ".join(re.sub(r"\x1b\[\d+m", "", str(unreadable)).split())
        raise Refused(f"The statement cannot be parsed: {said}") from unreadable
    if len(found) != 1:
        raise Refused(f"There are {len(found)} statements in one; give each by itself.")
    return found[0]


def checked_query(sql: str, dialect: Dialect, tables: Collection[str]) -> str:
    """Return a query that only reads these tables, without an EXPLAIN before it. Raises Refused."""
    query = EXPLAIN.sub("", sql, count=1).strip() if EXPLAIN.match(sql) else sql.strip()
    tree = parse(query, dialect)
    if not isinstance(tree, exp.Query):
        raise Refused(f"A query begins with SELECT or WITH; this is {_kind(tree)}.")
    if (writer := tree.find(*WRITERS)) is not None:
        raise Refused(f"A query may only read; this one contains {_kind(writer)}.")
    _check_names(tree, tables)
    return query.rstrip("; \n\t")


def checked_preparation(statements: Sequence[str], dialect: Dialect, tables: Collection[str]) -> list[str]:
    """Return the statements that create an index on these tables, or analyse them. Raises Refused.

    EXPLAIN of a query is left out, since the plan is always returned.
    """
    kept = [each for each in statements if not EXPLAIN.match(each)]
    for tree in [parse(each, dialect) for each in kept]:
        is_index = isinstance(tree, exp.Create) and tree.kind == "INDEX"
        if not is_index and not isinstance(tree, exp.Analyze):
            raise Refused(f"Only CREATE INDEX and ANALYZE may prepare a query; this is {_kind(tree)}.")
        if is_index and tree.args.get("concurrently"):  # PostgreSQL refuses it within a transaction
            raise Refused(
                "CREATE INDEX CONCURRENTLY cannot be tried on a throw-away copy; leave the word out."
            )
        if is_index and tree.find(exp.Query):
            raise Refused("An index must not contain a query.")
        _check_names(tree, tables)
    for each in statements:
        if each not in kept:  # not run, but a wrong one is worth telling
            checked_query(each, dialect, tables)
    return kept


def _check_names(tree: exp.Expr, tables: Collection[str]) -> None:
    """Raise Refused for an unknown table, and for a function that does more than compute."""
    known = {name.lower() for name in tables} | {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Func):
            continue  # a table function such as generate_series, judged with the functions
        # `main` is SQLite's name of the copy; another schema is outside of the copy.
        if table.name.lower() not in known or table.db.lower() not in ("", "main"):
            raise Refused(f"There is no table {table.sql()!r} here; there are {', '.join(sorted(tables))}.")
    # sqlglot models functions that compute; what reads files, sleeps or loads code is anonymous to it.
    for call in tree.find_all(exp.Anonymous, *SWELLING):
        name = call.name.lower() if isinstance(call, exp.Anonymous) else call.sql_name().lower()
        if name not in PLAIN_FUNCTIONS:
            raise Refused(f"The function {name!r} is not among those that may be used.")


def _kind(tree: exp.Expr) -> str:
    if isinstance(tree, exp.Command):
        return str(tree.this).upper()
    if isinstance(tree, (exp.Create, exp.Drop)):
        return f"{type(tree).__name__.upper()} {tree.args.get('kind') or ''}".strip()
    return type(tree).__name__.upper()
