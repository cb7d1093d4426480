"""Whether some order of what clients called explains what each was answered: linearizability.

The order may only swap calls that overlapped. It is looked for record by record, which is enough where no
call changes two (Herlihy and Wing 1990, theorem 1), and call by call as they end: the states that explain
everything so far, each with the calls that are still open and count already (Lowe 2017, "Testing for
linearizability").
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

NEVER = 2**63


class State(NamedTuple):
    """A record: the number of its newest version, forgotten ones too; whether it is there; live; its text."""

    version: int = 0
    is_there: bool = False
    is_live: bool = False
    text: str = ""


@dataclass(frozen=True)
class Call:
    """What was called and answered, between which moments. An unknown end comes never."""

    n: str
    kind: str
    key: str
    text: str
    expected: int
    begun: int
    ended: int
    answer: Any


def calls_of(lines: Iterable[dict[str, Any]]) -> list[Call]:
    """Join the lines that clients noted; a search becomes a reading of each record that it found."""
    begun: dict[str, dict[str, Any]] = {}
    ended: dict[str, dict[str, Any]] = {}
    for line in lines:
        (begun if "call" in line else ended)[line["n"]] = line
    calls = []
    for n, line in begun.items():
        end = ended.get(n, {"at": NEVER, "ended": "unknown"})
        at = NEVER if end["ended"] == "unknown" else end["at"]
        call = Call(
            n, line["call"], line["key"], line["text"], line["expected"], line["at"], at, end["ended"]
        )
        calls += found_by(call) if call.kind == "search" else [call]
    return [call for call in calls if not (call.answer == "unknown" and call.kind == "get")]


def found_by(search: Call) -> list[Call]:
    hits = [] if search.answer == "unknown" else search.answer
    return [
        Call(f"{search.n}/{hit['key']}", "get", hit["key"], "", 0, search.begun, search.ended, hit)
        for hit in hits
    ]


def after(state: State, call: Call) -> State | None:
    """Return the state after the call; none where it could not have been answered so."""
    allowed, new = changed(state, call)
    match call.answer:
        case "lost":
            return state
        case "refused":
            return None if allowed else state
        case "unknown" | "forgotten":
            return new if allowed else None
    if call.kind == "get":
        return state if call.answer == seen(state, call.key) else None
    return new if allowed and call.answer == seen(new, call.key) else None


def changed(state: State, call: Call) -> tuple[bool, State]:
    """Return whether the state allows the change, and what it makes of it."""
    version, is_there, is_live, text = state
    is_expected = is_there and version == call.expected
    match call.kind:
        case "insert":
            return not is_there, State(version + 1, True, True, call.text)
        case "update":
            return is_expected and is_live, State(version + 1, True, True, call.text)
        case "retire":
            return is_expected and is_live, State(version + 1, True, False, text)
        case "restore":
            return is_expected and not is_live, State(version + 1, True, True, text)
        case "forget":
            return is_there, State(version)
    return True, state


def seen(state: State, key: str) -> dict[str, Any] | None:
    if not state.is_there:
        return None
    return {"key": key, "version": state.version, "text": state.text, "live": state.is_live}


def unexplained(calls: Iterable[Call]) -> list[Call]:
    """Return of each record the first call, in the order of their ends, that no order explains."""
    by_key = defaultdict(list)
    for call in calls:
        by_key[call.key].append(call)
    firsts = (first_unexplained(each) for each in by_key.values())
    return [call for call in firsts if call is not None]


def first_unexplained(calls: list[Call]) -> Call | None:
    events = sorted([(call.begun, 0, call.n) for call in calls] + [(call.ended, 1, call.n) for call in calls])
    by_n = {call.n: call for call in calls}
    explained: set[tuple[State, frozenset[str]]] = {(State(), frozenset())}
    running: set[str] = set()
    for at, ends, n in events:
        if at == NEVER:
            break
        if not ends:
            running.add(n)
            continue
        reached = all_reached(explained, running, by_n)
        explained = {(state, counted - {n}) for state, counted in reached if n in counted}
        if not explained:
            return by_n[n]
        running.remove(n)
    return None


def all_reached(
    explained: set[tuple[State, frozenset[str]]], running: set[str], by_n: dict[str, Call]
) -> set[tuple[State, frozenset[str]]]:
    """Let any of the running calls that do not count yet count now, in any order."""
    reached, waiting = set(explained), list(explained)
    while waiting:
        state, counted = waiting.pop()
        for n in running - counted:
            new = after(state, by_n[n])
            if new is not None and (step := (new, counted | {n})) not in reached:
                reached.add(step)
                waiting.append(step)
    return reached
