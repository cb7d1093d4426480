"""The measurement of very many cards: on few of them, for what it reports."""

from pathlib import Path

import pytest

from mneme.evals.learning import card_corpus, cards_scale
from tests.doubles.embedding import WordEmbedder


@pytest.mark.long
async def test_flat_and_clustered_retrieval_are_measured_beside_plain_search(
    tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards_scale, "PROBED", (1, 32))
    corpus = await card_corpus.make(400, embedder, tmp_path, 400)
    row = await cards_scale.measure(corpus)
    assert row["cards"] == 400
    assert 0 < row["raw_p50_ms"] <= row["raw_p95_ms"]
    assert 0 < row["cards_p50_ms"] <= row["cards_p95_ms"]
    assert 0 < row["cards_cpu_p50_ms"] <= row["cards_cpu_p95_ms"]
    assert 0.3 < row["agreement"] <= 1
    one, all_ = row["probed"]
    assert one["recall"] < all_["recall"] == 1.0  # 20 clusters: with 32 probed, the flat answer


def test_the_target_is_judged_where_it_is_set() -> None:
    rows = [{"cards": 1_000, "cards_p95_ms": 99.0}, {"cards": 20_000, "cards_p95_ms": 10.0}]
    assert [reached for _, _, reached in cards_scale.against_targets(rows)] == ["no"]
    rows[1]["cards_p95_ms"] = 9.9
    assert [reached for _, _, reached in cards_scale.against_targets(rows)] == ["yes"]
