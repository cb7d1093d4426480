"""Checkpoints in Postgres: an extra, opened by `stores.checkpoints.checkpointer`.

Our tables are in a schema of their own, beside those that LangGraph's own saver may have there for another
program.
"""

from mneme.stores.checkpoints.threads import CHECKPOINT_TABLES
from mneme.stores.database import make
from mneme.stores.postgres import Postgres

SCHEMA = "mneme_checkpoints"
RUN = """substring(metadata from '"run_id": "([^"]*)"')"""
"""The run that a checkpoint is of; the metadata may be JSON that Postgres would not take, with NaN in it."""


def open_postgres(url: str) -> Postgres:
    """Open the checkpoints at a Postgres URL, making their tables. Blocks. Raises StorageFailure."""
    database = Postgres(url, "MNEME_CHECKPOINTS", SCHEMA)
    try:
        with database.writing() as cursor:
            index = f"CREATE INDEX IF NOT EXISTS checkpoints_run ON checkpoints ({RUN});"
            make(cursor, database, f"CREATE SCHEMA IF NOT EXISTS {SCHEMA};{CHECKPOINT_TABLES}{index}")
    except BaseException:
        database.close()
        raise
    return database
