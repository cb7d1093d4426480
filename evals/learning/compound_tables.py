"""Tables, notes and plots of compound learning's evaluation."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from mneme.cli.tables import Table
from mneme.evals.answering import Identity
from mneme.evals.learning.arms import OURS, RIVALS
from mneme.evals.learning.compound_figures import COMPARED, FIGURES, Orders
from mneme.evals.measuring import p_cell
from mneme.evals.report import Row, table

PAIR = (OURS, "without memory")
PARTS = ("all", "first third", "last third")
WINDOW = 8
"""Tasks over which a learning curve is averaged."""
COLOURS: Mapping[str, str] = dict(
    zip((OURS, *RIVALS), ("tab:blue", "tab:orange", "tab:red", "tab:gray", "tab:green"), strict=True)
)


def arms_table(summary: Row) -> Table:
    """Return the figures with memory and without, over whole orders, their beginnings and ends."""
    columns = ["", *(f"{arm}: {part}" for arm in PAIR for part in PARTS)]
    cells = [[name, *(_cell(summary[arm][name][part]) for arm in PAIR for part in PARTS)] for name in FIGURES]
    return table(f"Mean and standard deviation over {len(summary['seeds'])} orders", columns, cells)


def _cell(spread: Row) -> str:
    return f"{spread['mean']:.2f} ± {spread['sd']:.2f}"


def growth_table(summary: Row) -> Table:
    """Return how each arm's orders end."""
    names = ("slope of iterations per 10 tasks", "mistakes", "cards at the end", "verified at the end")
    arms = [arm for arm in (OURS, *RIVALS) if arm in summary]
    cells = [[name, *(_cell(summary[arm][name]) for arm in arms)] for name in names]
    return table("Learning", ["", *arms], cells)


def rivals_table(title: str, compared: Row) -> Table:
    """Return each rival beside ours: its mean, and the paired difference with its interval."""
    first: Mapping[str, Row] = next(iter(compared.values()))
    cells = [
        [name, f"{first[name]['ours']:.2f}", *(_against(compared[arm][name]) for arm in compared)]
        for name in COMPARED
    ]
    return table(f"{title}: the rival, its difference from ours (95 %)", ["", OURS, *compared], cells)


def _against(found: Row) -> str:
    mark = {"better": " +", "worse": " –", "": ""}[found["verdict"]]
    between = f"{found['difference']:+.2f}: {found['low']:+.2f} to {found['high']:+.2f}"
    return f"{found['theirs']:.2f} ({between}){mark}"


def verdicts(compared: Row) -> list[str]:
    """Say in words where a rival is better than ours, where worse, and where nothing tells them apart."""
    return [
        f"{arm}: "
        + "; ".join(
            f"{said} in {', '.join(names)}"
            for said, names in (
                ("better", _names(of, "better")),
                ("worse", _names(of, "worse")),
                ("no difference shown", _names(of, "")),
            )
            if names
        )
        for arm, of in compared.items()
    ]


def _names(of: Row, verdict: str) -> list[str]:
    return [name for name, found in of.items() if found["verdict"] == verdict]


def notes(summary: Row, rules: Sequence[Row], who: Identity) -> list[str]:
    """Return what the tables do not say."""
    found = summary["reduction"], summary["significance"]
    saved, p = found
    taken = ", ".join(
        f"{100 * saved[name]:.0f} % of the {name}" for name in ("seconds", "iterations", "calls")
    )
    tested = ", ".join(f"{name} p={p_cell(value)}" for name, value in p.items())
    said = [
        f"In the last third memory saves {taken} (paper, one example: 53 % of the time).",
        f"The same tasks with and without, Wilcoxon: {tested}.",
        "Under rules an answer costs no time, so that seconds are the database's: two trials at the least.",
        f"Disputes with memory: {summary['disputes'] or 'none'}.",
        *(f"All tasks, {each}." for each in verdicts(summary["compared"]["all"])),
    ]
    if len(summary["compared"]["all"]) > 1:
        said += [
            "A mark tells where the interval leaves 0 out: + the rival is better, – ours is. The intervals "
            "take tasks for independent; within an order they are not.",
            "Without the advocate nothing objects to a draft that does: read its first attempts and "
            "iterations beside the time that its solutions save.",
        ]
    if len(rules) > 1:
        listed = "; ".join(f"{rule['condition'].replace(';', ',')} -> {rule['pattern']}" for rule in rules)
        said.append(f"The story's card ends as: {listed}.")
    if not who.is_model:
        said += [
            "Answered by rules: the figures show the mechanism, not a language model. Rules read of a raw "
            "trajectory its accepted pattern, made out for the task, as they read a card's; without the "
            "advocate they try the world's remedies in its order."
        ]
    return said


def plots(by_arm: Mapping[str, Orders]) -> list[Callable[[Axes], None]]:
    """Return the learning curves of all arms, and how the cards grew."""
    return [
        lambda axes: _curve(axes, by_arm, "iterations", "drafts per task"),
        lambda axes: _curve(axes, by_arm, "seconds", "seconds to solution"),
        lambda axes: _growth(axes, by_arm[OURS]),
    ]


def _curve(axes: Axes, by_arm: Mapping[str, Orders], name: str, label: str) -> None:
    """Draw a moving mean over the orders; with the range between them for the two that learn or do not."""
    for arm, orders in by_arm.items():
        smooth = np.array([_smooth([float(row[name]) for row in order]) for order in orders])
        at = np.arange(smooth.shape[1]) + min(WINDOW, len(orders[0]))
        axes.plot(at, smooth.mean(axis=0), color=COLOURS[arm], label=arm)
        if arm in PAIR:
            axes.fill_between(at, smooth.min(axis=0), smooth.max(axis=0), color=COLOURS[arm], alpha=0.2)
    axes.set_xlabel("task")
    axes.set_ylabel(label)
    axes.set_ylim(bottom=0)
    axes.legend()


def _smooth(values: Sequence[float]) -> list[float]:
    width = min(WINDOW, len(values))
    return list(np.convolve(values, np.ones(width) / width, mode="valid"))


def _growth(axes: Axes, orders: Orders) -> None:
    for name, colour in (("cards", "tab:gray"), ("verified", "tab:green")):
        counts = np.array([[row[name] for row in order] for order in orders])
        at = range(1, counts.shape[1] + 1)
        axes.plot(at, counts.mean(axis=0), color=colour, label=name)
        axes.fill_between(at, counts.min(axis=0), counts.max(axis=0), color=colour, alpha=0.2)
    axes.set_xlabel("task")
    axes.set_ylabel("knowledge cards")
    axes.legend()
