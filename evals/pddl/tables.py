"""The tables and the plot of `mneme eval pddl`: table 1 beside the paper's."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pandas as pd
import yaml
from matplotlib.axes import Axes

from mneme.cli.tables import Table
from mneme.evals.answering import Identity
from mneme.evals.measuring import holm, interval_of_mean, wilcoxon_p
from mneme.evals.report import Journal, Report, Row, table

_PRINTED = yaml.safe_load(Path(__file__).with_name("paper.yaml").read_text(encoding="utf-8"))
LABELS: dict[str, str] = {name: each["label"] for name, each in _PRINTED.items()}
PAPER = {name: (each["reward"], each["tokens"]) for name, each in _PRINTED.items()}
"""Table 1: rewards and tokens."""
PROBLEM = ["seed", "number"]


def report(rows: list[Row], seeds: Sequence[int], who: Identity, source: str, journal: Journal) -> Report:
    """Make the tables, the plot and the summary of rows, one per memory, seed and problem."""
    played = pd.DataFrame(rows)
    played["success"] = played["success"].astype(float)
    played["grounding"] = played["valid_steps"] / played["steps"].clip(lower=1)
    order = {name: at for at, name in enumerate(LABELS)}
    played = played.sort_values("memory", key=lambda each: each.map(order), kind="stable")
    summary = _summaries(played)
    return journal.report(
        who,
        {"seeds": list(seeds), "problems": source, "memories": summary},
        _table_1(summary, who),
        _notes(played, seeds, who, source),
        rows,
    ).with_plots(f"PDDL tasks, {_counted(played, seeds)}", partial(_bars, summary))


def _summaries(played: pd.DataFrame) -> dict[str, Row]:
    """Return the figures of each memory, with p against none, and Holm's for the number of memories."""
    by_memory = {str(name): own for name, own in played.groupby("memory", sort=False)}
    rewards = played.pivot_table(index=PROBLEM, columns="memory", values="reward")
    summary = {
        name: _figures(own)
        | {"p": wilcoxon_p((rewards[name] - rewards["none"]).dropna()) if "none" in by_memory else None}
        for name, own in by_memory.items()
    }
    for name, corrected in holm({name: each["p"] for name, each in summary.items()}).items():
        summary[name]["p_holm"] = corrected
    return summary


def _figures(own: pd.DataFrame) -> Row:
    rewards, by_seed = own["reward"], own.groupby("seed")["reward"].mean()
    means = own[["reward", "tokens", "success", "grounding", "steps", "seconds"]].mean().to_dict()
    return {
        **means,
        "reward_by_seed": by_seed.tolist(),
        "reward_sd": float(by_seed.std()) if len(by_seed) > 1 else None,
        "reward_interval": interval_of_mean(rewards) if rewards.nunique() > 1 else None,
        "efficiency": means["reward"] / means["tokens"] if means["tokens"] else 0.0,
        "calls": float(own["calls"].mean()),
    }


def _table_1(summary: dict[str, Row], who: Identity) -> list[Table]:
    """Make table 1 in two halves, which can be read one after the other."""
    rewards, tokens = list[tuple[object, ...]](), list[tuple[object, ...]]()
    for name, each in summary.items():
        reward, spent = PAPER[name]
        interval = each["reward_interval"]
        between = f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else None
        figures = (f"{each['reward']:.4f}", f"{reward:.4f}", between, each["reward_sd"], each.get("p_holm"))
        rewards.append((LABELS[name], *figures))
        efficiency = (f"{each['efficiency'] * 1e7:.2f}", f"{reward / spent * 1e7:.2f}")
        tokens.append((LABELS[name], f"{each['tokens']:,.0f}", f"{spent:,}", *efficiency))
    head = f"({who}; the paper: Llama 3.1 8B)"
    columns = ("memory", "reward", "paper", "95 % over tasks", "sd", "p, Holm")
    return [
        table(f"Table 1, rewards {head}", columns, rewards),
        table(f"Table 1, tokens {head}", ("memory", "tokens", "paper", "reward/10⁷ tokens", "paper"), tokens),
    ]


def _counted(played: pd.DataFrame, seeds: Sequence[int]) -> str:
    """Say how many problems of which domains were played with each memory, in how many orders."""
    first = played[(played["memory"] == played["memory"].iloc[0]) & (played["seed"] == seeds[0])]
    counts = first["domain"].value_counts().sort_index()
    each = ", ".join(f"{count} {domain}" for domain, count in counts.items())
    return f"{len(first)} problems ({each}), {len(seeds)} {'order' if len(seeds) == 1 else 'orders'}"


def _notes(played: pd.DataFrame, seeds: Sequence[int], who: Identity, source: str) -> list[str]:
    seconds = played["seconds"].sum()
    notes = [
        f"{_counted(played, seeds)}, {source}; "
        f"{len(played)} tasks, {seconds:.0f} s of playing, {seconds / len(played):.2f} s a task.",
        *_same_moves(played),
    ]
    if unusable := int(played["complaints"].map(len).sum()):
        notes.append(f"{unusable} answers stayed unusable after their repairs; the raw results say which.")
    by_rules = "Answered by rules, a planner: docs/measurements.md says what that cannot tell."
    return notes if who.is_model else [*notes, by_rules]


def _same_moves(played: pd.DataFrame) -> list[str]:
    """Say in how many problems the moves with intrinsic memory and without were the same."""
    moves = played.assign(moves=played["transcript"].map(lambda steps: [step["action"] for step in steps]))
    by_memory = moves.pivot_table(index=PROBLEM, columns="memory", values="moves", aggfunc="first")
    if not {"none", "intrinsic"} <= {*by_memory.columns}:
        return []
    both = by_memory[["none", "intrinsic"]].dropna()
    same = int((both["none"] == both["intrinsic"]).sum())
    return [f"The moves with intrinsic memory and without were the same in {same} of {len(both)} problems."]


def _bars(summary: dict[str, Row], axes: Axes) -> None:
    """Draw the mean rewards beside the paper's."""
    names = [LABELS[name] for name in summary]
    here = [each["reward"] for each in summary.values()]
    means = pd.DataFrame({"here": here, "paper, Llama 3.1 8B": [PAPER[name][0] for name in summary]}, names)
    means.plot.barh(ax=axes, xlabel="average reward").invert_yaxis()
