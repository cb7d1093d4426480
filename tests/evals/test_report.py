"""Tables of evaluations, made of data frames."""

from collections.abc import Sequence

import pandas as pd
import pytest

from mneme.evals.report import framed


@pytest.mark.parametrize(
    ("names", "columns", "first"),
    [([""], ["", "with", "without"], "drafts"), ([None], ["with", "without"], "1.5")],
)
def test_the_first_column_names_the_rows_where_the_index_has_a_name(
    names: Sequence[str | None], columns: Sequence[str], first: str
) -> None:
    frame = pd.DataFrame({"with": ["1.5"], "without": ["2.5"]}, index=["drafts"]).rename_axis(names)
    made = framed("", frame)
    assert list(made.columns) == columns
    assert made.rows[0][0] == first
