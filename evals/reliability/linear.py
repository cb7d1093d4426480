"""Is a history of concurrent operations on records linearisable: could they have happened one after another?

Each operation must seem to happen at one moment between its beginning and its end. The search is the one of
Wing and Gong (1993), with Lowe's memory of what has been tried (2017), record by record. An operation without
a result (its process was killed, or its answer was lost) may have happened at any later moment, or never.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

NEVER = 2**63
Kind = Literal["read", "insert", "update", "retire", "forget"]
Result = Literal["done", "conflict", "missing", "unknown"]


class Record(NamedTuple):
    """A record as it is: its version, its text, and whether it is live."""

    version: int
    text: str
    live: bool


class State(NamedTuple):
    """What is under a name: the record, if there is one, and the highest number that a version there had.

    The numbers go on after a forgotten record, whose changes nobody can then make to its successor.
    """

    last: int = 0
    record: Record | None = None


class Operation(NamedTuple):
    """What a client did, from when to when (in one clock's units), and what came of it.

    `version` is the one that a change expected; `seen` is the record that a read found or a change made, None
    for none.
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
    numbers = _numbers(ordered)
    tried: set[tuple[int, State]] = set()
    waiting: list[tuple[int, State]] = [(0, State())]
    while waiting:
        done, state = waiting.pop()
        if done & needed == needed:
            return True
        if (done, state) in tried:
            continue
        tried.add((done, state))
        left = [n for n in range(len(ordered)) if not done >> n & 1]
        first_end = min(ends[n] for n in left)
        for n in reversed(left):
            if ordered[n].begun <= first_end:
                waiting += [(done | 1 << n, then) for then in _after(ordered[n], state, numbers)]
    return False


def _numbers(operations: Iterable[Operation]) -> dict[str, int]:
    """Return the number with which each text came, as far as it was seen: an insertion may pass over some."""
    seen = (each.seen for each in operations if each.seen is not None)
    return {record.text: record.version - (not record.live) for record in seen}


def _after(operation: Operation, state: State, numbers: Mapping[str, int]) -> list[State]:
    """Return what can be there after an operation with this result; nothing where it cannot be."""
    then = _changed(operation, state, numbers)
    refused = then == state and operation.kind != "read"
    match operation.result:
        case "unknown":
            return [then]
        case "missing":
            return [state] if state.record is None and operation.kind != "insert" else []
        case "conflict":  # a forgetting that lost against a write is refused too, and changes nothing
            return [state] if refused or operation.kind == "forget" else []
        case "done" if operation.kind == "read":
            return [state] if operation.seen == state.record else []
        case "done":
            return [] if refused else [then]


def _changed(operation: Operation, state: State, numbers: Mapping[str, int]) -> State:
    """Return what an operation makes of what is there; the same where it is refused."""
    record = state.record
    if operation.kind == "insert":
        number = numbers.get(operation.text, state.last + 1)
        return _now(Record(number, operation.text, True)) if record is None and number > state.last else state
    if operation.kind == "read" or record is None:
        return state
    if operation.kind == "forget":
        return State(record.version, None)
    if not record.live or record.version != operation.version:
        return state
    if operation.kind == "retire":
        return _now(record._replace(version=record.version + 1, live=False))
    return _now(Record(record.version + 1, operation.text, True))


def _now(record: Record) -> State:
    return State(record.version, record)
