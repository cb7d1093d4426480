"""The contradiction set: labelled messages upon memories, each run through a memory agent's graph.

A case is one JSON line: `id`, `category`, `preceding` turns, `memories` that exist already, the `message`,
and the operations to `expect` (`Expectation`; none means discard). The operations are read from the ledger,
not from the agent's own report, and scored against what was expected: which operation, on which memory, in
which words.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from scipy.optimize import linear_sum_assignment

from mneme.api.tables import Table
from mneme.core.errors import BadInput
from mneme.evals.measuring import interval, percent, ratio, share
from mneme.evals.report import Row, framed, read_lines

LABELLED_FILE = Path(__file__).parent / "data" / "contradictions.jsonl"
Write = Literal["insert", "update", "retire"]
Operation = Literal["insert", "update", "retire", "discard"]


class Expectation(BaseModel):
    """One operation that a message should cause; if two are listed, either is right."""

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
    def _has_target(self) -> "Expectation":
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
    """An expected operation beside an actual one; `discard` means none on either side."""

    expected: Operation
    accepted: list[Operation]
    actual: Operation
    right_target: bool = True
    right_content: bool = True

    @property
    def right(self) -> bool:
        return self.actual in self.accepted and self.right_target and self.right_content


class Case(BaseModel):
    """One labelled message."""

    model_config = ConfigDict(extra="forbid")

    id: str
    category: str
    preceding: list[str] = []
    memories: list[str]
    message: str = Field(min_length=1)
    expect: list[Expectation]

    @model_validator(mode="after")
    def _targets_exist(self) -> "Case":
        for entry in self.expect:
            if entry.target is not None and entry.target >= len(self.memories):
                raise ValueError(f"target {entry.target} is not among {len(self.memories)} memories")
        return self


class CaseScore(BaseModel):
    """The operations of one system in one case, compared with the expected ones."""

    case: Case
    done: list[Done]
    failed: str = ""
    pairings: list[Pairing]

    @property
    def right(self) -> bool:
        """Return whether exactly the expected operations were done, with the right targets and words."""
        return not self.failed and all(pairing.right for pairing in self.pairings)

    @property
    def met(self) -> bool:
        """Return whether all expected operations were done; more inserts pass if something is to be stored.

        A set lists what must be remembered of a message, not always everything that may be.
        """
        wrong = [pairing for pairing in self.pairings if not pairing.right]
        further = all(pairing.expected == "discard" and pairing.actual == "insert" for pairing in wrong)
        return self.right or (bool(self.case.expect) and not self.failed and further)


def pair(expected: Sequence[Expectation], done: Sequence[Done]) -> list[Pairing]:
    """Pair expectations with operations as favourably as they allow.

    First those of the right kind and target: an insert answers one expectation, an update of one memory any
    number. The rest is paired by similarity. Expectations that remain were missed; operations that remain
    were superfluous.
    """
    if not expected and not done:
        return [Pairing(expected="discard", accepted=["discard"], actual="discard")]
    updates = max(1, len(expected))  # one update may merge several facts: it may answer for all of them
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
    expected: Sequence[Expectation], done: Sequence[Done], weigh: Callable[[Expectation, Done], float]
) -> dict[int, int]:
    """Return the assignment of maximum weight, without pairs of weight 0."""
    weights = np.array([[weigh(entry, op) for op in done] for entry in expected], dtype=float)
    # No expectation or no operation: numpy makes one dimension.
    weights = weights.reshape(len(expected), len(done))
    rows, columns = linear_sum_assignment(weights, maximize=True)
    return {int(r): int(c) for r, c in zip(rows, columns, strict=True) if weights[r, c] > 0}


def _exactly(entry: Expectation, op: Done) -> float:
    if op.operation not in entry.operation or not _on_target(entry, op):
        return 0.0
    return 1.0 + says_right(entry, op)  # right words decide between two of the same kind


def _roughly(entry: Expectation, op: Done) -> float:
    # The kind weighs more than the words; 0.1 pairs even unlike ones.
    return 0.1 + 2.0 * (op.operation in entry.operation) + says_right(entry, op)


def _on_target(entry: Expectation, op: Done) -> bool:
    return op.operation == "insert" or op.target == entry.target


def says_right(entry: Expectation, op: Done) -> bool:
    """Return whether the resulting memory has the right words; an update must have changed it."""
    if op.operation == "retire":  # no text is left to judge
        return True
    text = op.content.casefold()
    if not all(words.casefold() in text for words in entry.contains):
        return False
    if any(words.casefold() in text for words in entry.drops):
        return False
    if op.operation == "insert":
        return True
    return op.content != op.before and all(words.casefold() in text for words in entry.keeps)


def _pairing(entry: Expectation, op: Done | None) -> Pairing:
    actual: Operation = op.operation if op else "discard"
    accepted: list[Operation] = list(entry.operation)
    return Pairing(
        # Of several accepted ones that which was chosen, so tables show it as right.
        expected=actual if actual in accepted else accepted[0],
        accepted=accepted,
        actual=actual,
        right_target=op is not None and _on_target(entry, op),
        right_content=op is not None and says_right(entry, op),
    )


def load(path: Path) -> list[Case]:
    """Read a set; an invalid line is an error with its number."""
    cases = read_lines(path, Case)
    if not cases:
        raise BadInput(f"The contradiction set {path} holds no cases.")
    if len({case.id for case in cases}) < len(cases):
        raise BadInput(f"The contradiction set {path} names two cases alike.", "Give each its own id.")
    return cases


def score(case: Case, row: Row) -> CaseScore:
    """Compare the operations in a row of the journal with those that the case expects."""
    done = [Done.model_validate(op) for op in row["done"]]
    return CaseScore(case=case, done=done, failed=row.get("failed", ""), pairings=pair(case.expect, done))


def summarise(scored: Sequence[CaseScore]) -> dict[str, Any]:
    """Return every figure about one system."""
    pairings = [pairing for one in scored for pairing in one.pairings]
    updates = [p for p in pairings if p.expected == p.actual == "update"]
    writes = [p for p in pairings if p.actual in p.accepted and p.actual != "discard" and p.right_target]
    stored = sum(bool(one.done) == bool(one.case.expect) for one in scored)
    return {
        "whole": share(sum(one.right for one in scored), len(scored)),
        "met": share(sum(one.met for one in scored), len(scored)),
        "failed": sum(bool(one.failed) for one in scored),
        "store_or_discard": share(stored, len(scored)),
        "conflicts": _conflicts(scored),
        "target": ratio(sum(p.right_target for p in updates), len(updates)),
        "content": ratio(sum(p.right_content for p in writes), len(writes)),
        "categories": _by_category(scored),
    }


def _conflicts(scored: Sequence[CaseScore]) -> dict[str, Any]:
    """Check each existing memory: changed if it must be, unchanged if it must be.

    Memories that an expectation permits to be updated, but does not oblige to be, count in neither.
    """
    found = touched = spared = untouched = 0
    for one in scored:
        targets = [(e.target, e.operation) for e in one.case.expect if e.target is not None]
        # ["insert", "update"] permits an update without obliging.
        must = {target for target, operation in targets if operation in (["update"], ["retire"])}
        updated = {op.target for op in one.done if op.target is not None}
        others = set(range(len(one.case.memories))) - {target for target, _ in targets}
        found, touched = found + len(must & updated), touched + len(must)
        spared, untouched = spared + len(others - updated), untouched + len(others)
    return {"found": share(found, touched), "left_alone": share(spared, untouched)}


def _by_category(scored: Sequence[CaseScore]) -> dict[str, dict[str, Any]]:
    marks = pd.DataFrame({"of": one.case.category, "right": one.right, "met": one.met} for one in scored)
    return {
        str(category): share(int(own["right"].sum()), len(own)) | {"met": int(own["met"].sum())}
        for category, own in marks.groupby("of", sort=False)
    }


def tables(summaries: Mapping[str, dict[str, Any]]) -> list[Table]:
    """Return the tables that compare the systems."""

    def of_each(figures: Callable[[dict[str, Any]], dict[str, Any]]) -> pd.DataFrame:
        return pd.DataFrame({system: figures(summary) for system, summary in summaries.items()})

    categories = of_each(lambda of: {name: _right_and_met(each) for name, each in of["categories"].items()})
    return [
        framed(
            "Contradiction set: share of cases and of decisions that are right",
            of_each(_decisions).T.rename_axis("system"),
        ),
        framed(
            "Cases wholly right by category; in brackets: all expected done, further inserts let pass",
            categories.rename_axis("category"),
        ),
    ]


def _decisions(summary: dict[str, Any]) -> dict[str, str]:
    return {
        "wholly right": percent(summary["whole"]["share"]),
        "95 %": interval(summary["whole"]),
        "all expected done": percent(summary["met"]["share"]),
        "store or discard": percent(summary["store_or_discard"]["share"]),
        "conflicts found": percent(summary["conflicts"]["found"]["share"]),
        "others left alone": percent(summary["conflicts"]["left_alone"]["share"]),
        "right target": percent(summary["target"]),
        "right words": percent(summary["content"]),
    }


def _right_and_met(of: dict[str, Any]) -> str:
    met = "" if of["right"] == of["met"] else f" ({of['met']})"
    return f"{of['right']}{met} of {of['cases']}"


def as_row(done: Sequence[Done], **more: Any) -> Row:
    """Return operations as a row of the journal."""
    return {"done": [op.model_dump() for op in done], **more}
