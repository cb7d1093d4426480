"""Table 1 of the paper (§3.2): its six tests over two sessions, beside what happens today.

What is right follows the paper where it succeeded, and its own §4.2 where it did not: test 4's "his
sister" is the user's, and test 6 appends the age instead of replacing the memory. Test 5 is right where
nothing is stored and the reply in session 2 says what was stored in session 1.
"""

from collections.abc import Sequence

from pydantic import BaseModel

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


TESTS = [
    Test(
        name="1 Empty Insertion",
        session=1,
        message="My dog Max is a golden retriever. He loves playing fetch.",
        paper="Insert",
        database="Max, a golden retriever, loves playing fetch.",
        expect=[Expected(operation=["insert"], contains=["Max", "golden retriever", "fetch"])],
    ),
    Test(
        name="2 Update 1",
        session=1,
        message="Actually, Max is a Labrador mix, not a purebred.",
        paper="Update",
        database="Max, a golden retriever, loves playing fetch. => Max, a Labrador mix, loves playing fetch.",
        expect=[
            Expected(
                operation=["update"],
                target=0,
                contains=["Labrador mix"],
                keeps=["Max", "fetch"],
                drops=["golden retriever"],
            )
        ],
    ),
    Test(
        name="3 Non-empty Insertion 1",
        session=1,
        message="Max gets anxious during thunderstorms.",
        paper="Insert",
        database="Max gets anxious during thunderstorms.",
        expect=[Expected(operation=["insert"], contains=["Max", "anxious", "thunderstorms"])],
    ),
    Test(
        name="4 Non-empty Insertion 2",
        session=1,
        message="Max lives with my sister Emily in Portland.",
        paper="Insert",
        database="Max lives with his sister Emily in Portland.",
        expect=[
            Expected(
                operation=["insert"],
                contains=["Max", "user's sister", "Emily", "Portland"],
                drops=["his sister", "my sister"],
            )
        ],
    ),
    Test(
        name="5 Cross-session Memory Recall",
        session=2,
        message="What do we know about Max?",
        paper="Discard",
        database="",
        expect=[],
        recalls=["Labrador", "fetch", "thunderstorm", "Emily", "Portland"],
    ),
    Test(
        name="6 Update 2",
        session=2,
        message="Max is now 5 years old.",
        paper="Update",
        database="Max, a Labrador mix, loves playing fetch. => Max is now 5 years old.",
        expect=[
            Expected(
                operation=["update"],
                target=0,
                contains=["5"],
                keeps=["Max", "Labrador mix", "fetch"],
            )
        ],
    ),
]


def is_right(test: Test, row: Row) -> bool:
    """Say whether a test led to what is right: the operation, its target, its words, and what is recalled."""
    done = [Done.model_validate(op) for op in row["done"]]
    stored = not row["failed"] and all(pairing.right for pairing in pair(test.expect, done))
    return stored and all(word.casefold() in row["reply"].casefold() for word in test.recalls)


def show(title: str, rows: Sequence[Row]) -> Table:
    """Show what happened in each test beside what the paper reports."""
    columns = [
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
    cells = [_cells(test, row) for test, row in zip(TESTS, rows, strict=True)]
    return table(title, columns, cells, figures=False, lines=True)


def _cells(test: Test, row: Row) -> list[str]:
    return [
        f"{test.name} (session {test.session})",
        test.message,
        test.paper,
        test.database or "–",
        " + ".join(op["event"].title() for op in row["done"]) or "Discard",
        row["failed"] or _why(row),
        _listed(row["before"]),
        _listed(row["after"]),
        row["reply"] if test.recalls else "–",
        "yes" if is_right(test, row) else "no",
    ]


def _why(row: Row) -> str:
    return " ".join(dict.fromkeys(op["reason"] for op in row["operations"])) or str(row["rationale"])


def _listed(memories: Sequence[str]) -> str:
    return "\n".join(f"- {memory}" for memory in memories) or "(empty)"
