"""The tables in which `langgraph dev` keeps threads and runs, in its memory and in a file: read and cleaned.

A thread's row has its latest values, a run's row what the run was given; both beside the checkpoints. No
request to a server takes a text out of them and leaves the conversation: with a run go its checkpoints.
"""

from collections.abc import Collection, Mapping
from typing import Any

from mneme.core.settings import settings
from mneme.nodes.context import LOCAL
from mneme.stores.checkpoints.erasing import Eraser

Row = dict[str, Any]
Tables = Mapping[str, Any]
OF_THREADS = ("threads", "runs", "crons")
TEXTS = ("values", "interrupts", "error", "kwargs")
"""Columns that can hold what somebody said."""
ACTIVE = ("pending", "running")


def owners(tables: Tables) -> dict[str, str]:
    """Return whose each thread is; without keys, the user that its runs name."""
    found = {_thread(row): _owner(row.get("metadata")) for row in tables.get("threads", [])}
    if settings().auth is None:
        for run in tables.get("runs", []):
            named = (run.get("kwargs", {}).get("context") or {}).get("user")
            found |= {_thread(run): str(named)} if named else {}
    return found


def _owner(metadata: Any) -> str:
    return str((metadata or {}).get("owner") or LOCAL)


def active(tables: Tables, threads: Collection[str]) -> list[Row]:
    """Return the runs of these threads that wait or go on."""
    return [run for run in tables.get("runs", []) if _thread(run) in threads and run.get("status") in ACTIVE]


def erase(tables: Tables, threads: Collection[str], eraser: Eraser) -> bool:
    """Take what is erased out of the rows of these threads; return whether there was any."""
    before = eraser.hits
    for row in _rows(tables, threads):
        row.update({name: eraser.clean(row[name]) for name in TEXTS if name in row})
    return eraser.hits > before


def delete(tables: Tables, threads: Collection[str]) -> bool:
    """Delete the rows of these threads; return whether there were any."""
    gone = _rows(tables, threads)
    for name in OF_THREADS:
        rows = tables.get(name, [])
        rows[:] = [row for row in rows if _thread(row) not in threads]
    return bool(gone)


def _rows(tables: Tables, threads: Collection[str]) -> list[Row]:
    return [row for name in OF_THREADS for row in tables.get(name, []) if _thread(row) in threads]


def _thread(row: Row) -> str:
    return str(row.get("thread_id"))
