"""Table 1 of the intrinsic-memory paper: what is counted, and that an interrupted run goes on."""

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evals.answering import Identity
from evals.pddl_tables import LABELS, PAPER, report
from evals.report import Report

RULES = Identity(responder="rules")


def row(memory: str, number: int, reward: float, **more: Any) -> dict[str, Any]:
    """Return what the journal holds of a task."""
    domain = ("gripper", "barman")[number % 2]
    played = {
        "memory": memory,
        "seed": 1,
        "number": number,
        "problem": f"{domain}/{number}",
        "domain": domain,
        "reward": reward,
        "success": reward == 1,
        "steps": 20,
        "valid_steps": 15,
        "tokens": 1000,
        "cost": {"calls": 25},
        "seconds": 0.5,
    }
    return played | more


def reported(rows: list[dict[str, Any]], folder: Path, *seeds: int) -> Report:
    return report(rows, seeds or (1,), RULES, "our own", folder / "raw.jsonl")


def printed(told: Report) -> str:
    text = StringIO()
    told.print(Console(file=text, width=100))
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
    for name, (reward, tokens) in PAPER.items():
        assert f"{reward:.4f}" in text
        assert f"{tokens:,}" in text
        assert LABELS[name] in text
    assert "5.93" in text  # §4: 5.933e-7, the highest token efficiency
    for measure in ("success", "grounding accuracy", "steps"):
        assert f"By domain: {measure}" in text


def test_what_rules_cannot_tell_is_said_and_only_of_rules(tmp_path: Path) -> None:
    rows = [row("none", n, n / 4) for n in range(4)]
    assert "What it cannot tell" in printed(reported(rows, tmp_path))
    model = Identity(responder="ollama:llama3.1:8b", digest="46e0c10c039e")
    by_model = report(rows, [1], model, "our own", tmp_path / "model.jsonl")
    assert not any("cannot tell" in note for note in by_model.notes)
