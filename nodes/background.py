"""What background runs on the LangGraph server share: threads by name, room for many steps, and workers."""

import logging
import os
from uuid import NAMESPACE_URL, uuid5

log = logging.getLogger(__name__)

LONG = 10_000
"""Steps that a run over many messages may take."""
MORE_WORKERS = "Start it with `make dev`, or with `langgraph dev --n-jobs-per-worker 8`."
_said: list[str] = []


def thread_id(name: str) -> str:
    """Return the thread of that name; the server takes UUIDs only."""
    return str(uuid5(NAMESPACE_URL, f"mneme:{name}"))


def warn_of_a_single_worker() -> None:
    """Say once, in the server's log, that whoever chats waits for everything in the background.

    `langgraph dev` puts the number of runs that it serves at once into the environment; it is 1 unless given.
    """
    if os.environ.get("N_JOBS_PER_WORKER") == "1" and not _said:
        _said.append("a single worker")
        log.warning("This server runs one thing at a time: replies wait for others. %s", MORE_WORKERS)
