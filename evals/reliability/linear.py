"""Is a history of concurrent operations on records linearisable: could they have happened one after another?

Each operation must seem to happen at one moment between its beginning and its end. The search is the one of
Wing and Gong (1993), with Lowe's memory of what has been tried (2017), record by record. An operation without
a result (its process was killed, or its answer was lost) may have happened at any later moment, or never.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

NEVER = 2**63
Kind = Literal["read", "insert", "update", "retire", "forget"]
Result = Literal["done", "conflict", "missing", "unknown"]


class Record(NamedTuple):
    """A record as it is: its version, its text, and whether it is live."""

    version: int
    text: str
    live: bool


class Operation(NamedTuple):
    """What a client did, from when to when (in one clock's units), and what came of it.

    `version` is the one that a change expected; `seen` is what a read found, None for no record.
    """

    key: str
    kind: Kind
    begun: int
    ended: int
    result: Result
    text: str = ""
    version: int = 0
    seen: Record | None = None


def impossible(history: Iterable[Operation]) -> list[str]:
    """Return the keys of the records whose operations are not linearisable."""
    of: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        of[operation.key].append(operation)
    return sorted(key for key, operations in of.items() if not is_linearisable(operations))


def is_linearisable(operations: Sequence[Operation]) -> bool:
    """Say whether there is an order of one record's operations that explains every result."""
    ordered = sorted(operations, key=lambda each: each.begun)
    ends = [NEVER if each.result == "unknown" else each.ended for each in ordered]
    needed = sum(1 << n for n, each in enumerate(ordered) if each.result != "unknown")
    tried: set[tuple[int, Record | None]] = set()
    waiting: list[tuple[int, Record | None]] = [(0, None)]
    while waiting:
        done, record = waiting.pop()
        if done & needed == needed:
            return True
        if (done, record) in tried:
            continue
        tried.add((done, record))
        left = [n for n in range(len(ordered)) if not done >> n & 1]
        first_end = min(ends[n] for n in left)
        for n in reversed(left):
            if ordered[n].begun <= first_end:
                waiting += [(done | 1 << n, then) for then in _after(ordered[n], record)]
    return False


def _after(operation: Operation, record: Record | None) -> list[Record | None]:
    """Return what a record can be after an operation with this result; nothing where it cannot be."""
    then = _changed(operation, record)
    refused = then == record and operation.kind != "read"
    match operation.result:
        case "unknown":
            return [then]
        case "missing":
            return [record] if record is None and operation.kind != "insert" else []
        case "conflict":  # a forgetting that lost against a write is refused too, and changes nothing
            return [record] if refused or operation.kind == "forget" else []
        case "done" if operation.kind == "read":
            return [record] if operation.seen == record else []
        case "done":
            return [] if refused else [then]


def _changed(operation: Operation, record: Record | None) -> Record | None:
    """Return what an operation makes of a record; the same where it is refused."""
    if operation.kind == "insert":
        return Record(1, operation.text, True) if record is None else record
    if operation.kind == "read" or record is None:
        return record
    if operation.kind == "forget":
        return None
    if not record.live or record.version != operation.version:
        return record
    if operation.kind == "retire":
        return record._replace(version=record.version + 1, live=False)
    return Record(record.version + 1, operation.text, True)
