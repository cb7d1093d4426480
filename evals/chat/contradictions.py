"""The contradiction set: labelled messages upon memories, each run through a memory agent's graph.

A case is one JSON line: `id`, `category`, `preceding` turns, `memories` that are there beforehand,
the `message`, and what to `expect` (see `scoring.Expected`; nothing means discard). What was done is
read from the ledger, not from the agent's own report.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, model_validator

from mneme.cli.tables import Table
from mneme.core.errors import BadInput
from mneme.evals.report import Row, framed, read_lines
from mneme.evals.scoring import Done, Expected, Pairing, interval, pair, percent, ratio, share

DEFAULT = Path(__file__).parent / "data" / "contradictions.jsonl"


class Case(BaseModel):
    """One labelled message."""

    model_config = ConfigDict(extra="forbid")

    id: str
    category: str
    preceding: list[str] = []
    memories: list[str]
    message: str = Field(min_length=1)
    expect: list[Expected]

    @model_validator(mode="after")
    def _targets_exist(self) -> "Case":
        for entry in self.expect:
            if entry.target is not None and entry.target >= len(self.memories):
                raise ValueError(f"target {entry.target} is not among {len(self.memories)} memories")
        return self


class Scored(BaseModel):
    """What one system did with one case, and how that compares."""

    case: Case
    done: list[Done]
    failed: str = ""
    pairings: list[Pairing]

    @property
    def right(self) -> bool:
        """Say whether everything is as expected: every operation, target and word, and nothing more."""
        return not self.failed and all(pairing.right for pairing in self.pairings)

    @property
    def met(self) -> bool:
        """Say whether everything expected was done; further inserts pass where something is to be stored.

        A set names what must be remembered of a message, not always all that may be.
        """
        wrong = [pairing for pairing in self.pairings if not pairing.right]
        further = all(pairing.expected == "discard" and pairing.actual == "insert" for pairing in wrong)
        return self.right or (bool(self.case.expect) and not self.failed and further)


def load(path: Path) -> list[Case]:
    """Read a set; a line that is no case is an error that names the line."""
    cases = read_lines(path, Case)
    if not cases:
        raise BadInput(f"The contradiction set {path} holds no cases.")
    if len({case.id for case in cases}) < len(cases):
        raise BadInput(f"The contradiction set {path} names two cases alike.", "Give each its own id.")
    return cases


def score(case: Case, row: Row) -> Scored:
    """Compare what the journal says was done with what the case expects."""
    done = [Done.model_validate(op) for op in row["done"]]
    return Scored(case=case, done=done, failed=row.get("failed", ""), pairings=pair(case.expect, done))


def summarise(scored: Sequence[Scored]) -> dict[str, Any]:
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


def _conflicts(scored: Sequence[Scored]) -> dict[str, Any]:
    """Look at every memory that was there: touched where it must be, left alone where it must be.

    Memories that an expectation permits to be updated, but does not oblige to be, count in neither.
    """
    found = touched = spared = untouched = 0
    for one in scored:
        targets = [(e.target, e.operation) for e in one.case.expect if e.target is not None]
        must = {target for target, operation in targets if operation in (["update"], ["retire"])}
        updated = {op.target for op in one.done if op.target is not None}
        others = set(range(len(one.case.memories))) - {target for target, _ in targets}
        found, touched = found + len(must & updated), touched + len(must)
        spared, untouched = spared + len(others - updated), untouched + len(others)
    return {"found": share(found, touched), "left_alone": share(spared, untouched)}


def _by_category(scored: Sequence[Scored]) -> dict[str, dict[str, Any]]:
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
    """Make a journal row of what was done."""
    return {"done": [op.model_dump() for op in done], **more}
