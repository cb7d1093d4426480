"""§11.1 of the self-improving-memory paper: how does performance grow with the tasks, and where does it end?

Query-tuning tasks, drawn from every family of the generator, go through the graph `compound_learning` in
one long seeded order, with memory and without, either first in turn. What a task costs is fitted as a
function of its number by four shapes (`fitting.py`), compared by AIC. The likelihood is normal for counts,
normal of the logarithm for seconds, and binomial for yes and no. Without memory a constant should be best:
that is the control. Each shape is fitted to the first half alone as well, to see what it says of the second.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from statistics import fmean
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from pydantic import Field

from mneme.cli.tables import Table
from mneme.environments.sql_tuning import tasks
from mneme.evals.learning.fitting import Likelihood, Values, fit_all, weights
from mneme.evals.learning.studies import Played, Study, StudyOptions, study
from mneme.evals.report import Progress, Report, Row, table

ARMS = {"with memory": 5, "without memory": 0}
"""Cards that a task is shown."""
CLEAR = 2.0
"""Less AIC between two shapes decides nothing."""
WINDOW = 40
"""Tasks over which the plot averages."""


class Quantity(NamedTuple):
    """What a task costs, how that is read from its row, and how it scatters."""

    name: str
    of: Callable[[Row], float]
    likelihood: Likelihood


QUANTITIES = (
    Quantity("drafts beyond the first", lambda row: row["iterations"] - 1.0, "normal"),
    Quantity("not solved by the first draft", lambda row: 1.0 - row["first_attempt"], "binomial"),
    Quantity("not solved", lambda row: 1.0 - row["solved"], "binomial"),
    Quantity("seconds", lambda row: max(row["seconds"], 1e-3), "lognormal"),
    Quantity("model calls", lambda row: float(row["calls"]), "normal"),
    Quantity("tokens", lambda row: float(row["tokens"]), "normal"),
)


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
    by_arm = {arm: [row for row in rows if row["arm"] == arm] for arm in ARMS}
    varied = {
        (quantity, arm): mine
        for quantity in QUANTITIES
        for arm, mine in by_arm.items()
        if len({quantity.of(row) for row in mine}) > 1
    }
    fitted = {about: _fitted(about[0], mine) for about, mine in varied.items()}
    fits = [{"quantity": quantity.name, "arm": arm, **each} for (quantity, arm), each in fitted.items()]
    made = now.report(
        "learning_curve",
        rows,
        {"tasks": options.tasks, "seeds": options.seeds, "fits": fits},
        *(partial(_plot, quantity, varied) for quantity in QUANTITIES[:3]),
        title=f"Learning curves of {options.tasks} query-tuning tasks, averaged over {WINDOW}",
    )
    columns = ("quantity", "memory", "measured", "shape", "ΔAIC", "weight", "curve", "foretold")
    cells = [
        [each["quantity"], each["arm"].split()[0], each["later"], *_cells(shape)]
        for each in fits
        for shape in each["shapes"]
    ]
    made.tables += [
        _levels(rows),
        table("Curves over the task's number, best first", columns, cells, figures=False),
    ]
    made.notes += [
        *map(_verdict, fits),
        "What is the same in every task has no curve. measured: in the second half; foretold: for it, from "
        "the first half alone.",
        "power law: a·n^-b; exponential: a·e^(-n/t); ceiling: c + a·e^(-n/t); ± is a standard error.",
        "One order of tasks is one path of learning: the errors are those of the tasks, not of other orders.",
    ]
    return made


def _fitted(quantity: Quantity, rows: Sequence[Row]) -> Row:
    """Return the fits of one quantity, and what the first half predicts of the second."""
    at, values = np.array([row["number"] for row in rows]), np.array([quantity.of(row) for row in rows])
    fits, is_early = fit_all(at, values, quantity.likelihood), at <= at.max() // 2
    early = {fit.shape: fit for fit in fit_all(at[is_early], values[is_early], quantity.likelihood)}
    return {
        "likelihood": quantity.likelihood,
        "tasks": len(values),
        "later": _mean(quantity, values[~is_early]),
        "shapes": [
            asdict(fit)
            | {"worse_by": fit.aic - fits[0].aic, "weight": weight, "settled_at": fit.settled_at}
            | {"forecast": _mean(quantity, early[fit.shape].at(at[~is_early]))}
            for fit, weight in zip(fits, weights(fits), strict=True)
        ],
    }


def _mean(quantity: Quantity, values: Values) -> float:
    """Return the mean that the likelihood is about: of proportions the geometric one."""
    if quantity.likelihood == "lognormal":
        return float(np.exp(np.mean(np.log(np.maximum(values, 1e-9)))))
    return float(np.mean(values))


def _levels(rows: Sequence[Row]) -> Table:
    """Show the quantities by stretches of the order, as they were measured."""
    most = max(row["number"] for row in rows)
    ends = sorted({*(round(most * share) for share in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1))})
    spans = list(zip([0, *ends], ends, strict=False))
    columns = ["mean of the tasks", *(f"{first + 1}–{last}" for first, last in spans)]
    cells = [
        [f"{quantity.name}, {arm}"]
        + [
            fmean(quantity.of(r) for r in rows if r["arm"] == arm and first < r["number"] <= last)
            for first, last in spans
        ]
        for quantity in QUANTITIES
        for arm in ARMS
    ]
    return table("What a task costs", columns, cells)


def _cells(shape: Row) -> list[object]:
    figures = ", ".join(
        f"{name} {value:.3g} ± {shape['errors'][name]:.1g}" for name, value in shape["figures"].items()
    )
    settled = f"; settled by task {shape['settled_at']:.0f}" if shape["settled_at"] else ""
    said = (shape["shape"], f"{shape['worse_by']:.1f}", f"{shape['weight']:.2f}", figures + settled)
    return [*said, shape["forecast"]]


def _verdict(each: Row) -> str:
    """Say which shape is best, or that nothing tells it from a constant."""
    best, about = each["shapes"][0], f"{each['quantity']}, {each['arm']}"
    constant = next(shape for shape in each["shapes"] if shape["shape"] == "constant")
    if constant["worse_by"] <= CLEAR:
        return f"{about}: nothing tells it from a constant, so it shows no learning."
    near = [shape["shape"] for shape in each["shapes"][1:] if shape["worse_by"] <= CLEAR]
    rivals = f", not to be told from {' and '.join(near)}" if near else ""
    return f"{about}: {best['shape']}{rivals} (a constant is worse by {constant['worse_by']:.0f})."


def _plot(quantity: Quantity, varied: Mapping[tuple[Quantity, str], Sequence[Row]], axes: Axes) -> None:
    """Draw moving averages, and the best curve of each arm that varies."""
    for arm, colour in zip(ARMS, ("tab:blue", "tab:orange"), strict=True):
        mine = sorted(varied.get((quantity, arm), ()), key=lambda row: row["number"])
        if not mine:
            continue
        at, values = np.array([row["number"] for row in mine]), np.array([quantity.of(row) for row in mine])
        width = min(WINDOW, len(values))
        mean = np.convolve(values, np.ones(width) / width, mode="valid")
        axes.plot(at[width // 2 :][: len(mean)], mean, color=colour, alpha=0.5, label=arm)
        best = fit_all(at, values, quantity.likelihood)[0]
        axes.plot(at, best.at(at), color=colour, linestyle="--", label=f"{arm}: {best.shape}")
    axes.set(xlabel="task", ylabel=quantity.name)
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small")
