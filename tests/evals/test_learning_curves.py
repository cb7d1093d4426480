"""Studies of learning: fits and the test of transfer on data with known answers, and small runs."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from mneme.evals.learning import learning_curve, private_sharing, transfer
from mneme.evals.learning.learning_curve import fit_all, weights
from mneme.evals.learning.studies import StudyOptions
from mneme.evals.learning.transfer import correlation
from tests.doubles.embedding import WordEmbedder


def test_the_shape_that_made_the_data_fits_best_and_noise_is_no_learning() -> None:
    dice, n = np.random.default_rng(0), np.arange(1, 401, dtype=float)
    made = {
        "constant": np.full(400, 2.0),
        "power law": 4 * n**-0.5,
        "exponential": 4 * np.exp(-n / 120),
        "ceiling": 1 + 3 * np.exp(-n / 40),
    }
    for shape, curve in made.items():
        fits = fit_all(n, curve + dice.normal(0, 0.2, 400), "normal")
        near = {fit.shape for fit in fits if fit.aic < fits[0].aic + 2}
        assert shape in near, [(fit.shape, fit.aic) for fit in fits]
        assert shape == "constant" or near <= {shape, "ceiling"}, "a ceiling holds an exponential"
        assert sum(weights(fits)) == pytest.approx(1)
    assert fit_all(n[:10], made["ceiling"][:10], "normal"), "few tasks have shorter spans to begin with"
    best = fit_all(n, made["ceiling"] * dice.lognormal(0, 0.1, 400), "lognormal")[0]
    assert best.shape == "ceiling" and best.figures["t"] == pytest.approx(40, rel=0.2)
    failing = (dice.random(400) < 0.1 + 0.8 * np.exp(-n / 30)).astype(float)
    yes = fit_all(n, failing, "binomial")
    assert yes[0].shape == "ceiling" and yes[0].figures["c"] == pytest.approx(0.1, abs=0.05)
    assert all(fit.at(n).min() >= 0 and fit.at(n).max() <= 1 + 1e-6 for fit in yes)
    assert fit_all(n, (dice.random(400) < 0.3).astype(float), "binomial")[0].shape == "constant"


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
    learning_curve: learning_curve.Options(tasks=20),
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
