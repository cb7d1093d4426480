"""§8's cost table, at sizes that take no time."""

from pathlib import Path

from mneme.evals.learning.consolidation import Options, measure, report
from mneme.evals.report import open_journal
from mneme.stores.ledger.ledger import Ledger


async def test_what_a_consolidation_saves_and_costs(
    edge_ledger: Ledger, tiny_llama: Path, tmp_path: Path
) -> None:
    options = Options(sizes=[60], base=str(tiny_llama), timed=4, out=tmp_path)
    row = await measure(edge_ledger, 60, options)
    assert row["learned"] + row["left"] == row["cards"] == 60
    assert row["left"] < 30 and row["tokens_after"] <= row["tokens_before"]
    assert row["p95_ms_after"] > 0 and row["pair_s"] > 0
    found = report([row], open_journal(tmp_path, "consolidation", {}), options)
    lines = {line[0]: line[3] for line in found.tables[0].rows}
    assert lines["cards retrieved from"] == f"60 → {row['left']}"
    assert "training of all, hours (computed)" in lines
