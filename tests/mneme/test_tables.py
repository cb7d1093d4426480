"""Tables in a narrow terminal: no word is broken, and nothing is left out; there they are cards."""

from io import StringIO

import pytest
from rich.console import Console

from mneme.api.tables import Table

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


def test_a_heading_of_two_words_stands_on_one_line_where_there_is_room() -> None:
    assert "at least  outcome" in printed(Table("", ["at least", "outcome"], [["23", "done"]]), 40)


def test_a_row_that_does_not_fit_is_a_card() -> None:
    rows = [*ROWS, ["kc-0", "", "Short", *[""] * 5]]
    text = printed(Table("Cards", COLUMNS, rows), 60)
    title, *cards = text.split("\n\n")
    assert title.startswith("Cards") and len([title, *cards]) == len(rows)
    for card, row in zip([title.partition("\n")[2], *cards], rows, strict=True):
        named = [line.split()[0] for line in card.splitlines() if not line.startswith(" ")]
        assert named == [name for name, cell in zip(COLUMNS, row, strict=True) if cell], "none that is empty"


def test_figures_that_do_not_fit_stand_below_beside_the_first() -> None:
    text = printed(Table("Cards", COLUMNS, ROWS, figures=True), 44)
    assert text.count("kc-2f81ab93d0c4") > 1
    assert text.count("Cards") == 1
    assert printed(Table("Cards", COLUMNS, ROWS, figures=True), 200).count("kc-2f81ab93d0c4") == 1


def test_a_word_longer_than_half_the_terminal_is_folded_and_complete() -> None:
    path = "/home/ann/" + "x" * 60
    text = printed(Table("", ["what", "where"], [["ledger", path]]), 60)
    assert "".join(line[6:].strip() for line in text.splitlines()[2:]) == path


def test_a_table_without_rows_shows_its_columns() -> None:
    assert "status" in printed(Table("", COLUMNS, []), 80)
