"""The evaluation of a deployment: what a message costs, and what records take."""

from pathlib import Path

import pytest

from mneme.evals.deployment import evaluation
from mneme.evals.deployment.evaluation import MILLION, Options, at_a_million, run
from tests.doubles.embedding import WordEmbedder
from tests.doubles.qdrant_server import BINARY


@pytest.mark.long
async def test_a_message_and_records_are_measured(
    tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def open_embedder(spec: str) -> WordEmbedder:
        return embedder

    monkeypatch.setattr(evaluation, "open_embedder", open_embedder)
    monkeypatch.setattr(
        "mneme.evals.report.code_digest", lambda: "this code"
    )  # which may be edited meanwhile
    options = Options(messages=4, sizes=[20], qdrant=BINARY, out=tmp_path)
    made = await run(options)
    message, *records = made.rows
    assert message["calls"] >= 2 and message["prompt_tokens"] > 500
    assert message["cpu_seconds"] > 0 and message["bytes"]["ledger's log"] > 100
    places = ["embedded", *["Qdrant server"] * bool(BINARY)]
    assert [row["place"] for row in records] == places
    for row in records:
        assert row["disk"] > 0 and row["write_s"] > 0 and row["load_s"] > 0
    assert any("MNEME_TEST_QDRANT_BINARY" in note for note in made.notes) == (not BINARY)
    again = await run(options)
    assert again.rows == made.rows, "a finished run is not done again"


def test_a_million_goes_on_as_the_two_largest_sizes_do() -> None:
    rows = [{"place": "embedded", "records": n, "disk": 500 + 10 * n} for n in (1, 1000, 2000)]
    assert at_a_million(rows, "embedded", "disk") == 500 + 10 * MILLION
    assert at_a_million(rows[:1], "embedded", "disk") is None
