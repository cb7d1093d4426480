"""Compound learning with cards and without, small."""

from pathlib import Path

import pytest

from mneme.evals.learning.compound_learning import Options, run
from tests.doubles.embedding import WordEmbedder


@pytest.mark.long
async def test_a_short_run_reports_both_teams_and_a_finished_one_is_not_played_again(
    tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def open_embedder(spec: str) -> WordEmbedder:
        return embedder

    monkeypatch.setattr("mneme.evals.options.open_embedder", open_embedder)
    monkeypatch.setattr("mneme.evals.report.code_digest", lambda: "this code")  # may be edited meanwhile
    given = Options(agents="rules", out=tmp_path, quick=True, without_rivals=True)
    made = await run(given)
    assert made.answered_by == "rules" and made.plots[0].exists()
    assert all(table.rows for table in made.tables) and len(made.tables) == 9
    compared = made.summary["compared"]["all"]["without memory"]["iterations"]
    assert compared["ours"] < compared["theirs"], "cards spare drafts"
    assert (await run(given)).rows == made.rows
