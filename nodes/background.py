"""Settings shared by runs on the LangGraph server: thread names, recursion limit, workers."""

import logging
import os

from mneme.core.settings import read_settings
from mneme.models.asking.lazily import import_lazily
from mneme.stores.access import known_id, thread_id
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import LOCAL

log = logging.getLogger(__name__)

THREAD_NAME = "thread_name"
"""Key of a thread's name in the metadata of its checkpoints."""
MEMORY_THREAD = "memory/{user}"
"""Name of the thread on which a user's messages are remembered."""
RECURSION_LIMIT = 10_000
"""Maximum steps of a run over many messages."""
MORE_WORKERS = "Start it with `make dev`, or with `langgraph dev --n-jobs-per-worker 64`."
_said: list[str] = []  # not empty once the warning was given


async def named_thread(ledger: Ledger, name: str, owner: str) -> str:
    """Return the id of an owner's thread of that name, in the server process.

    A thread that an earlier version made under its predictable id stays in use if it is the owner's.
    """
    known = known_id(name)
    return known if await _is_of(known, owner) else await thread_id(ledger, owner, name)


async def _is_of(thread: str, owner: str) -> bool:
    """Return whether a thread has checkpoints and is the owner's; without keys all threads have one owner."""
    alone = (await read_settings()).auth is None
    checkpoints = await import_lazily("mneme.stores.checkpoints.checkpointer")  # only the server needs it
    found: str | None = await checkpoints.thread_owner(thread)
    if found is None or alone:
        return found is not None
    # Everyone who runs a graph can write any owner into a checkpoint, so the server's own metadata decides.
    sdk = await import_lazily("langgraph_sdk")
    try:
        on_server = await sdk.get_client(api_key=None).threads.get(thread)
    except sdk.errors.NotFoundError:  # lost by the server: its owner may create it again
        return found == owner
    return bool((on_server["metadata"] or {}).get("owner") == owner)


async def owner_of_runs(user: str) -> str:
    """Return the owner of a user's threads and runs on the server; without keys all have one owner."""
    return LOCAL if (await read_settings()).auth is None else user


def warn_of_a_single_worker() -> None:
    """Warn once, in the server's log, that with a single worker a chat waits for all background runs."""
    # `langgraph dev` puts its number of concurrent runs there: 1 by default, though its help says 10.
    if os.environ.get("N_JOBS_PER_WORKER") == "1" and not _said:
        _said.append("a single worker")
        log.warning("This server runs one thing at a time: replies wait for others. %s", MORE_WORKERS)
