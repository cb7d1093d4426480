"""The evaluation of damage: what a reader meets, and whether a repair brings everything back."""

from pathlib import Path

import pytest

from mneme.evals.reliability.damage import DAMAGES, Seen, attempt, flipped, make, read, report, zeroed
from mneme.evals.report import Journal


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("whole")


async def before(whole: Path) -> Seen:
    await make(whole, 12)
    return await read(whole)


async def test_damage_is_told_and_repaired(whole: Path) -> None:
    seen = await before(whole)
    same = attempt(whole, "ledger/mneme.json", "removed", seen)
    assert (same["outcome"], same["repaired"]) == ("same", None)
    for file in ("edge_config.json", "versions.journal"):
        row = attempt(whole, f"ledger/generation-000001/{file}", "halved", seen)
        assert (row["outcome"], row["repaired"]) == ("clear error", True), row
    row = attempt(whole, "checkpoints.sqlite", "halved", seen)
    assert (row["outcome"], row["repaired"]) == ("clear error", None)


def test_outcomes_are_counted(tmp_path: Path) -> None:
    rows = [
        {"file": "a", "damage": damage, "outcome": outcome, "said": "", "repaired": repaired}
        for damage in DAMAGES
        for outcome, repaired in (("same", None), ("clear error", True), ("silent loss", None))
    ]
    made = report(rows, Journal(tmp_path / "raw", []))
    assert made.summary["outcomes"] == {"same": 4, "clear error": 4, "uncaught": 0, "silent loss": 4}
    assert made.summary["repaired"] == {"tried": 4, "whole": 4}
    assert len(made.tables[1].rows) == 4


def test_damages_damage(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\0abc\0")
    flipped(file)
    assert file.read_bytes() == b"\0arc\0"
    zeroed(file)
    assert file.read_bytes() == bytes(5)
