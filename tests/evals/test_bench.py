"""The measurement of our own parts, at its smallest sizes."""

from pathlib import Path

import httpx
import pytest

from mneme.evals.bench import bench
from mneme.evals.bench.storage import EMBEDDED, sentences, served, with_vectors
from tests.doubles.embedding import WordEmbedder
from tests.doubles.qdrant_double import QdrantDouble

BESIDE_NOTHING = ("learn", "upkeep", "reply", "remembering", "a message")


@pytest.mark.long
async def test_every_part_has_a_line_and_a_finished_run_is_not_done_again(
    tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def open_embedder(spec: str) -> WordEmbedder:
        return embedder

    monkeypatch.setattr("mneme.evals.options.open_embedder", open_embedder)
    monkeypatch.setattr("mneme.evals.report.code_digest", lambda: "this code")  # may be edited meanwhile
    monkeypatch.setattr("mneme.evals.bench.storage.QUESTION_COUNT", 5)
    options = bench.Options(sizes=[200], messages=2, out=tmp_path)
    made = await bench.run(options)
    assert [table.columns for table in made.tables] == [bench.TABLE_COLUMNS]
    assert len(made.tables[0].rows) == len(made.rows) > 10
    for row in made.rows:
        assert row["median"] > 0 and (row["p95"] is None or row["median"] <= row["p95"])
        assert (row["ratio"] is None) == row["part"].startswith(BESIDE_NOTHING)
    assert any("--qdrant" in note for note in made.notes)
    assert (await bench.run(options)).rows == made.rows


async def test_a_server_is_measured_and_left_as_it_was(embedder: WordEmbedder) -> None:
    with QdrantDouble() as double:
        rows = await served(200, embedder, double.url)
        async with httpx.AsyncClient(base_url=double.url) as client:
            assert (await client.get("/collections")).json()["result"]["collections"] == []
    assert [row["part"] for row in rows] == ["write, server", "search dense, server", "search blend, server"]
    assert all(row["ratio"] > 0 for row in rows)


async def test_beyond_what_is_embedded_vectors_are_moved_a_little(embedder: WordEmbedder) -> None:
    made = sentences(EMBEDDED + 50)
    corpus = await with_vectors(made, ["Who loves jazz?"], embedder)
    assert len({*corpus.texts}) == EMBEDDED + 50
    likeness = (corpus.vectors[EMBEDDED:-1] * corpus.vectors[:50]).sum(axis=1)
    assert 0.8 < likeness.min() < likeness.max() < 0.9999
