"""Which checkpoints of a thread its last turns need, said once for SQLite and for Postgres.

A turn begins with an input; a resumed turn goes on. What a turn started from is kept with it, so that it can
be begun anew, and so are all checkpoints, writes and interrupts since. A subgraph's checkpoints go with the
root's checkpoint that called it; of a subgraph with a memory of its own, the latest stays.
"""

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointMetadata

_FIRST = """SELECT checkpoint_id FROM checkpoints
    WHERE thread_id = {thread} AND checkpoint_ns = '' AND {source} = 'input'
    ORDER BY checkpoint_id DESC LIMIT 1 OFFSET {others}"""
_BEGUN_FROM = """SELECT parent_checkpoint_id FROM checkpoints
    WHERE thread_id = {thread} AND checkpoint_ns = '' AND checkpoint_id >= {first}
    AND parent_checkpoint_id IS NOT NULL"""
_OLD = """c.thread_id = {thread} AND c.checkpoint_id < {first} AND CASE
    WHEN c.checkpoint_ns = '' THEN c.checkpoint_id NOT IN ({begun_from})
    WHEN {is_call} THEN {root} < {first} AND {root} NOT IN ({begun_from})
    ELSE EXISTS (SELECT 1 FROM checkpoints AS later WHERE later.thread_id = {thread}
        AND later.checkpoint_ns = c.checkpoint_ns AND later.checkpoint_id > c.checkpoint_id) END"""


def begins_turn(config: RunnableConfig, metadata: CheckpointMetadata) -> bool:
    """Say whether a checkpoint that is put begins a turn of its thread."""
    return not config["configurable"].get("checkpoint_ns") and metadata.get("source") == "input"


def first_kept(*, thread: str, others: str, source: str) -> str:
    """Return the query for the input of the last turn but `others`; each is SQL of the dialect.

    `source` is where the metadata have the checkpoint's.
    """
    return _FIRST.format(thread=thread, others=others, source=source)


def is_old(*, thread: str, first: str, root: str, is_call: str) -> str:
    """Return the condition on `checkpoints AS c` that the turns from the checkpoint `first` on do without it.

    `root` is where the metadata have the root's checkpoint; `is_call` says that the namespace is a subgraph's
    call: it has its task's id after a colon.
    """
    begun_from = _BEGUN_FROM.format(thread=thread, first=first)
    return _OLD.format(thread=thread, first=first, root=root, is_call=is_call, begun_from=begun_from)
