"""Score memory operations against what was expected: which, on which memory, in which words."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from scipy.optimize import linear_sum_assignment
from scipy.stats import binomtest

Write = Literal["insert", "update", "retire"]
Operation = Literal["insert", "update", "retire", "discard"]


class Expected(BaseModel):
    """One operation that a message should lead to; where two are listed, either is right."""

    model_config = ConfigDict(extra="forbid")

    operation: list[Write] = Field(min_length=1)
    target: int | None = Field(None, ge=0, description="Number of the memory that is to be updated.")
    contains: list[str] = Field([], description="What the resulting memory must say.")
    keeps: list[str] = Field([], description="What an updated memory must still say.")
    drops: list[str] = Field([], description="What the resulting memory must no longer say.")

    @field_validator("operation", mode="before")
    @classmethod
    def _as_list(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _has_target(self) -> "Expected":
        if self.target is None and not {"update", "retire"}.isdisjoint(self.operation):
            raise ValueError("an update and a retirement need a target")
        return self


class Done(BaseModel):
    """One operation that took place, read from the ledger."""

    operation: Write
    content: str
    before: str = ""
    target: int | None = None


class Pairing(BaseModel):
    """What was expected beside what was done; `discard` stands for nothing on either side."""

    expected: Operation
    accepted: list[Operation]
    actual: Operation
    right_target: bool = True
    right_content: bool = True

    @property
    def right(self) -> bool:
        return self.actual in self.accepted and self.right_target and self.right_content


def pair(expected: Sequence[Expected], done: Sequence[Done]) -> list[Pairing]:
    """Pair expectations with operations as favourably as they allow.

    First those of the right kind and target: an insert answers one expectation, an update of one
    memory any number. What is left over is paired by likeness; what then remains of the
    expectations was missed, and of the operations was too much.
    """
    if not expected and not done:
        return [Pairing(expected="discard", accepted=["discard"], actual="discard")]
    updates = max(1, len(expected))
    columns = [n for n, op in enumerate(done) for _ in range(updates if op.operation == "update" else 1)]
    first = _assign(expected, [done[n] for n in columns], _exactly)
    pairs = {row: columns[column] for row, column in first.items()}
    rows = [n for n in range(len(expected)) if n not in pairs]
    free = [n for n in range(len(done)) if n not in pairs.values()]
    second = _assign([expected[n] for n in rows], [done[n] for n in free], _roughly)
    pairs |= {rows[row]: free[column] for row, column in second.items()}
    found = [_pairing(entry, done[pairs[n]] if n in pairs else None) for n, entry in enumerate(expected)]
    more = [op.operation for n, op in enumerate(done) if n not in pairs.values()]
    return found + [Pairing(expected="discard", accepted=["discard"], actual=each) for each in more]


def _assign(
    expected: Sequence[Expected], done: Sequence[Done], weigh: Callable[[Expected, Done], float]
) -> dict[int, int]:
    """Return the assignment of greatest weight, without the pairs of no weight."""
    weights = np.array([[weigh(entry, op) for op in done] for entry in expected], dtype=float)
    weights = weights.reshape(len(expected), len(done))
    rows, columns = linear_sum_assignment(weights, maximize=True)
    return {int(r): int(c) for r, c in zip(rows, columns, strict=True) if weights[r, c] > 0}


def _exactly(entry: Expected, op: Done) -> float:
    if op.operation not in entry.operation or not _on_target(entry, op):
        return 0.0
    return 1.0 + says_right(entry, op)


def _roughly(entry: Expected, op: Done) -> float:
    return 0.1 + 2.0 * (op.operation in entry.operation) + says_right(entry, op)


def _on_target(entry: Expected, op: Done) -> bool:
    return op.operation == "insert" or op.target == entry.target


def says_right(entry: Expected, op: Done) -> bool:
    """Say whether the resulting memory has the right words; an update must have changed it."""
    if op.operation == "retire":
        return True
    text = op.content.casefold()
    if not all(words.casefold() in text for words in entry.contains):
        return False
    if any(words.casefold() in text for words in entry.drops):
        return False
    if op.operation == "insert":
        return True
    return op.content != op.before and all(words.casefold() in text for words in entry.keeps)


def _pairing(entry: Expected, op: Done | None) -> Pairing:
    actual: Operation = op.operation if op else "discard"
    accepted: list[Operation] = list(entry.operation)
    return Pairing(
        expected=actual if actual in accepted else accepted[0],
        accepted=accepted,
        actual=actual,
        right_target=op is not None and _on_target(entry, op),
        right_content=op is not None and says_right(entry, op),
    )


def ratio(part: float, whole: float) -> float | None:
    """Return a share, or nothing where there was nothing to count."""
    return part / whole if whole else None


def percent(value: float | None) -> str:
    """Write a share as a table shows it."""
    return "–" if value is None else f"{100 * value:.0f} %"


def interval(of: dict[str, Any]) -> str:
    """Write a share's interval as a table shows it."""
    return "–" if of["low"] is None else f"{100 * of['low']:.0f}–{100 * of['high']:.0f} %"


def share(right: int, count: int) -> dict[str, Any]:
    """Return a share of cases with its 95 % Wilson interval."""
    interval = binomtest(right, count).proportion_ci(0.95, method="wilson") if count else None
    return {
        "right": right,
        "cases": count,
        "share": ratio(right, count),
        "low": interval and float(interval.low),
        "high": interval and float(interval.high),
    }
