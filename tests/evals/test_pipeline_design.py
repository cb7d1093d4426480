"""The case study's evaluation: what is counted, and what is reported."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from mneme.core.errors import BadAnswer, BadInput
from mneme.evals.discussion import pipeline_design
from mneme.evals.discussion.judges import SCORES, Design, Judgement, Scored, judge_design
from mneme.evals.discussion.pipeline_design import summarise
from mneme.models.asking.asking import ask
from tests.doubles.scripts import script

GOOD = {
    "name": "Ingestion (Kinesis)",
    "pros": "scales; durable",
    "cons": "each shard costs",
    "design": "one stream a source",
    "details": "partition by device",
}


def design(*components: dict[str, str]) -> Design:
    file = {"Platform": "AWS", **{f"Component {n}": each for n, each in enumerate(components, start=1)}}
    return Design(document=json.dumps(file))


def test_the_head_of_the_report_is_the_teams_own_size() -> None:
    assert pipeline_design.Options().context_tokens == 0
    with pytest.raises(BadInput, match="512 are the least"):
        _ = pipeline_design.Options(context_tokens=100).sized


async def test_a_judgement_without_a_justification_is_refused() -> None:
    bare = {metric: Scored(justification="so", score=3) for metric in SCORES}
    script("curt", {"judge_design": [Judgement(**bare | {"usability": Scored(justification=" ", score=3)})]})
    with pytest.raises(BadAnswer, match="usability has no justification"):
        await ask(judge_design, design(GOOD), "scripted:curt")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.mark.long
async def test_table_2_stands_beside_the_papers_and_resumes(out: Path) -> None:
    options = pipeline_design.Options(agents="rules", quick=True, out=out, context_tokens=2048)
    report = await pipeline_design.run(options)
    assert report.answered_by == "rules" and report.plots[0].exists()
    main = report.summary["wordings"]["ours"]
    assert report.summary["context_tokens"] == 2048
    assert {"tokens", "turns", "components", "agreed"} <= set(main)
    assert main["components"]["none"]["mean"] > 0
    assert all(0 <= figure["p"] <= 1 for figure in main.values())
    printed = Console(width=80, record=True, file=io.StringIO())
    printed.print(report.tables[0])
    assert "parts of each " in printed.export_text()
    assert any("rules judge no design" in note for note in report.notes)
    assert any("Answered by rules" in note for note in report.notes)
    assert all(row["transcript"][0]["context_tokens"] <= 2048 for row in report.rows)
    seen: list[str] = []
    again = await pipeline_design.run(options, lambda done, of, what: seen.append(what))
    assert again.summary == report.summary and seen == [], "nothing is held again"


async def test_runs_differ_in_who_speaks_first_and_arms_do_not(out: Path) -> None:
    report = await pipeline_design.run(
        pipeline_design.Options(agents="rules", quick=True, out=out, context_tokens=2048)
    )
    orders = {
        (row["arm"], row["seed"]): [turn["speaker"] for turn in row["transcript"][:8]] for row in report.rows
    }
    assert orders["none", 0] == orders["intrinsic", 0] != orders["none", 1] == orders["intrinsic", 1]


def test_a_difference_is_tested_by_ranks() -> None:
    rows = [
        {
            "arm": arm,
            "tokens": base + n,
            "turns": 5,
            "ended": "consensus",
            "document": {"Component 1": {"name": "a", "pros": "b"}},
            "judgement": {metric: {"score": 3} for metric in SCORES},
        }
        for arm, base in (("none", 100), ("intrinsic", 200))
        for n in range(10)
    ]
    figures = summarise(rows, ["pros"])
    assert figures["tokens"]["p"] < 0.001 and figures["turns"]["p"] == 1.0
