"""A study of learning, small."""

from pathlib import Path

import pytest

from mneme.evals.learning.private_sharing import Options, run
from tests.doubles.embedding import WordEmbedder


@pytest.mark.long
async def test_a_small_study_reports_and_a_finished_one_is_not_played_again(
    tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def open_embedder(spec: str) -> WordEmbedder:
        return embedder

    monkeypatch.setattr("mneme.evals.options.open_embedder", open_embedder)
    monkeypatch.setattr("mneme.evals.report.code_digest", lambda: "this code")  # may be edited meanwhile
    small = {"learned": 2, "tried": 1, "epsilons": [1.0], "repeats": 2, "rows": 500}
    given = Options(agents="rules", out=tmp_path, **small)
    made = await run(given)
    assert made.answered_by == "rules" and made.plots[0].exists()
    assert all(table.rows for table in made.tables) and len(made.tables) >= 2
    assert (await run(given)).rows == made.rows
    assert {each["saved"] for each in made.summary["arms"] if each["arm"] == "nothing"} == {0.0}
