"""Names of LangGraph and of Python that are not public, and why Mneme uses them.

Nothing else in Mneme touches such a name. `tests/stores/test_internals.py` fails where a new version has
changed one.
"""

import sys
import threading
from collections.abc import Callable
from typing import Any


def follow_id(ticks: int) -> None:
    """Let the ids that LangGraph makes for checkpoints in this process follow one that was made at `ticks`.

    The checkpoint with the highest id is the latest of a thread, and an id begins with the time. LangGraph
    makes the ids and knows only the last one that this process made: after the clock was set back, a
    conversation would go on from an old turn. Neither a saver nor a caller can give the time.
    """
    from langgraph.checkpoint.base import id  # noqa: PLC0415  (slow to import)

    made: Any = id
    made._last_v6_timestamp = max(ticks, made._last_v6_timestamp or 0)


def runs_of_dev() -> Any:
    """Return the class whose `put` and `next` are the queue of `langgraph dev`; None in another server.

    That queue looks for runs, sleeps half a second where there is none, and then takes those that were there
    before it fell asleep: a new run waits between half a second and a second, which is most of what the
    server adds to the first token of a reply. No setting shortens the sleep.
    """
    runs = getattr(sys.modules.get("langgraph_runtime_inmem.ops"), "Runs", None)
    return runs if hasattr(runs, "put") and hasattr(runs, "next") else None


def before_executors_end(call: Callable[[], None]) -> None:
    """Have a function called at the end of the process, while executors still take work.

    What `atexit` calls comes too late: nothing that is closed in a thread could be closed by then.
    `concurrent.futures` calls the same function.
    """
    threading._register_atexit(call)  # type: ignore[attr-defined]
