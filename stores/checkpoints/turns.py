"""Which checkpoints of a thread its last turns need, or its latest state alone.

A turn begins with an input; a resumed turn goes on. What a turn started from is kept with it, so that it can
be begun anew, and so are all checkpoints, writes and interrupts since. A subgraph's checkpoints go with the
root's checkpoint that called it; of a subgraph with a memory of its own, the latest stays.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

At = tuple[str, str]
"""Where a checkpoint of a thread is: its namespace and its id, which rises with the time."""


class Known(NamedTuple):
    """A checkpoint without its state."""

    namespace: str
    id: str
    parent: str | None
    metadata: dict[str, Any]

    @property
    def at(self) -> At:
        return self.namespace, self.id

    @property
    def is_call(self) -> bool:
        """Whether it is of a subgraph's call, whose namespace ends in its task's id after a colon."""
        return ":" in self.namespace

    @property
    def root(self) -> str | None:
        """The id of the root's checkpoint that called it."""
        return (self.metadata.get("parents") or {}).get("")


class Past(NamedTuple):
    """The checkpoints that can go, and which writes without a checkpoint are older than what stays."""

    old: set[At]
    is_before: Callable[[str, str], bool]


def uses_deltas(known: Sequence[Known]) -> bool:
    """Say whether the thread keeps state as differences: then its latest checkpoint needs the older ones."""
    return any("counters_since_delta_snapshot" in each.metadata for each in known)


def before_turns(known: Sequence[Known], turns: int) -> Past | None:
    """Return what the last turns of a thread do not need; None where it has no more turns than that."""
    roots = [each for each in known if not each.namespace]
    inputs = sorted((each.id for each in roots if each.metadata.get("source") == "input"), reverse=True)
    if len(inputs) < turns or uses_deltas(known):
        return None
    first, latest = inputs[turns - 1], _latest(known)
    begun_from = {each.parent for each in roots if each.id >= first}

    def is_old(each: Known) -> bool:
        if each.is_call:
            return each.root is not None and each.root < first and each.root not in begun_from
        return each.id not in begun_from if not each.namespace else each.id < latest[each.namespace]

    return Past({each.at for each in known if each.id < first and is_old(each)}, lambda _, id: id < first)


def before_latest(known: Sequence[Known]) -> Past:
    """Return all but the latest checkpoint of each namespace, and the calls that have ended."""
    latest = _latest(known)
    called = {each.id for each in known if not each.namespace} - {latest.get("")}
    last = [each for each in known if each.id == latest[each.namespace]]
    ended = {each.namespace for each in last if each.is_call and each.root in called}

    def is_before(namespace: str, id: str) -> bool:
        return namespace in ended or id < latest.get(namespace, "")

    return Past({each.at for each in known if is_before(*each.at)}, is_before)


def _latest(known: Sequence[Known]) -> dict[str, str]:
    return {each.namespace: each.id for each in sorted(known, key=lambda each: each.id)}
