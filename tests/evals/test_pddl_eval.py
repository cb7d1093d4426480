"""Table 1 of the intrinsic-memory paper: what is counted, and that an interrupted run goes on."""

import asyncio
import json
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mneme.core.errors import BadInput, MnemeError
from mneme.core.settings import settings
from mneme.environments.pddl import generate_suite
from mneme.evals.options import Identity
from mneme.evals.pddl import evaluation
from mneme.evals.pddl.evaluation import LABELS, PAPER_ROWS, report
from mneme.evals.report import SOURCE_ROOT, Journal, Report, code_digest

RULES = Identity(responder="rules")


def row(memory: str, number: int, reward: float, **more: Any) -> dict[str, Any]:
    """Return what the journal holds of a task."""
    domain = ("gripper", "barman")[number % 2]
    played = {
        "memory": memory,
        "seed": 1,
        "number": number,
        "window": 4096,
        "memory_tokens": 700,
        "problem": f"{domain}/{number}",
        "domain": domain,
        "reward": reward,
        "success": reward == 1,
        "steps": 20,
        "valid_steps": 15,
        "tokens": 1000,
        "calls": 25,
        "seconds": 0.5,
        "complaints": [],
        "transcript": [],
    }
    return played | more


def reported(rows: list[dict[str, Any]], folder: Path, *seeds: int) -> Report:
    return report(rows, seeds or (1,), RULES, "our own", Journal(folder / "raw.jsonl"))


def printed(told: Report) -> str:
    text = StringIO()
    told.print(Console(file=text, width=80))
    return text.getvalue()


def test_a_memory_is_measured_against_none(tmp_path: Path) -> None:
    better = [row("intrinsic", n, 1.0, tokens=4000) for n in range(12)]
    told = reported([row("none", n, 0.25) for n in range(12)] + better, tmp_path)
    figures = told.summary["memories"]["intrinsic"]
    assert figures["reward"] == 1
    assert figures["efficiency"] == pytest.approx(1 / 4000)
    assert figures["grounding"] == 0.75
    assert figures["p"] < 0.01
    assert figures["p_holm"] == figures["p"]
    assert told.summary["memories"]["none"]["p"] is None
    assert told.plots[0].stat().st_size > 10_000


@pytest.mark.parametrize("orders", [1, 2])
def test_tables_are_whole_in_80_columns(tmp_path: Path, orders: int) -> None:
    seeds = tuple(range(1, orders + 1))
    rows = [
        row(name, n, n / 7, seed=seed, tokens=123456) for name in LABELS for n in range(8) for seed in seeds
    ]
    text = printed(reported(rows, tmp_path, *seeds))
    tables = text.partition("Answered by")[0]
    assert "…" not in tables
    for label in LABELS.values():
        assert sum(label in line for line in tables.splitlines()) >= 2, "no name is broken"


def test_p_is_held_against_the_number_of_memories(tmp_path: Path) -> None:
    rows = [row("none", n, 0.25) for n in range(12)]
    for memory in ("intrinsic", "voyager", "chat_dev"):
        rows += [row(memory, n, 0.5 if n < 8 else 0.25) for n in range(12)]
    rows += [row("meta_gpt", n, 0.25) for n in range(12)]
    memories = reported(rows, tmp_path).summary["memories"]
    assert memories["voyager"]["p_holm"] == pytest.approx(3 * memories["voyager"]["p"])
    assert memories["meta_gpt"]["p"] is None


def test_orders_give_a_spread_and_one_order_none(tmp_path: Path) -> None:
    one = [row("none", n, n / 4) for n in range(4)]
    two = [row("none", n, n / 2, seed=2) for n in range(3)]
    assert reported(one, tmp_path).summary["memories"]["none"]["reward_sd"] is None
    both = reported(one + two, tmp_path, 1, 2).summary["memories"]["none"]
    assert both["reward_by_seed"] == [0.375, 0.5]
    assert both["reward_sd"] == pytest.approx(0.0884, abs=1e-4)
    low, high = both["reward_interval"]
    assert low < both["reward"] < high


def test_the_papers_figures_stand_beside_ours(tmp_path: Path) -> None:
    text = printed(reported([row(name, n, n / 4) for name in LABELS for n in range(4)], tmp_path))
    for name, (reward, tokens) in PAPER_ROWS.items():
        assert f"{reward:.4f}" in text
        assert f"{tokens:,}" in text
        assert LABELS[name] in text
    assert "5.93" in text  # §4: 5.933e-7, the highest token efficiency


def test_what_rules_cannot_tell_is_said_and_only_of_rules(tmp_path: Path) -> None:
    rows = [row("none", n, n / 4) for n in range(4)]
    assert "what that cannot tell" in printed(reported(rows, tmp_path))
    model = Identity(responder="ollama:llama3.1:8b", digest="46e0c10c039e")
    by_model = report(rows, [1], model, "our own", Journal(tmp_path / "model.jsonl"))
    assert not any("Answered by rules" in note for note in by_model.notes)


SMALL = {"problems": 2, "agents": "rules", "jobs": 2}


