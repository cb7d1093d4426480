"""The measurement of a training step runs, at a small size, and reports what it saw."""

from pathlib import Path

import numpy as np
import pytest

from mneme.core.settings import settings
from mneme.evals.engine import corpus as engine_corpus
from mneme.evals.report import open_journal
from mneme.evals.sharing import retriever_speed
from tests.doubles.embedding import WordEmbedder


@pytest.mark.long
async def test_a_step_is_measured_beside_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    monkeypatch.setattr(retriever_speed, "WARM", 2)
    monkeypatch.setattr(retriever_speed, "STEPS", 2)
    embedder = WordEmbedder()
    corpus = engine_corpus.load(await engine_corpus.make(160, embedder, tmp_path))
    row = await retriever_speed.measure(corpus, embedder)
    settings.cache_clear()
    assert row["memories"] == 160 and len(row["steps"]) == 2
    assert all(each["train_s"] > 0 for each in row["steps"]), "each step trained"
    assert np.isfinite([row["step_s"], row["question_alone_ms"], row["question_beside_ms"]]).all()
    journal = open_journal(tmp_path, "retriever_speed", {})
    told = retriever_speed.report([row], journal, embedder.name)
    assert told.summary["160"]["step_s"] == row["step_s"]
    assert len(told.tables[0].rows) == 1
