"""Checkpoints in Postgres: an extra, opened by `stores.checkpoints.checkpointer`.

Our tables are in a schema of their own. Earlier versions kept checkpoints in the tables of LangGraph's own
saver: what those hold is moved when the database is opened.
"""

import logging
import operator
from typing import Any

import psycopg
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.rows import dict_row
from tenacity import retry, retry_if_result, wait_fixed

from mneme.core.errors import StorageFailure
from mneme.stores.checkpoints.lists import TABLES, Place
from mneme.stores.checkpoints.packing import PlainSerializer
from mneme.stores.checkpoints.saver import Checkpoints
from mneme.stores.ledger.database import make
from mneme.stores.ledger.postgres import Postgres, first_line

SCHEMA = "mneme_checkpoints"
RUN = """substring(metadata from '"run_id": "([^"]*)"')"""
"""The run that a checkpoint is of; the metadata may be JSON that Postgres would not take, with NaN in it."""
MOVING_LOCK = 0x6D6E656D65  # "mneme"
_OLD_WRITES = """SELECT thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob
    FROM checkpoint_writes WHERE thread_id = %s"""
_PUT_WRITE = """INSERT INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel,
    type, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""

log = logging.getLogger(__name__)


def open_postgres(url: str, turns: int) -> Checkpoints:
    """Open the checkpoints at a Postgres URL, making their tables. Blocks. Raises StorageFailure."""
    database = Postgres(url, "MNEME_CHECKPOINTS", SCHEMA)
    try:
        with database.writing() as cursor:
            index = f"CREATE INDEX IF NOT EXISTS checkpoints_run ON checkpoints ({RUN});"
            make(cursor, database, f"CREATE SCHEMA IF NOT EXISTS {SCHEMA};{TABLES}{index}")
        saver = Checkpoints(database, RUN, turns)
        _take_over(url, saver)
    except psycopg.Error as failure:
        database.close()
        raise StorageFailure(
            f"The checkpoints at {database.place} cannot be moved into tables of ours: {first_line(failure)}",
            "They stay as they are. Mend the database, and open it again.",
        ) from failure
    except BaseException:
        database.close()
        raise
    return saver


def _take_over(url: str, saver: Checkpoints) -> None:
    """Move the threads out of the tables of LangGraph's saver, one after the other."""
    with psycopg.connect(url, autocommit=True, prepare_threshold=0, row_factory=dict_row) as connection:
        there = connection.execute("SELECT to_regclass('checkpoint_blobs') AS old").fetchone()
        if not there or there["old"] is None:
            return
        _lock(connection)
        earlier = PostgresSaver(connection, serde=PlainSerializer())
        earlier.setup()
        for row in connection.execute("SELECT DISTINCT thread_id FROM checkpoints").fetchall():
            thread = row["thread_id"]
            _move(connection, earlier, saver, thread)
            earlier.delete_thread(thread)
            log.warning("The conversation %s was moved into tables of Mneme's own.", thread)


def _move(connection: Any, earlier: PostgresSaver, saver: Checkpoints, thread: str) -> None:
    found = [*earlier.list({"configurable": {"thread_id": thread}})]
    writes = connection.execute(_OLD_WRITES, (thread,)).fetchall()
    with saver.database.writing() as cursor:
        for each in reversed(found):
            at, before = each.config["configurable"], each.parent_config
            place = Place(thread, at["checkpoint_ns"], at["checkpoint_id"])
            parent = before["configurable"]["checkpoint_id"] if before else None
            changed = [*each.checkpoint["channel_values"]]
            saver.put_at(cursor, place, parent, each.checkpoint, each.metadata, changed)
        cursor.executemany(_PUT_WRITE, [(*row.values(),) for row in writes])


# Tried, not waited for: waiting holds a snapshot open, and an index that the other one builds waits for that.
@retry(retry=retry_if_result(operator.not_), wait=wait_fixed(0.1))
def _lock(connection: Any) -> bool:
    return bool(
        connection.execute("SELECT pg_try_advisory_lock(%s) AS ours", (MOVING_LOCK,)).fetchone()["ours"]
    )
