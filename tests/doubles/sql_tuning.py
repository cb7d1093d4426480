"""The query-tuning world on a database of the user's own, for tests."""

from typing import Any

import pytest

from mneme.environments.sql_tuning.generating import draw, find_schema
from mneme.environments.sql_tuning.tasks import TuningTask
from mneme.environments.sql_tuning.tuning import SqlTuning

FEW = 2_000


def on_postgres(url: str, task: TuningTask, rows: int, **options: Any) -> SqlTuning:
    """Make the tables of a task's schema in a database of the user's own."""
    psycopg = pytest.importorskip("psycopg")
    schema, types = find_schema(task.schema_name), {"INTEGER": "bigint", "TEXT": 'text COLLATE "C"'}
    drawn = draw(schema, 1, rows)
    with psycopg.connect(url, autocommit=True) as connection:
        for table, columns in schema.tables().items():
            key, *others = (f"{name} {types[kind]}" for name, kind in columns.items())
            declared = ", ".join([f"{key} PRIMARY KEY", *(f"{each} NOT NULL" for each in others)])
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({declared})")
            connection.execute(f"TRUNCATE {table}")
            with connection.cursor().copy(f"COPY {table} FROM STDIN") as copy:
                for row in drawn[table]:
                    copy.write_row(row)
    return SqlTuning.of(task.model_copy(update={"database": url}), **options)
