"""The evaluation of commands beside one another: what became of them, and whether anything is lost."""

from pathlib import Path

import pytest

from mneme.evals.reliability.queueing import KINDS, Options, Place, report
from mneme.evals.report import Journal


@pytest.mark.long
async def test_what_is_lost_is_noticed(tmp_path: Path) -> None:
    place = Place(tmp_path, wait=30)
    await place.prepare()
    assert [(await place.run(kind, number)).error for number, kind in enumerate(("import", "list"))] == [
        "",
        "",
    ]
    assert await place.without_memories([0, 7]) == [7]


def test_commands_are_counted(tmp_path: Path) -> None:
    def row(width: int, seconds: float, error: str) -> dict[str, object]:
        done = [{"kind": kind, "error": "", "seconds": seconds} for kind in KINDS]
        done[-1]["error"] = error
        return {"width": width, "done": done, "written": 3, "missing": [5] if error else []}

    rows = [row(1, 2.0, ""), row(8, 5.0, "LedgerInUse")]
    (counted,) = report(rows, Journal(tmp_path / "raw", []), Options()).summary["widths"]
    assert (counted["succeeded"], counted["why"], counted["lost"]) == (7, "1 LedgerInUse", 1)
    assert (counted["median_wait"], counted["longest_wait"]) == (3.0, 3.0)
