"""The table of all evaluations of reliability."""

import shutil
from pathlib import Path

import pytest

from mneme.evals import EVALUATIONS
from mneme.evals.reliability import reliability
from mneme.evals.reliability.reliability import PARTS, Options, Part, run


async def test_each_part_has_a_line_and_one_that_cannot_run_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = PARTS["growth of a chat"]._replace(options={"turns": [1, 3]})
    monkeypatch.setattr(reliability, "PARTS", {"chats": grown, "cuts": PARTS["power cuts"]})
    monkeypatch.setattr(shutil, "which", lambda name: None)
    told = await run(Options(out=tmp_path))
    assert "MB after 3 turns, exponent" in told.summary["chats"]["now"]
    assert told.summary["cuts"]["now"].startswith("not measured: This evaluation compiles")
    again = await run(Options(out=tmp_path))
    assert again.rows == told.rows, "what is done is not done again"


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_each_part_is_an_evaluation_by_itself(part: Part) -> None:
    assert EVALUATIONS[part.module].module.endswith(f".{part.module}")
