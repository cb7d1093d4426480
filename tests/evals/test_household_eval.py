"""The household evaluation: its figures by hand, and a small run from the command line, resumed."""

import json
from os import environ
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from mneme.cli.main import app
from mneme.core.errors import BadInput
from mneme.evals.household import evaluation
from mneme.evals.household.arms import CATEGORIES, TABLE_1, Arm, Plan, table_arms
from mneme.evals.household.evaluation import Options
from mneme.evals.household.tables import AVERAGE, Results, mean_of
from mneme.evals.report import Report

ROOT = Path(__file__).parents[2]
DATA = Path(environ.get("MNEME_DATA", ROOT.parent / "shared" / "data")) / "cwah"
MITA, COELA = Arm("MiTa", 2), Arm("CoELA", 2)


def row(arm: Arm, episode: str, steps: int, category: str = "Prepare Tea") -> dict[str, Any]:
    figures = {"steps": steps, "bound": 10, "success": True, "messages": 1}
    return {"arm": arm.key, "agents": arm.agents, "episode": episode, "category": category, **figures}


def test_an_interval_is_students() -> None:
    mean = mean_of([10, 12, 14])
    assert mean.value == 12
    assert mean.half == pytest.approx(4.303 * 2 / 3**0.5, abs=0.01)
    assert str(mean_of([7])) == "7.0"
    assert f"{mean_of([7]):+.1f}" == "+7.0"
    assert f"{mean_of([10, 12, 14]):+.1f}" == "+12.0 ±5.0"


def test_efficiency_improvement_is_over_the_greater_value() -> None:
    alone = Arm("MHP", 1)
    results = Results([row(alone, "a", 100), row(MITA, "a", 40), row(COELA, "a", 125)])
    assert results.improvement(MITA, alone) == pytest.approx(0.6)
    assert results.improvement(COELA, alone) == pytest.approx(-0.2)


def test_a_pair_is_compared_over_the_episodes_that_both_played() -> None:
    mine = [row(MITA, "a", 20), row(MITA, "b", 30), row(MITA, "c", 40), row(MITA, "only mine", 1)]
    theirs = [row(COELA, "a", 25), row(COELA, "b", 30), row(COELA, "c", 38)]
    gap = Results([*mine, *theirs]).difference(MITA, COELA)
    assert gap is not None
    assert gap.mean.value == pytest.approx(-1)
    assert (gap.ahead, gap.behind) == (1, 1)


def test_many_small_gains_are_significant_by_the_paired_test() -> None:
    gaps = [-1, -2, -1, -3, -1, -2, -1, -90, -1, -2]
    rows = [row(MITA, str(n), 100 + gap) for n, gap in enumerate(gaps)]
    gap = Results([*rows, *(row(COELA, str(n), 100) for n in range(10))]).difference(MITA, COELA)
    assert gap is not None
    assert abs(gap.mean.value) < gap.mean.half
    assert gap.p is not None and gap.p < 0.05


def test_the_average_is_over_all_episodes() -> None:
    rows = [row(MITA, "a", 20), row(MITA, "b", 40, "Wash Dishes")]
    steps = Results(rows).steps(MITA, AVERAGE)
    assert steps is not None
    assert steps.value == 30
    assert Results(rows).steps(MITA, "Set up Table") is None


def test_the_papers_cells_average_to_its_last_column() -> None:
    for method, agents in (("MHP", 1), ("LLM", 1), ("CoELA", 3), ("ProAgent", 2), ("MiTa", 3)):
        cells, average = TABLE_1[method, agents]
        assert sum(cells) / len(CATEGORIES) == pytest.approx(average, abs=0.15)


def test_the_lineup_is_that_of_the_papers_tables() -> None:
    arms = table_arms([3, 1], ["MHP", "CoELA", "MiTa", "LLM"], "rules", "rules")
    plan = Plan(arms, [], [])
    assert [(arm.agents, arm.name) for arm in plan.main] == [
        (1, "MHP"), (1, "LLM"), (3, "MHP"), (3, "CoELA"), (3, "MiTa")
    ]  # fmt: skip
    assert [arm.name for arm in plan.ablations] == ["w/o allocation", "w/o summary"]
    assert len({arm.key for arm in plan.every}) == len(plan.every)
    assert plan.mita == Arm("MiTa", 3)