@pytest.mark.long
async def test_every_problem_is_played_with_every_memory_once(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    options = evaluation.Options(**SMALL, memories=["none", "intrinsic"], out=tmp_path)
    first = await evaluation.run(options, lambda done, of, what: told.append((done, of)))
    assert sorted(told) == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert {(row["memory"], row["number"]) for row in first.rows} == {
        (memory, number) for memory in ("none", "intrinsic") for number in (0, 1)
    }
    for played in first.rows:
        steps = played["transcript"]
        assert len(steps) == played["steps"] <= 30
        assert played["valid_steps"] == sum(step["valid"] for step in steps)
        assert played["reward"] == steps[-1]["progress"]
        assert played["tokens"] > 0
    raw = first.raw.read_text()
    again = await evaluation.run(options.model_copy(update={"memories": ["intrinsic"]}))
    assert again.rows == [row for row in first.rows if row["memory"] == "intrinsic"]
    assert first.raw.read_text() == raw


async def test_problems_that_leave_no_room_in_the_window_are_not_played(tmp_path: Path) -> None:
    options = evaluation.Options(
        problems=2,
        agents="rules",
        memories=["none"],
        context_tokens=1600,
        memory_tokens=400,
        jobs=1,
        out=tmp_path,
    )
    played = (await evaluation.run(options)).rows
    assert 0 < len(played) <= 2 and {row["window"] for row in played} == {1600}


@pytest.mark.long
async def test_problems_come_from_a_folder_in_a_seeded_order(tmp_path: Path) -> None:
    suite = generate_suite(4, 3)
    for problem in suite:
        folder = tmp_path / "data" / problem.domain
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "domain.pddl").write_text(problem.domain_pddl)
        (folder / f"{problem.name.split('/')[1]}.pddl").write_text(problem.problem_pddl)
    options = evaluation.Options(
        data=tmp_path / "data",
        memories=["none"],
        seeds=[1, 2],
        agents="rules",
        jobs=1,
        out=tmp_path / "runs",
    )
    told = await evaluation.run(options)
    orders = [[row["problem"] for row in told.rows if row["seed"] == seed] for seed in (1, 2)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(problem.name for problem in suite)


async def test_data_are_found_where_mneme_data_is_unless_our_own_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (problem,) = generate_suite(1, 3)
    folder = tmp_path / "data" / "pddl"
    folder.mkdir(parents=True)
    (folder / "domain.pddl").write_text(problem.domain_pddl)
    (folder / "mine.pddl").write_text(problem.problem_pddl)
    monkeypatch.setenv("MNEME_DATA", str(tmp_path / "data"))
    settings.cache_clear()
    options = evaluation.Options(memories=["none"], agents="rules", jobs=1, out=tmp_path / "runs")
    found = await evaluation.run(options)
    assert [row["problem"] for row in found.rows] == [f"{problem.domain}/mine"]
    own = await evaluation.run(options.model_copy(update={"problems": 1}))
    settings.cache_clear()
    assert own.summary["problems"] == "our own, drawn by seed"


async def test_what_cannot_be_played_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="There is no memory 'elephant'"):
        await evaluation.run(evaluation.Options(memories=["elephant"], agents="rules", out=tmp_path))
    with pytest.raises(BadInput, match="has no PDDL problems"):
        await evaluation.run(evaluation.Options(data=tmp_path, agents="rules", out=tmp_path))
    with pytest.raises(MnemeError, match="the context has 512"):
        await evaluation.run(
            evaluation.Options(**SMALL, memories=["intrinsic"], context_tokens=512, out=tmp_path)
        )


def kept(out: Path) -> list[dict[str, Any]]:
    """Return the rows of a run's only journal that are whole."""
    journals = list(out.glob("*.jsonl"))
    assert len(journals) <= 1, "another program, or another configuration, has a journal of its own"
    written = "".join(path.read_text() for path in journals)
    return [json.loads(line) for line in written.splitlines(keepends=True)[1:] if line.endswith("\n")]


def start(*words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "mneme", "eval", "pddl", "--agents", "rules", *words]
    return subprocess.Popen(command, cwd=SOURCE_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def test_an_interrupted_evaluation_goes_on(tmp_path: Path) -> None:
    def interrupt(done: int, of: int, what: str) -> None:
        raise MnemeError("interrupted")

    options = evaluation.Options(**SMALL | {"jobs": 1}, memories=["none"], out=tmp_path)
    with pytest.raises(MnemeError, match="interrupted"):
        await evaluation.run(options, interrupt)
    (first,) = kept(tmp_path)
    ended = await evaluation.run(options)
    assert kept(tmp_path) == ended.rows
    assert ended.rows[0] == first and len(ended.rows) == 2


@pytest.mark.long
async def test_a_killed_evaluation_goes_on_and_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    program = code_digest()
    process = start("--problems", "3", "--memory", "meta_gpt", "--out", str(tmp_path / "killed"))
    while not kept(tmp_path / "killed"):
        assert process.poll() is None
        await asyncio.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(kept(tmp_path / "killed")) < 3
    if code_digest() != program:
        pytest.skip("the program was edited while the test ran: a journal goes on only with its own program")
    options = evaluation.Options(problems=3, memories=["meta_gpt"], agents="rules")
    ended = await evaluation.run(options.model_copy(update={"out": tmp_path / "killed"}))
    whole = await evaluation.run(options.model_copy(update={"out": tmp_path / "whole"}))
    assert len(kept(tmp_path / "killed")) == 3
    for name in ("problem", "reward", "steps", "transcript"):
        assert [row[name] for row in ended.rows] == [row[name] for row in whole.rows]
