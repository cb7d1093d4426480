"""What background runs on the LangGraph server share: threads by name, and room for many steps."""

from uuid import NAMESPACE_URL, uuid5

LONG = 10_000
"""Steps that a run over many messages may take."""


def thread_id(name: str) -> str:
    """Return the thread of that name; the server takes UUIDs only."""
    return str(uuid5(NAMESPACE_URL, f"mneme:{name}"))