SMALL: tuple[str, ...] = ("--agents", "rules", "--episodes", "1", "--members", "2")
SMALL += ("--method", "CoELA", "--method", "MiTa")


def command(out: Path, jobs: str) -> dict[str, Any]:
    """Run the evaluation from the command line, in so many processes."""
    done = CliRunner().invoke(app, ["eval", "household", "--json", "--out", str(out), "--jobs", jobs, *SMALL])
    assert done.exit_code == 0, done.output
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


@pytest.mark.long
def test_a_small_run_makes_every_table_and_plot_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "CATEGORIES", ("Set up Table",))
    first = command(tmp_path, jobs="1")
    arms = first["summary"]["arms"]
    assert arms["CoELA, 2, rules"]["cells"]["Average"]["episodes"] == 1
    assert arms["MiTa, 2, rules"]["over_bound"] >= 1
    assert all(Path(plot).stat().st_size > 10_000 for plot in first["plots"])
    assert {"lost_steps", "forestalled"} <= set(arms["CoELA, 2, rules"])
    assert {"MiTa, 2, rules, lapses 0.0/0.3"} <= set(arms)
    kept = [json.loads(line) for line in Path(first["raw"]).read_text().splitlines()[1:]]
    (run, *others) = [tmp_path / row["run"] for row in kept if "run" in row]
    assert others and all(each.is_file() for each in others)
    beside = CliRunner().invoke(app, ["household", "replay", str(run), str(others[0])])
    assert beside.exit_code == 0 and "Side by side" in beside.output, beside.output

    raw = Path(first["raw"])
    lines = raw.read_text().splitlines(keepends=True)
    raw.write_text("".join(lines[:-1]) + lines[-1][:40])  # as a kill would leave it
    again = command(tmp_path, jobs="2")
    assert again["raw"] == first["raw"]
    assert again["summary"] == first["summary"]
    assert sorted(_case(line) for line in raw.read_text().splitlines()[1:]) == sorted(
        _case(line) for line in lines[1:]
    )


def _case(line: str) -> str:
    return str(json.loads(line)["case"])


async def test_one_run_makes_the_tables_of_both_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "CATEGORIES", ("Set up Table",))
    report = await _played(
        tmp_path, settings=["visual", "symbolic"], episodes=1, members=[3], methods=["ProAgent"]
    )
    assert {row["arm"] for row in report.rows} == {"ProAgent, 3, rules", "ProAgent, 3, rules, with eyes"}
    titles = [str(table.title) for table in report.tables if str(table.title).startswith("Table 1")]
    assert ["visual" in title for title in titles] == [False, True]
    assert [*report.summary["visual"]["arms"]] == ["ProAgent, 3, rules, with eyes"]
    assert len({path.name for path in report.plots}) == 2
    assert [*report.tables[-1].rows[0]] == ["1 MHP", "102.9", "101.3", "94.3", "90.7", "140.8", "106.1"]


async def test_other_episodes_are_played_from_their_files(tmp_path: Path) -> None:
    if not DATA.is_dir():
        pytest.skip(f"no C-WAH episodes in {DATA}: set MNEME_DATA")
    (tmp_path / "some").mkdir()
    for path in sorted(DATA.glob("*.json"))[:2]:
        (tmp_path / "some" / path.name).write_bytes(path.read_bytes())
    given = {"data": tmp_path / "some", "only_data": True}
    report = await _played(tmp_path, **given, members=[3], methods=["ProAgent"])
    assert {tuple(row["placed"]) for row in report.rows} == {("recorded", "recorded", "seeded rule")}
    assert any("2 of 6 starts" in note for note in report.notes)


async def test_a_folder_without_episodes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no episode files"):
        await _played(tmp_path, data=tmp_path)


async def _played(out: Path, **options: Any) -> Report:
    return await evaluation.run(Options(agents=["rules"], out=out / "runs", jobs=1, **options))
