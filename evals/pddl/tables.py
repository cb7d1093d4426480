"""The tables and the plot of `mneme eval pddl`: table 1 beside the paper's, and figures by domain."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import bootstrap

from mneme.cli.tables import Table
from mneme.evals.answering import Identity
from mneme.evals.measuring import wilcoxon_p
from mneme.evals.report import Report, Row, draw, table

LABELS = {
    "none": "no memory",
    "g_memory": "G-Memory",
    "generative": "Generative",
    "memory_bank": "MemoryBank",
    "meta_gpt": "MetaGPT",
    "voyager": "Voyager",
    "chat_dev": "ChatDev",
    "intrinsic": "Intrinsic",
}
PAPER = {
    "none": (0.0231, 117_437),
    "g_memory": (0.0231, 118_316),
    "generative": (0.0530, 121_105),
    "memory_bank": (0.0305, 80_599),
    "meta_gpt": (0.0601, 127_860),
    "voyager": (0.0250, 133_268),
    "chat_dev": (0.0583, 107_043),
    "intrinsic": (0.0833, 140_418),
}
"""Table 1: average rewards and tokens of Llama 3.1 8B over AgentBoard's 60 problems, one run."""
CROSS_TRIAL = ("g_memory", "generative", "memory_bank", "meta_gpt", "voyager")
ACROSS = {
    "reward": "average reward",
    "success": "success",
    "grounding": "grounding accuracy",
    "steps": "steps",
}
RULES = (
    "Answered by rules: a planner (pyperplan) over what task, memory and visible turns tell; it never sees "
    "the world's state, and looks around after an action that failed.",
    "What that can tell: whether the harness and the memories work from end to end, and what showing a "
    "memory costs in tokens of context. It takes nothing from other tasks, so that memories that recall them "
    "end alike.",
    "What it cannot tell: how well a language model reads long or cluttered contexts, invents a plan, or "
    "writes a summary; tokens are estimated from the words that a model would have read and written. "
    "The paper's figures are Llama 3.1 8B's.",
)


def report(rows: list[Row], seeds: Sequence[int], who: Identity, source: str, raw: Path) -> Report:
    """Make the tables, the plot and the summary of rows, one per memory, seed and problem."""
    wide = max(row["window"] for row in rows)
    by_memory = _by_memory(row for row in rows if row["window"] == wide)
    summary = _summaries(by_memory, seeds)
    again = _by_memory(row for row in rows if row["window"] != wide)
    plot = draw(
        raw.with_suffix(".png"),
        f"PDDL tasks, {_counted(by_memory, seeds)}",
        str(who),
        lambda axes: _rewards(axes, summary),
        lambda axes: _tokens(axes, summary),
        lambda axes: _learning(axes, by_memory),
    )
    return Report(
        name="pddl",
        answered_by=str(who),
        raw=raw,
        rows=rows,
        summary={
            "seeds": list(seeds),
            "problems": source,
            "memories": summary,
            "tight": _summaries(again, seeds),
        },
        tables=[*_table_1(summary, who), *_tight(by_memory, again, seeds), *_by_domain(by_memory)],
        plots=[plot],
        notes=_notes(by_memory, again, seeds, who, source),
    )


def _by_memory(rows: Iterable[Row]) -> dict[str, list[Row]]:
    measured = [_measured(row) for row in rows]
    found = {name: [row for row in measured if row["memory"] == name] for name in LABELS}
    return {name: played for name, played in found.items() if played}


def _summaries(by_memory: dict[str, list[Row]], seeds: Sequence[int]) -> dict[str, Row]:
    bare = by_memory.get("none")
    summary = {name: _summary(played, bare, seeds) for name, played in by_memory.items()}
    _adjust(list(summary.values()))
    return summary


def _measured(row: Row) -> Row:
    """Add what is computed of a row."""
    return row | {"success": float(row["success"]), "grounding": row["valid_steps"] / max(1, row["steps"])}


def _summary(played: Sequence[Row], without: Sequence[Row] | None, seeds: Sequence[int]) -> Row:
    rewards = [row["reward"] for row in played]
    there = [seed for seed in seeds if any(row["seed"] == seed for row in played)]
    by_seed = [fmean(row["reward"] for row in played if row["seed"] == seed) for seed in there]
    tokens = fmean(row["tokens"] for row in played)
    return {
        "reward": fmean(rewards),
        "reward_by_seed": by_seed,
        "reward_sd": stdev(by_seed) if len(by_seed) > 1 else None,
        "reward_interval": _interval(rewards),
        "tokens": tokens,
        "efficiency": fmean(rewards) / tokens if tokens else 0.0,
        "success": fmean(row["success"] for row in played),
        "grounding": fmean(row["grounding"] for row in played),
        "steps": fmean(row["steps"] for row in played),
        "calls": fmean(row["cost"]["calls"] for row in played),
        "seconds": fmean(row["seconds"] for row in played),
        "p": None if without is None or without is played else _against(played, without),
    }


