"""Studies of learning: the test of transfer on data with known answers, and small runs."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mneme.evals.learning import private_sharing, transfer
from mneme.evals.learning.studies import StudyOptions
from mneme.evals.learning.transfer import correlation
from tests.doubles.embedding import WordEmbedder


def test_similarity_foretells_a_gain_only_where_it_does() -> None:
    dice = np.random.default_rng(1)
    similar = dice.random((8, 8))
    told = correlation(similar, similar**2)
    assert told["rho"] == pytest.approx(1) and told["p_families"] < 0.01 and told["pairs"] == 56
    assert correlation(similar, dice.random((8, 8)))["p_families"] > 0.05
    assert correlation(similar, np.zeros((8, 8)))["rho"] is None
    similar[3] = np.nan
    assert correlation(similar, dice.random((8, 8)))["pairs"] == 42, "a family without cards is left out"


SMALL = {
    transfer: transfer.Options(families=["join", "top_k", "time_range"], learned=1, tried=1),
    private_sharing: private_sharing.Options(learned=2, tried=1, epsilons=[1.0], repeats=2),
}


@pytest.mark.long
@pytest.mark.parametrize("study", SMALL, ids=lambda study: study.__name__.rpartition(".")[2])
async def test_a_small_study_reports_and_a_finished_one_is_not_played_again(
    study: ModuleType, tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def open_embedder(spec: str) -> WordEmbedder:
        return embedder

    monkeypatch.setattr("mneme.evals.options.open_embedder", open_embedder)
    monkeypatch.setattr("mneme.evals.report.code_digest", lambda: "this code")  # may be edited meanwhile
    given: StudyOptions = SMALL[study].model_copy(update={"agents": "rules", "rows": 500, "out": tmp_path})
    made = await study.run(given)
    assert made.answered_by == "rules" and made.plots[0].exists()
    assert all(table.rows for table in made.tables) and len(made.tables) >= 2
    assert (await study.run(given)).rows == made.rows
