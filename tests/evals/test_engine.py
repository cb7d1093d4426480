"""The comparison of engines: every engine finds what there is to find, and a run can be resumed."""

import random
from pathlib import Path

import numpy as np
import pytest

from mneme.evals.engine import corpus as engine_corpus
from mneme.evals.engine import evaluation
from mneme.evals.engine.engines import ENGINES, EngineName
from tests.doubles.embedding import WordEmbedder


@pytest.fixture
async def corpus(tmp_path: Path, embedder: WordEmbedder) -> Path:
    return await engine_corpus.make(600, embedder, tmp_path)


@pytest.mark.parametrize("engine", ENGINES)
async def test_every_engine_is_measured_and_finds_the_truth(
    engine: EngineName, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "LONGEST", 0.3)
    row = await evaluation.measure_async(engine, corpus)
    assert row["records"] == 600
    assert row["own_n"] >= 1
    assert 0 < row["own_p50_ms"] <= row["own_p95_ms"]
    for kind in ("own_recall", "all_recall"):
        by_more_than_the_cosine = engine in ("ledger, hybrid", "ledger, blend")
        assert (row[kind] is None) if by_more_than_the_cosine else (row[kind] > 0.98)


async def test_beyond_the_real_sentences_vectors_are_moved_a_little(
    tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_corpus, "REAL", 300)
    corpus = engine_corpus.load(await engine_corpus.make(700, embedder, tmp_path))
    assert len(set(corpus.texts)) == 700
    assert np.allclose(np.linalg.norm(corpus.vectors, axis=1), 1, atol=1e-5)
    likeness = (corpus.vectors[300:600] * corpus.vectors[:300]).sum(axis=1)
    assert 0.8 < likeness.min() < likeness.max() < 0.9999
    assert corpus.users.count(engine_corpus.NEIGHBOUR) == engine_corpus.OWN


def test_sentences_are_many_and_different() -> None:
    made = engine_corpus.sentences(5000, random.Random(0))
    assert len(set(made)) == 5000


def test_targets_are_judged_by_the_figures() -> None:
    base = {"own_recall": 1.0, "neighbour_p50_ms": 1.0}
    rows = [
        base | {"engine": "ledger", "records": 1000, "own_p95_ms": 1.0, "insert_s": 1.0},
        base
        | {
            "engine": "ledger",
            "records": 20_000,
            "own_p95_ms": 6.0,
            "insert_s": 1.0,
            "neighbour_p50_ms": 4.0,
        },
        {"engine": "Qdrant Edge", "records": 20_000, "own_p95_ms": 2.0, "insert_s": 0.6},
        {"engine": "Qdrant Edge, same content", "records": 20_000, "own_p95_ms": 2.0, "insert_s": 0.6},
    ]
    assert [reached for _, _, reached in evaluation.against_targets(rows)] == [
        "no",
        "yes",
        "yes",
        "yes",
        "for information",
        "no",
    ]


@pytest.mark.long
async def test_a_run_is_reported_and_resumed(tmp_path: Path, embedder: WordEmbedder) -> None:
    async def open_embedder(spec: str) -> WordEmbedder:
        return embedder

    options = evaluation.Options(out=tmp_path, sizes=[300], engines=["ledger", "numpy"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evaluation, "open_embedder", open_embedder)
        patch.setattr("mneme.evals.report.code_digest", lambda: "this code")  # which may be edited meanwhile
        done: list[str] = []
        first = await evaluation.run(options, lambda number, of, what: done.append(what))
        again = await evaluation.run(options, lambda number, of, what: done.append(what))
    assert done == ["ledger at 300", "numpy at 300"]
    assert first.rows == again.rows
    assert [table.title for table in first.tables][-1] == "Targets"
    assert first.raw.exists()
