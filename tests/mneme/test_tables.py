"""Tables in a narrow terminal: no word is broken, and nothing is left out."""

from io import StringIO

import pytest
from rich.console import Console

from mneme.cli.tables import Table

COLUMNS = ["id", "status", "claim", "score", "similarity", "confidence", "recency", "success"]
CLAIM = "Composite indexes beat single-column indexes where both columns are filtered"
ROWS = [
    ["kc-2f81ab93d0c4", "provisional", CLAIM, "0.713", "0.622", "0.850", "0.999", "0.500"],
    ["kc-9de1", "verified", "[bold]Not markup[/]", "0.1", "0.2", "0.3", "0.4", "0.5"],
]


def printed(table: Table, width: int) -> str:
    text = StringIO()
    Console(file=text, width=width).print(table)
    return text.getvalue()


@pytest.mark.parametrize("width", [160, 80, 60, 44])
def test_every_word_is_whole_and_no_line_too_long(width: int) -> None:
    text = printed(Table("Cards", COLUMNS, ROWS), width)
    assert max(map(len, text.splitlines())) <= width
    words = text.split()
    for cell in (*COLUMNS, *(cell for row in ROWS for cell in row)):
        assert all(word in words for word in cell.split())


def test_columns_that_do_not_fit_stand_below_beside_the_first() -> None:
    text = printed(Table("Cards", COLUMNS, ROWS), 44)
    assert text.count("kc-2f81ab93d0c4") > 1
    assert text.count("Cards") == 1
    assert printed(Table("Cards", COLUMNS, ROWS), 200).count("kc-2f81ab93d0c4") == 1


def test_a_word_longer_than_half_the_terminal_is_folded_and_complete() -> None:
    path = "/home/ann/" + "x" * 60
    text = printed(Table("", ["what", "where"], [["ledger", path]]), 60)
    assert "".join(line[6:].strip() for line in text.splitlines()[2:]) == path


def test_a_table_without_rows_shows_its_columns() -> None:
    assert "status" in printed(Table("", COLUMNS, []), 80)
