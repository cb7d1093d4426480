"""§11.1 of the self-improving-memory paper: how does performance grow with the tasks, and where does it end?

Query-tuning tasks, drawn from every family of the generator, go through the graph `compound_learning` in
one long seeded order, with memory and without, either first in turn. What a task costs is fitted as a
function of its number by four shapes (`fitting.py`), compared by AIC. The likelihood is normal for counts,
normal of the logarithm for seconds, and binomial for yes and no. Without memory a constant should be best:
that is the control. Each shape is fitted to the first half alone as well, to see what it says of the second.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from pydantic import Field

from mneme.cli.tables import Table
from mneme.environments.sql_tuning import tasks
from mneme.evals.learning.fitting import Likelihood, Values, fit_all, weights
from mneme.evals.learning.studies import Played, Study, StudyOptions, study
from mneme.evals.report import Progress, Report, Row, framed

ARMS = {"with memory": 5, "without memory": 0}
"""Cards that a task is shown."""
MIN_DELTA_AIC = 2.0
"""Less AIC between two shapes decides nothing."""
WINDOW = 40
"""Tasks over which the plot averages."""


QUANTITIES: dict[str, tuple[Callable[[Row], float], Likelihood]] = {
    "drafts beyond the first": (lambda row: row["iterations"] - 1.0, "normal"),
    "not solved by the first draft": (lambda row: 1.0 - row["first_attempt"], "binomial"),
    "not solved": (lambda row: 1.0 - row["solved"], "binomial"),
    "seconds": (lambda row: max(row["seconds"], 1e-3), "lognormal"),
    "model calls": (lambda row: float(row["calls"]), "normal"),
    "tokens": (lambda row: float(row["tokens"]), "normal"),
}
"""What a task costs: how that is read from its row, and how it scatters."""


class Options(StudyOptions):
    """How many tasks, in which orders, on how large a database, and who answers."""

    tasks: int = Field(512, ge=20, description="Tasks in each order.")
    seeds: list[int] = Field([1], min_length=1, description="Orders of tasks; all are fitted together.")


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Run every order with and without memory, going on where a run stopped, and fit the curves."""
    async with study("learning_curve", options, ("tasks",), progress) as now:
        await now.play(
            [
                Played(arm, f"{arm} {seed}", task, {"seed": seed, "number": number}, ARMS[arm])
                for seed in options.seeds
                for number, task in enumerate(tasks(seed, options.tasks), start=1)
                for arm in (list(ARMS) if number % 2 else list(ARMS)[::-1])
            ]
        )
        return report(now, options)


def report(now: Study, options: Options) -> Report:
    """Fit every quantity of both arms, and say which shapes won, and by how much."""
    rows = [row for row in now.journal.rows if row["seed"] in options.seeds]
    values = pd.DataFrame(
        {
            "arm": row["arm"],
            "number": row["number"],
            **{name: of(row) for name, (of, _) in QUANTITIES.items()},
        }
        for row in rows
    ).sort_values("number", kind="stable")
    shapes = pd.concat(
        [
            _fitted(name, likelihood, arm, own["number"].to_numpy(), own[name].to_numpy(dtype=float))
            for name, (_, likelihood) in QUANTITIES.items()
            for arm, own in values.groupby("arm")
            if own[name].nunique() > 1
        ]
    )
    fits = shapes.drop(columns="fit")
    summary = {"tasks": options.tasks, "seeds": options.seeds, "fits": fits.to_dict("records")}
    plots = (partial(_plot, name, values, shapes) for name in [*QUANTITIES][:3])
    title = f"Learning curves of {options.tasks} query-tuning tasks, averaged over {WINDOW}"
    made = now.report("learning_curve", rows, summary, *plots, title=title)
    made.tables += [
        _levels(values),
        framed("Curves over the task's number, best first", fits, figures=False),
    ]
    made.notes += [
        *(_verdict(str(name), str(arm), own) for (name, arm), own in shapes.groupby(["quantity", "arm"])),
        "What is the same in every task has no curve. measured: in the second half; forecast: for it, from "
        "the first half alone.",
        "power law: a·n^-b; exponential: a·e^(-n/t); ceiling: c + a·e^(-n/t); ± is a standard error.",
        "One order of tasks is one path of learning: the errors are those of the tasks, not of other orders.",
    ]
    return made


def _fitted(name: str, likelihood: Likelihood, arm: object, at: Values, values: Values) -> pd.DataFrame:
    """Return the fits of one quantity, best first, and what the first half predicts of the second."""
    is_early, mean = at <= at.max() // 2, _mean_by(likelihood)
    fits = fit_all(at, values, likelihood)
    early = {fit.shape: fit for fit in fit_all(at[is_early], values[is_early], likelihood)}
    return pd.DataFrame(
        {
            "quantity": name,
            "arm": arm,
            "measured": mean(values[~is_early]),
            "shape": fit.shape,
            "ΔAIC": fit.aic - fits[0].aic,
            "weight": weight,
            "curve": str(fit),
            "forecast": mean(early[fit.shape].at(at[~is_early])),
            "fit": fit,
        }
        for fit, weight in zip(fits, weights(fits), strict=True)
    )


def _mean_by(likelihood: Likelihood) -> Callable[[Values], float]:
    """Return the mean that the likelihood is about: of proportions the geometric one."""
    if likelihood == "lognormal":
        return lambda values: float(np.exp(np.mean(np.log(np.maximum(values, 1e-9)))))
    return lambda values: float(np.mean(values))


def _levels(values: pd.DataFrame) -> Table:
    """Show the quantities by stretches of the order, as they were measured."""
    most = int(values["number"].max())
    ends = sorted({*(round(most * share) for share in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1))})
    spans = pd.cut(values["number"], [0, *ends], labels=[f"to {end}" for end in ends])
    means = values.groupby([spans, "arm"], observed=True)[[*QUANTITIES]].mean().unstack("number")
    levels = means.stack(level=0, future_stack=True).swaplevel().rename_axis(["quantity", "arm"])
    return framed("What a task costs, by stretches of the order", levels.loc[[*QUANTITIES]])


def _verdict(name: str, arm: str, shapes: pd.DataFrame) -> str:
    """Say which shape is best, or that nothing tells it from a constant."""
    worse = shapes.set_index("shape")["ΔAIC"]
    if worse["constant"] <= MIN_DELTA_AIC:
        return f"{name}, {arm}: nothing tells it from a constant, so it shows no learning."
    near = [shape for shape in worse.index[1:] if worse[shape] <= MIN_DELTA_AIC]
    rivals = f", not to be told from {' and '.join(near)}" if near else ""
    return f"{name}, {arm}: {worse.index[0]}{rivals} (a constant is worse by {worse['constant']:.0f})."


def _plot(name: str, values: pd.DataFrame, shapes: pd.DataFrame, axes: Axes) -> None:
    """Draw moving averages, and the best curve of each arm that varies."""
    means = values.pivot_table(index="number", columns="arm", values=name)
    means.rolling(WINDOW, min_periods=1, center=True).mean().plot(
        ax=axes, alpha=0.5, xlabel="task", ylabel=name
    )
    best = shapes[(shapes["quantity"] == name) & (shapes["ΔAIC"] == 0)]
    for arm, fit in zip(best["arm"], best["fit"], strict=True):
        axes.plot(means.index, fit.at(means.index), "--", label=f"{arm}: {fit.shape}")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small")
