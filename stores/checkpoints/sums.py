"""Checksums of the rows in an SQLite file of checkpoints, so that a changed letter is noticed.

A column `sum` beside the others holds them. Triggers of the connection fill it, whatever writes through it;
the file itself has none, so that every other program can go on writing. Rows of others, and of earlier
versions, have no checksum and are not checked.
"""

# ruff: noqa: S608  (all that is put into these statements are constants)

import sqlite3
import zlib
from collections.abc import Iterator

import aiosqlite

FUNCTION = "mneme_sum"
TABLES = {
    "checkpoints": ("thread_id", "checkpoint_ns", "checkpoint_id", "type", "checkpoint", "metadata"),
    "writes": ("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value"),
    "items": ("thread_id", "channel", "number", "type", "value"),
}
"""What of each table is summed up."""
_COLUMNS = "SELECT name FROM pragma_table_info(?)"


def row_sum(*values: str | bytes | int | None) -> int:
    """Return the checksum of a row's values."""
    total = 0
    for value in values:
        data = value if isinstance(value, bytes) else repr(value).encode("utf-8", "backslashreplace")
        total = zlib.crc32(data, zlib.crc32(b"%d " % len(data), total))
    return total


async def keep_sums(connection: aiosqlite.Connection) -> None:
    """Give the tables their column, once, and this connection the triggers that fill it."""
    await connection.create_function(FUNCTION, -1, row_sum, deterministic=True)
    for table, columns in TABLES.items():
        await _add_column(connection, table)
        for event in ("INSERT", f"UPDATE OF {', '.join(columns)}"):
            await connection.execute(
                f"""CREATE TEMP TRIGGER IF NOT EXISTS {table}_{event[:6].lower()}
                AFTER {event} ON main.{table} BEGIN
                UPDATE {table} SET sum = {_sum_of(table, "NEW")} WHERE rowid = NEW.rowid; END"""
            )


async def _add_column(connection: aiosqlite.Connection, table: str) -> None:
    columns = await connection.execute_fetchall(_COLUMNS, (table,))
    if any(name == "sum" for (name,) in columns):
        return
    try:
        await connection.execute(f"ALTER TABLE {table} ADD COLUMN sum INTEGER")
    except sqlite3.OperationalError as failure:
        if "duplicate column" not in str(failure):  # else another process was first
            raise


def _sum_of(table: str, row: str) -> str:
    return f"{FUNCTION}({', '.join(f'{row}.{column}' for column in TABLES[table])})"


def _differs(table: str, row: str) -> str:
    return f"{row}.sum <> {_sum_of(table, row)}"


_PLACE = "thread_id = :thread_id AND checkpoint_ns = :checkpoint_ns AND checkpoint_id = :checkpoint_id"
CHANGED = f"""SELECT 1 FROM checkpoints AS c WHERE {_PLACE} AND {_differs("checkpoints", "c")}
    UNION ALL SELECT 1 FROM writes AS w WHERE {_PLACE} AND {_differs("writes", "w")}
    UNION ALL SELECT 1 FROM spans AS s CROSS JOIN items AS i
        ON i.thread_id = s.thread_id AND i.channel = s.channel AND i.number BETWEEN s.first AND s.last
        WHERE s.thread_id = :thread_id AND s.checkpoint_ns = :checkpoint_ns
        AND s.checkpoint_id = :checkpoint_id AND {_differs("items", "i")}
    LIMIT 1"""
"""Whether a row has changed of which a checkpoint with its lists is read."""


def changed_rows(connection: sqlite3.Connection) -> Iterator[str]:
    """Yield what has changed in the whole file, in words: each table and thread with the number of rows."""
    connection.create_function(FUNCTION, -1, row_sum, deterministic=True)
    for table in TABLES:
        if ("sum",) not in connection.execute(f"SELECT name FROM pragma_table_info('{table}')").fetchall():
            continue
        query = (
            f"SELECT thread_id, count(*) FROM {table} AS r WHERE {_differs(table, 'r')} GROUP BY thread_id"
        )
        for thread, count in connection.execute(query):
            yield f"{count} rows of the thread {thread} in {table} have changed"