def _interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % bootstrap interval of the mean over tasks; None where all are alike."""
    if len(set(values)) < 2:
        return None
    found = bootstrap((np.array(values),), np.mean, rng=np.random.default_rng(1), method="percentile")
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


def _against(played: Sequence[Row], without: Sequence[Row]) -> float | None:
    """Return the Wilcoxon signed-rank p of rewards on the same problems; None where none differs."""
    bare = {(row["seed"], row["number"]): row["reward"] for row in without}
    differences = [row["reward"] - bare[row["seed"], row["number"]] for row in played]
    return wilcoxon_p(differences)


def _adjust(summaries: Sequence[Row]) -> None:
    """Add Holm's p: each memory is compared with none, so that one in twenty would look better by luck."""
    tested = sorted((each for each in summaries if each["p"] is not None), key=lambda each: each["p"])
    least = 0.0
    for rank, each in enumerate(tested):
        least = max(least, min(1.0, each["p"] * (len(tested) - rank)))
        each["p_holm"] = least


def _table_1(summary: dict[str, Row], who: Identity) -> list[Table]:
    """Make table 1 in two halves, which that can be read one after the other."""
    head = f"({who}; the paper: Llama 3.1 8B)"
    rewards = ("memory", "reward", "paper", "95 % over tasks", "sd", "p, Holm")
    tokens = ("memory", "tokens", "paper", "reward/10⁷ tokens", "paper")
    return [
        table(f"Table 1, rewards {head}", rewards, [_rewarded(name, each) for name, each in summary.items()]),
        table(f"Table 1, tokens {head}", tokens, [_spent(name, each) for name, each in summary.items()]),
    ]


def _rewarded(name: str, each: Row) -> tuple[object, ...]:
    interval = each["reward_interval"]
    between = f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else None
    figures = (f"{each['reward']:.4f}", f"{PAPER[name][0]:.4f}")
    return LABELS[name], *figures, between, each["reward_sd"], each.get("p_holm")


def _spent(name: str, each: Row) -> tuple[object, ...]:
    reward, tokens = PAPER[name]
    efficiency = (f"{each['efficiency'] * 1e7:.2f}", f"{reward / tokens * 1e7:.2f}")
    return LABELS[name], f"{each['tokens']:,.0f}", f"{tokens:,}", *efficiency


def _tight(by_memory: dict[str, list[Row]], again: dict[str, list[Row]], seeds: Sequence[int]) -> list[Table]:
    """Compare no memory and intrinsic in both windows, over the problems that both windows have room for."""
    if not again:
        return []
    fitting = {(row["seed"], row["problem"]) for row in next(iter(again.values()))}
    before = {
        name: [row for row in by_memory[name] if (row["seed"], row["problem"]) in fitting] for name in again
    }
    head = ("window", "for memory", "memory", "reward", "tokens", "valid", "p")
    lines = [
        (played[0]["window"], played[0]["memory_tokens"], LABELS[name], *_line(_summary(played, bare, seeds)))
        for suite in (before, again)
        for bare in [suite.get("none")]
        for name, played in suite.items()
    ]
    return [table(f"A tight window ({len(fitting)} problems that fit)", head, lines)]


def _line(each: Row) -> tuple[object, ...]:
    return f"{each['reward']:.4f}", f"{each['tokens']:,.0f}", f"{each['grounding']:.3f}", each["p"]


def _by_domain(by_memory: dict[str, list[Row]]) -> list[Table]:
    domains = sorted({row["domain"] for played in by_memory.values() for row in played})
    return [
        table(
            f"By domain: {title}",
            ("memory", *domains, "all"),
            [(LABELS[name], *_means(played, measure, domains)) for name, played in by_memory.items()],
        )
        for measure, title in ACROSS.items()
    ]


def _means(played: Sequence[Row], measure: str, domains: Sequence[str]) -> list[str]:
    split = [[row[measure] for row in played if row["domain"] == domain] for domain in domains]
    return [f"{fmean(values):.3g}" for values in (*split, [row[measure] for row in played])]


