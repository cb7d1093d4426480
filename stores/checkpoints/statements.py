"""What is done to whole threads and runs in an SQLite file of checkpoints, as SQL."""

# ruff: noqa: S608  (all that is put into these statements are constants)

from mneme.stores.checkpoints.lists import SWEEP_ITEMS
from mneme.stores.checkpoints.turns import first_kept, is_old


def _metadata(key: str, column: str = "metadata") -> str:
    """Return a value of the metadata: JSON in a BLOB, which SQLite finds malformed where it holds NaN."""
    text = f"CAST({column} AS TEXT)"
    return f"CASE WHEN json_valid({text}) THEN json_extract({text}, '$.{key}') END"


RUN_INDEX = f"CREATE INDEX IF NOT EXISTS checkpoints_run ON checkpoints ({_metadata('run_id')})"
_OF_RUNS = f"FROM checkpoints WHERE {_metadata('run_id')} IN (SELECT value FROM json_each(:runs))"
THREADS_OF_RUNS = f"SELECT DISTINCT thread_id {_OF_RUNS}"
DELETE_RUNS = (
    f"""DELETE FROM writes WHERE (thread_id, checkpoint_ns, checkpoint_id) IN
        (SELECT thread_id, checkpoint_ns, checkpoint_id {_OF_RUNS})""",
    f"DELETE {_OF_RUNS}",
)

THREADS = """SELECT thread_id, max(checkpoint_id), count(*), CAST(metadata AS TEXT)
    FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id ORDER BY 2"""
VALUES = """SELECT type, checkpoint FROM checkpoints WHERE thread_id = :thread
    UNION ALL SELECT type, value FROM writes WHERE thread_id = :thread"""
ITEMS = "SELECT channel, value FROM items WHERE thread_id = :thread AND type = :kind ORDER BY channel, number"
COLUMNS = [
    (
        f"SELECT rowid, type, {column} FROM {table} WHERE thread_id = ?",
        f"UPDATE {table} SET {column} = ? WHERE rowid = ?",
    )
    for table, column in (("checkpoints", "checkpoint"), ("writes", "value"), ("items", "value"))
]
"""How the values of a thread are read and replaced, by table."""

DELETE_THREAD = tuple(
    f"DELETE FROM {table} WHERE thread_id = :thread" for table in ("checkpoints", "writes", "items")
)

# A thread that is there stays as it is: its items have numbers of their own. So the checkpoints are last.
_TO_NEW = "WHERE thread_id = :source AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE thread_id = :target)"
COPY_THREAD = (
    f"""INSERT INTO items (thread_id, channel, number, type, value)
        SELECT :target, channel, number, type, value FROM items {_TO_NEW}""",
    f"""INSERT INTO spans (thread_id, checkpoint_ns, checkpoint_id, channel, place, first, last)
        SELECT :target, checkpoint_ns, checkpoint_id, channel, place, first, last FROM spans {_TO_NEW}""",
    f"""INSERT INTO writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)
        SELECT :target, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value
        FROM writes {_TO_NEW}""",
    f"""INSERT INTO checkpoints
        (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata)
        SELECT :target, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint,
            CASE WHEN json_valid(CAST(metadata AS TEXT))
            THEN CAST(json_replace(CAST(metadata AS TEXT), '$.thread_id', :target) AS BLOB) ELSE metadata END
        FROM checkpoints {_TO_NEW}""",
)

USES_DELTAS = """SELECT 1 FROM checkpoints WHERE thread_id = :thread
    AND json_valid(CAST(metadata AS TEXT))
    AND json_type(CAST(metadata AS TEXT), '$.counters_since_delta_snapshot') IS NOT NULL LIMIT 1"""

# A subgraph call's namespace ends in its task's id after a colon. Its checkpoints belong to the
# root's checkpoint that the call started from, and go with that one.
_ENDED_CALLS = f"""SELECT h.checkpoint_ns FROM
        (SELECT checkpoint_ns, max(checkpoint_id) AS checkpoint_id FROM checkpoints
         WHERE thread_id = :thread AND instr(checkpoint_ns, ':') GROUP BY checkpoint_ns) AS h
    JOIN checkpoints AS c ON c.thread_id = :thread
        AND c.checkpoint_ns = h.checkpoint_ns AND c.checkpoint_id = h.checkpoint_id
    JOIN checkpoints AS r ON r.thread_id = :thread AND r.checkpoint_ns = ''
        AND r.checkpoint_id = {_metadata('parents.""', "c.metadata")}
    WHERE r.checkpoint_id <> (SELECT max(checkpoint_id) FROM checkpoints
        WHERE thread_id = :thread AND checkpoint_ns = '')"""
_LATEST = """(SELECT max(h.checkpoint_id) FROM checkpoints AS h
    WHERE h.thread_id = :thread AND h.checkpoint_ns = {table}.checkpoint_ns)"""
# Writes may be saved before the checkpoint they belong to: only an older checkpoint's go.
KEEP_LATEST = (
    f"DELETE FROM writes WHERE thread_id = :thread AND checkpoint_ns IN ({_ENDED_CALLS})",
    f"DELETE FROM checkpoints WHERE thread_id = :thread AND checkpoint_ns IN ({_ENDED_CALLS})",
    f"DELETE FROM writes WHERE thread_id = :thread AND checkpoint_id < {_LATEST.format(table='writes')}",
    f"""DELETE FROM checkpoints WHERE thread_id = :thread
        AND checkpoint_id < {_LATEST.format(table="checkpoints")}""",
    "UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE thread_id = :thread",
    SWEEP_ITEMS,
)

_FIRST = first_kept(thread=":thread", others=":others", source=_metadata("source"))
FIRST_KEPT = f"SELECT * FROM ({_FIRST}) WHERE NOT EXISTS ({USES_DELTAS})"
_IS_OLD = is_old(
    thread=":thread",
    first=":first",
    root=_metadata('parents.""', "c.metadata"),
    is_call="instr(c.checkpoint_ns, ':')",
)
KEEP_FROM = (
    f"DELETE FROM checkpoints AS c WHERE {_IS_OLD}",
    """DELETE FROM writes WHERE thread_id = :thread AND checkpoint_id < :first
        AND (checkpoint_ns, checkpoint_id) NOT IN
        (SELECT checkpoint_ns, checkpoint_id FROM checkpoints WHERE thread_id = :thread)""",
    """UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE thread_id = :thread
        AND parent_checkpoint_id NOT IN (SELECT checkpoint_id FROM checkpoints WHERE thread_id = :thread)""",
    SWEEP_ITEMS,
)
"""Keep a thread's turns from the one on that begins with the checkpoint `first`."""
