"""Table 1 of the paper (§3.2): its six tests over two sessions, beside what happens today.

What is right follows the paper where it succeeded, and its own §4.2 where it did not: test 4's "his
sister" is the user's, and test 6 appends the age instead of replacing the memory. Test 5 is right where
nothing is stored and the reply in session 2 says what was stored in session 1.
"""

from collections.abc import Sequence
from pathlib import Path

import yaml
from pydantic import BaseModel, TypeAdapter

from mneme.cli.tables import Table
from mneme.evals.report import Row, table
from mneme.evals.scoring import Done, Expected, pair


class Test(BaseModel):
    """One row of the paper's table: what was said, what the paper's system did, what is right.

    `recalls` are words that the reply must have.
    """

    name: str
    session: int
    message: str
    paper: str
    database: str
    expect: list[Expected]
    recalls: list[str] = []


DATA = Path(__file__).parent / "data" / "table_1.yaml"
TESTS = TypeAdapter(list[Test]).validate_python(yaml.safe_load(DATA.read_text(encoding="utf-8")))
HEADS = [
    "test",
    "message",
    "paper",
    "paper's database",
    "today",
    "why",
    "before",
    "after",
    "reply",
    "right",
]


def is_right(test: Test, row: Row) -> bool:
    """Say whether a test led to what is right: the operation, its target, its words, and what is recalled."""
    done = [Done.model_validate(op) for op in row["done"]]
    stored = not row["failed"] and all(pairing.right for pairing in pair(test.expect, done))
    return stored and all(word.casefold() in row["reply"].casefold() for word in test.recalls)


def show(title: str, rows: Sequence[Row]) -> Table:
    """Show what happened in each test beside what the paper reports."""
    cells = [_cells(test, row) for test, row in zip(TESTS, rows, strict=True)]
    return table(title, HEADS, cells, figures=False, lines=True)


def _cells(test: Test, row: Row) -> list[str]:
    why = " ".join(dict.fromkeys(op["reason"] for op in row["operations"])) or str(row["rationale"])
    return [
        f"{test.name} (session {test.session})",
        test.message,
        test.paper,
        test.database or "–",
        " + ".join(op["operation"].title() for op in row["done"]) or "Discard",
        row["failed"] or why,
        _listed(row["before"]),
        _listed(row["after"]),
        row["reply"] if test.recalls else "–",
        "yes" if is_right(test, row) else "no",
    ]


def _listed(memories: Sequence[str]) -> str:
    return "\n".join(f"- {memory}" for memory in memories) or "(empty)"