def _counted(by_memory: dict[str, list[Row]], seeds: Sequence[int]) -> str:
    """Say how many problems of which domains were played with each memory, in how many orders."""
    first = [row for row in next(iter(by_memory.values())) if row["seed"] == seeds[0]]
    domains = sorted({row["domain"] for row in first})
    each = ", ".join(f"{sum(row['domain'] == domain for row in first)} {domain}" for domain in domains)
    return f"{len(first)} problems ({each}), {len(seeds)} {'order' if len(seeds) == 1 else 'orders'}"


def _notes(
    by_memory: dict[str, list[Row]],
    again: dict[str, list[Row]],
    seeds: Sequence[int],
    who: Identity,
    source: str,
) -> list[str]:
    played = [row for each in (*by_memory.values(), *again.values()) for row in each]
    seconds = sum(row["seconds"] for row in played)
    notes = [
        f"{_counted(by_memory, seeds)}, {source}; "
        f"{len(played)} tasks, {seconds:.0f} s of playing, {seconds / len(played):.2f} s a task.",
        "p: Wilcoxon signed-rank of rewards against no memory on the same problems, by Holm for the "
        "number of memories; – where no task ended otherwise, or with no memory left out. The paper gives no "
        "spread: it ran once.",
        "Tokens count every question of both agents and of the memory itself, prompts and replies; sd: of "
        "the orders' means.",
    ]
    notes += _same_moves(by_memory)
    unusable = sum(len(row["complaints"]) for row in played)
    if unusable:
        notes.append(f"{unusable} answers stayed unusable after their repairs; the raw results say which.")
    return notes if who.is_model else [*notes, *RULES]


def _same_moves(by_memory: dict[str, list[Row]]) -> list[str]:
    """Say in how many problems the moves with intrinsic memory and without were the same."""
    if not set(COMPARED) <= set(by_memory):
        return []
    moves = [{(row["seed"], row["number"]): _moves(row) for row in by_memory[name]} for name in COMPARED]
    both = moves[0].keys() & moves[1].keys()
    same = sum(moves[0][each] == moves[1][each] for each in both)
    return [
        f"The moves with intrinsic memory and without were the same in {same} of {len(both)} problems. "
        "A step that shows the whole state leaves a memory of the task nothing to add: such worlds cannot "
        "tell what survives. `mneme eval information_survival` measures that."
    ]


COMPARED = ("none", "intrinsic")


def _moves(row: Row) -> list[str]:
    return [step["action"] for step in row["transcript"]]


def _rewards(axes: Axes, summary: dict[str, Row]) -> None:
    names = list(summary)
    means = [summary[name]["reward"] for name in names]
    spans = [
        summary[name]["reward_interval"] or (mean, mean) for name, mean in zip(names, means, strict=True)
    ]
    below = [mean - span[0] for mean, span in zip(means, spans, strict=True)]
    above = [span[1] - mean for mean, span in zip(means, spans, strict=True)]
    places = np.arange(len(names))
    axes.barh(places - 0.2, means, 0.4, xerr=[below, above], label="here, 95 % over tasks")
    axes.barh(places + 0.2, [PAPER[name][0] for name in names], 0.4, label="paper, Llama 3.1 8B")
    _labelled(axes, names, "average reward")


def _tokens(axes: Axes, summary: dict[str, Row]) -> None:
    names = list(summary)
    places = np.arange(len(names))
    axes.barh(places - 0.2, [summary[name]["tokens"] for name in names], 0.4, label="here")
    axes.barh(places + 0.2, [PAPER[name][1] for name in names], 0.4, label="paper, Llama 3.1 8B")
    _labelled(axes, names, "average tokens per task")


def _labelled(axes: Axes, names: Sequence[str], what: str) -> None:
    axes.set_yticks(range(len(names)), [LABELS[name] for name in names])
    axes.invert_yaxis()
    axes.set_xlabel(what)
    axes.legend(fontsize="small")


def _learning(axes: Axes, by_memory: dict[str, list[Row]]) -> None:
    """Draw the mean reward of the tasks so far: what learns across tasks rises."""
    for name, played in by_memory.items():
        count = 1 + max(row["number"] for row in played)
        means = [fmean(row["reward"] for row in played if row["number"] == at) for at in range(count)]
        running = np.cumsum(means) / np.arange(1, count + 1)
        axes.plot(range(1, count + 1), running, "-" if name in CROSS_TRIAL else ":", label=LABELS[name])
    axes.set_xlabel("tasks played (solid: learns across tasks)")
    axes.set_ylabel("mean reward so far")
    axes.legend(fontsize="x-small")
