"""§8's cost table, and the cadence of consolidations, at sizes that take no time."""

from pathlib import Path

import pytest

from mneme.evals.learning import cadence
from mneme.evals.learning.consolidation import Options, measure, report
from mneme.evals.report import open_journal
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ollama import Model
from tests.doubles.served import served


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


@pytest.mark.long
async def test_a_stream_of_tasks_is_consolidated_at_every_cadence(
    tiny_llama: Path, tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def open_embedder(spec: str) -> WordEmbedder:
        return embedder

    monkeypatch.setattr("mneme.evals.options.open_embedder", open_embedder)
    options = cadence.Options(
        base=str(tiny_llama), ollama="tiny", tasks=20, every=[10], lessons=3, epochs=1, out=tmp_path
    )
    model = Model("tiny", capabilities=("completion",))
    with served(monkeypatch, model, brain=lambda body: "I do not know."):
        found = (await cadence.run(options)).summary
        again = (await cadence.run(options)).summary
    assert [each["at"] for each in found["consolidations"]] == [10, 20]
    assert all(each["pairs"] > 0 and each["MB"] > 0 for each in found["consolidations"])
    often, never = found["tasks"]
    assert (often["every"], never["every"]) == (10, 0) and never["card_tokens"] > 0
    assert again == found
