"""Fits of learning curves, the test of transfer, the arithmetic of cadences, on data with known answers."""

from pathlib import Path

import numpy as np
import pytest

from mneme.evals.learning.cadence import Options, report
from mneme.evals.learning.fitting import fit_all, weights
from mneme.evals.learning.transfer import correlation
from mneme.evals.report import open_journal


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


def test_a_quarter_is_computed_from_what_was_measured(tmp_path: Path) -> None:
    def row(every: int) -> dict[str, object]:
        tasks = [
            {
                "serving": bool(every) and n > every,
                "ms": 2.0,
                "tokens": 50.0 if every and n > every else 100.0,
            }
            | {"proven": round(2 * n**0.5)}
            for n in range(1, 101)
        ]
        done = [
            {"promoted": True, "why": "", "seconds": 9.0, "cpu_seconds": 3 + 0.5 * pairs, "pairs": pairs}
            | {"training_seconds": 0.5 * pairs, "learned": pairs // 2, "bytes": 10}
            for pairs in ([20, 40] if every else [])
        ]
        return {"every": every, "tasks": tasks, "consolidations": done, "verified": 20}

    journal = open_journal(tmp_path, "cadence", {})
    model = report([row(50), row(0)], journal, Options()).summary["model"]
    assert model["pair_s"] == pytest.approx(0.5) and model["fixed_s"] == pytest.approx(3)
    assert model["growth"] == pytest.approx(0.5, abs=0.05) and model["pairs_a_card"] == pytest.approx(2)
    assert (model["tokens_before"], model["tokens_after"]) == (100, 50)
    quarter = report([row(50), row(0)], journal, Options(monthly=640)).summary["computed"]
    assert [each["times"] for each in quarter] == [64, 16, 8, 4, 2, 1]
    assert quarter[-1]["tokens"] == 1920 * 100 and quarter[0]["hours"] > quarter[-1]["hours"]
