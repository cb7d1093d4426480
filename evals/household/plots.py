"""The household evaluation's plots."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes

from mneme.environments.household import World
from mneme.evals.household.arms import Arm, Plan
from mneme.evals.household.paper import FIGURE_3B
from mneme.evals.household.results import COLUMNS, Mean, Results
from mneme.evals.report import Journal, draw

AIM = 1.6
"""Times the oracle's bound within which MiTa with three agents is to stay."""
COLOURS = {
    "MHP": "tab:gray",
    "LLM": "tab:olive",
    "CoELA": "tab:blue",
    "ProAgent": "tab:orange",
    "MiTa": "tab:green",
    "MiTa, taught": "tab:cyan",
    "w/o allocation": "tab:red",
    "w/o summary": "tab:purple",
}


def plots(results: Results, plan: Plan, journal: Journal, answered_by: str) -> list[Path]:
    """Draw table 1 by category, steps by number of agents, and figure 3."""
    count = len({row["episode"] for row in results.rows})
    raw = journal.path.with_suffix("")
    stem = raw if plan.setting == "symbolic" else raw.with_name(f"{raw.name}-{plan.setting}")
    categories = f"Steps to success by category, with 95 % intervals ({count} episodes)"
    drawn = [
        draw(stem.with_name(stem.name + "-table-1.png"), categories, answered_by, *_by_size(results, plan)),
        draw(
            stem.with_name(stem.name + "-agents.png"),
            "All categories: steps by number of agents, and steps against the bound",
            answered_by,
            partial(_plot_agents, results, plan.main),
            partial(_plot_over_bound, results, plan.arms),
        ),
    ]
    if plan.weaker:
        path = stem.with_name(stem.name + "-figure-3.png")
        sides = (partial(_plot_models, results, plan.models), partial(_plot_weaker, results, plan.weaker))
        drawn.append(draw(path, "Figure 3: who answers for MiTa", answered_by, *sides))
    return drawn


def _by_size(results: Results, plan: Plan) -> list[partial[None]]:
    """Give a plot to each size of team."""
    sizes = sorted({arm.agents for arm in plan.arms})
    return [
        partial(_plot_categories, results, [arm for arm in plan.arms if arm.agents == size], size)
        for size in sizes
    ]


def _plot_categories(results: Results, arms: Sequence[Arm], agents: int, axes: Axes) -> None:
    """Draw bars per category, and the bound as a line through each group; the legend is below."""
    width = 0.84 / len(arms)
    for number, arm in enumerate(arms):
        at = [column + (number - (len(arms) - 1) / 2) * width for column in range(len(COLUMNS))]
        _bars(results, arm, at, width, axes)
    bounds = [(n, bound) for n, name in enumerate(COLUMNS) if (bound := results.bound(arms[0], name))]
    for number, (column, bound) in enumerate(bounds):
        label = "oracle's bound" if number == 0 else None
        axes.plot([column - 0.44, column + 0.44], [bound, bound], color="black", label=label)
    axes.set_xticks(range(len(COLUMNS)), [name.replace(" ", "\n", 1) for name in COLUMNS], fontsize="small")
    axes.set_ylabel("average steps L")
    axes.set_title(f"{agents} agent{'s' if agents > 1 else ''}", fontsize="medium")
    axes.set_ylim(0, min(axes.get_ylim()[1], 1.1 * World.LIMIT))
    axes.legend(fontsize="x-small", ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _bars(results: Results, arm: Arm, at: Sequence[float], width: float, axes: Axes) -> None:
    played = [
        (x, steps) for x, column in zip(at, COLUMNS, strict=True) if (steps := results.steps(arm, column))
    ]
    for number, (x, steps) in enumerate(played):
        label = arm.name if number == 0 else None
        axes.bar(
            x,
            steps.value,
            0.92 * width,
            yerr=_whiskers([steps]),
            color=COLOURS[arm.name],
            label=label,
            capsize=1.5,
            error_kw={"linewidth": 0.8},
        )


def _whiskers(means: Sequence[Mean]) -> list[list[float]]:
    """Return the parts of intervals below and above their means; no number of steps is below 0."""
    return [[min(each.half, each.value) for each in means], [each.half for each in means]]


def _plot_agents(results: Results, arms: Sequence[Arm], axes: Axes) -> None:
    for name in dict.fromkeys(arm.name for arm in arms):
        line = [(arm.agents, steps) for arm in arms if arm.name == name and (steps := results.steps(arm))]
        x = [agents + 0.04 * (list(COLOURS).index(name) - 2) for agents, _ in line]  # side by side
        axes.errorbar(
            x,
            [one.value for _, one in line],
            _whiskers([one for _, one in line]),
            fmt="o-",
            capsize=3,
            color=COLOURS[name],
            label=name,
        )
    sizes = sorted({arm.agents for arm in arms})
    bounds = [results.bound(next(arm for arm in arms if arm.agents == n)) for n in sizes]
    axes.plot(sizes, [float(one or 0.0) for one in bounds], "k--", label="oracle's bound")
    axes.set_xticks(sizes)
    axes.set_xlabel("agents")
    axes.set_ylabel("average steps L")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small")


def _plot_over_bound(results: Results, arms: Sequence[Arm], axes: Axes) -> None:
    """Draw how many times the bound each method of the largest team takes."""
    largest = max(arm.agents for arm in arms)
    shown = [(arm, over) for arm in arms if arm.agents == largest and (over := results.over_bound(arm))][::-1]
    axes.barh(
        [arm.name for arm, _ in shown],
        [over.value for _, over in shown],
        xerr=_whiskers([over for _, over in shown]),
        color=[COLOURS[arm.name] for arm, _ in shown],
        capsize=3,
    )
    axes.axvline(1, color="black", linewidth=1)
    axes.axvline(AIM, color="black", linestyle=":", label=f"{AIM} × the bound")
    axes.set_xlabel(f"steps / oracle's bound, {largest} agent{'s' if largest > 1 else ''}")
    axes.legend(fontsize="small")


def _plot_models(results: Results, models: Sequence[Arm], axes: Axes) -> None:
    shown = [(arm, steps) for arm in models if (steps := results.steps(arm))]
    axes.bar(
        [arm.who.replace(", ", "\n") for arm, _ in shown],
        [steps.value for _, steps in shown],
        yerr=_whiskers([steps for _, steps in shown]),
        color="tab:green",
        width=0.6,
        capsize=3,
    )
    axes.set_title("(a) by model", fontsize="medium")
    axes.set_ylabel("average steps L")


def _plot_weaker(results: Results, weaker: Sequence[Arm], axes: Axes) -> None:
    labels = ("MiTa", *(label.replace(" ", "\n") for label in FIGURE_3B))
    for number, (label, arm) in enumerate(zip(labels, weaker, strict=True)):
        steps = results.steps(arm)
        if steps is not None:
            axes.bar(
                label,
                steps.value,
                yerr=_whiskers([steps]),
                color="tab:green",
                alpha=1 - 0.2 * number,
                width=0.6,
                capsize=3,
            )
    full = results.steps(weaker[0])
    if full is not None:
        papers = [full.value + more for more in (0.0, *FIGURE_3B.values())]
        axes.plot(
            labels, papers, "D", color="white", markeredgecolor="black", label="the paper's loss, added"
        )
        axes.set_ylim(top=1.15 * axes.get_ylim()[1])  # room for the legend
        axes.legend(fontsize="small")
    axes.set_title(f"(b) weaker roles, {weaker[0].agents} agents", fontsize="medium")
    axes.set_ylabel("average steps L")
