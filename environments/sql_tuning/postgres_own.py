"""A PostgreSQL database of the user's own: its tables are read, and tried on in temporary copies.

A solution's statements see the copies alone, which hide the tables of the same names and go with the
transaction. The tables themselves are only selected from; nothing of the database is locked against others.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Literal

import psycopg
from psycopg import sql as words

from mneme.core.errors import StorageFailure
from mneme.environments.sql_tuning.postgres import PostgresCopy, columns_of, connected, like, temporary
from mneme.environments.sql_tuning.records import Limits

Tables = dict[str, dict[str, str]]
READING = 120
"""Seconds in which the rows of one table must have been read."""


class OwnPostgres:
    """A schema of a database, which is read."""

    dialect: Literal["postgres"] = "postgres"
    clock: Literal["wall"] = "wall"

    def __init__(self, url: str, most_rows: int, tables: Sequence[str] = ()) -> None:
        """Open a schema; `tables` are those that a query reads, which alone are copied."""
        self._url, self._most, self._tables = url, most_rows, tables
        self._connection = connected(url)
        found = self._connection.execute("SELECT current_schema()").fetchone()
        self._place = str(found[0]) if found and found[0] else "public"
        self.key = f"own {url} {self._place} {most_rows}"
        self.catalogue: Tables = self._read()

    def _read(self) -> Tables:
        """Return the tables with their columns, the key first."""
        names = self._connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p') "
            "AND has_table_privilege(oid, 'SELECT') ORDER BY relname",
            (self._place,),
        ).fetchall()
        types = {"whole": "INTEGER", "real": "REAL", "text": "TEXT", "other": "OTHER"}
        columns = {name: columns_of(self._connection, self._place, name) for (name,) in names}
        return {
            name: {each.name: types[each.kind] for each in sorted(found, key=lambda column: not column.key)}
            for name, found in columns.items()
        }

    @contextmanager
    def copy(self, limits: Limits) -> Iterator[PostgresCopy]:
        """Yield temporary copies of the tables, a large one in part; they go at the end."""
        with self._apart():
            for table in self._tables:
                like(self._connection, self._place, table)
                self._take(table)
                self._connection.execute(words.SQL("ANALYZE {}").format(words.Identifier(table)))
            yield PostgresCopy(self._connection, self._temporary(), limits)

    def again(self) -> "OwnPostgres":
        """Return the same schema on a connection of its own."""
        return OwnPostgres(self._url, self._most, self._tables)

    @contextmanager
    def twin(self, query: str, limits: Limits) -> Iterator[PostgresCopy]:
        """Yield the same tables with rows that tell rewritings apart, on a connection of their own.

        On this one, copies of the same names may be in use.
        """
        with closing(self.again()) as other, other._apart():
            yield temporary(other._connection, self._place, self.catalogue, query, limits)

    def smaller(self, by: int) -> "OwnPostgres":
        """Return the same schema, of which fewer rows are taken."""
        return OwnPostgres(self._url, max(100, self._most // by), self._tables)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """Begin a transaction that is rolled back, in which only what is copied is seen."""
        try:
            with self._connection.transaction(force_rollback=True):
                self._connection.execute(f"SET LOCAL statement_timeout = {READING * 1000}")
                self._connection.execute("SET LOCAL search_path = pg_temp")
                yield
        except psycopg.OperationalError as error:
            raise StorageFailure(
                f"PostgreSQL no longer answers: {error}", hint="Start it, and open again."
            ) from error

    def _take(self, table: str) -> None:
        """Copy rows of a table; of a large one, every so manieth page, as the server samples."""
        found = self._connection.execute(
            "SELECT greatest(reltuples, 0) FROM pg_class WHERE oid = %s::regclass",
            (words.Identifier(self._place, table).as_string(),),
        ).fetchone()
        share = 100.0 * self._most / max(float(found[0]) if found else 0.0, 1.0)
        sample = words.SQL(" TABLESAMPLE SYSTEM ({}) REPEATABLE (1)").format(words.Literal(min(share, 100.0)))
        names = words.SQL(", ").join(
            words.Identifier(each.name) for each in columns_of(self._connection, self._place, table)
        )
        self._connection.execute(
            words.SQL("INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM {}{} LIMIT {}").format(
                words.Identifier(table),
                names,
                names,
                words.Identifier(self._place, table),
                sample if share < 100 else words.SQL(""),
                words.Literal(self._most),
            )
        )

    def _temporary(self) -> str:
        found = self._connection.execute(
            "SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()"
        ).fetchone()
        return str(found[0]) if found else "pg_temp"
