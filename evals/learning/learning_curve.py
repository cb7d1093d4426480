"""§11.1 of the self-improving-memory paper: how does performance grow with the tasks, and where does it end?

Query-tuning tasks, drawn from every family of the generator, go through the graph `compound_learning` in one
long seeded order, with memory and without, either first in turn. What a task costs is fitted as a function
of its number n by four shapes, compared by Akaike's criterion (AIC): it stays (`constant`), falls for ever,
ever more slowly (`power law`, a·n^-b), falls to nothing (`exponential`, a·e^(-n/t)), or falls to what
experience cannot take away (`ceiling`, c + a·e^(-n/t), named by what it means for success). What is fitted
are the tasks themselves, not a moving average, which would feign certainty. The likelihood is normal for
counts, normal of the logarithm for seconds, and binomial for yes and no. Without memory a constant should be
best: that is the control. Each shape is fitted to the first half alone as well, to see what it says of the
second.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import log, pi
from typing import Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray
from pydantic import Field
from scipy.optimize import minimize

from mneme.cli.tables import Table
from mneme.environments.sql_tuning.tasks import tasks
from mneme.evals.learning.studies import Played, Study, StudyOptions, study
from mneme.evals.report import Progress, Report, Row, framed

Likelihood = Literal["normal", "lognormal", "binomial"]
"""How a task's value scatters: evenly, in proportion, or as yes (1) and no (0)."""
Values = NDArray[np.float64]
Shape = Callable[..., Values]
LEAST, STEP = 1e-9, 1e-5
SETTLED = 20.0
"""By which the part that experience takes away has shrunk where a curve is said to have settled."""


SHAPES: dict[str, tuple[Shape, tuple[str, ...]]] = {
    "constant": (np.full_like, ("c",)),
    "power law": (lambda n, a, b: a * n ** (-b), ("a", "b")),
    "exponential": (lambda n, a, t: a * np.exp(-n / t), ("a", "t")),
    "ceiling": (lambda n, c, a, t: c + a * np.exp(-n / t), ("c", "a", "t")),
}
BOUNDS = {"a": (LEAST, np.inf), "b": (0.0, 5.0), "c": (0.0, np.inf), "t": (1.0, np.inf)}
"""A cost is none below nothing, none that rises, and no fall is over before the first task."""


@dataclass(frozen=True)
class Fit:
    """One shape, fitted: its figures with their standard errors, and its AIC."""

    shape: str
    figures: dict[str, float]
    errors: dict[str, float]
    aic: float

    def at(self, n: Sequence[float] | Values) -> Values:
        """Return the curve at the numbers of tasks."""
        return SHAPES[self.shape][0](np.asarray(n, dtype=float), *self.figures.values())

    def __str__(self) -> str:
        figures = [f"{name} {value:.3g} ± {self.errors[name]:.1g}" for name, value in self.figures.items()]
        settled = [] if self.settled_at is None else [f"settled by task {self.settled_at:.0f}"]
        return "; ".join([", ".join(figures), *settled])

    @property
    def settled_at(self) -> float | None:
        """Return the task by which 95 % of the fall is over; None for a shape that never settles."""
        return self.figures["t"] * log(SETTLED) if self.shape == "ceiling" else None


def fit_all(
    at: Sequence[float] | Values, values: Sequence[float] | Values, likelihood: Likelihood
) -> list[Fit]:
    """Fit every shape to one value for each task number, the best by AIC first.

    Raises ValueError for fewer values than a curve has figures.
    """
    n, y = np.asarray(at, dtype=float), np.asarray(values, dtype=float)
    if len(y) < 5:
        raise ValueError("five tasks at the least make a curve")
    return sorted((_fit(shape, n, y, likelihood) for shape in SHAPES), key=lambda fit: fit.aic)


def weights(fits: Sequence[Fit]) -> list[float]:
    """Return Akaike's weights: how likely each shape is the best of these for new tasks."""
    raw = np.exp([(fits[0].aic - fit.aic) / 2 for fit in fits])
    return [float(each) for each in raw / raw.sum()]


def _fit(shape: str, n: Values, y: Values, likelihood: Likelihood) -> Fit:
    """Look for the most likely figures from several starts."""
    curve, names = SHAPES[shape]

    def against(figures: Values) -> float:
        return _unlikely(curve(n, *figures), y, likelihood)

    bounds = [BOUNDS[name] for name in names]
    found = [
        minimize(against, start, method="Nelder-Mead", bounds=bounds, options={"maxiter": 4_000})
        for start in _starts(names, n, y)
    ]
    best = min(found, key=lambda each: float(each.fun))
    errors = np.sqrt(np.maximum(np.diag(_covariance(curve, best.x, n, y, likelihood)), 0.0))
    count = len(names) + (likelihood != "binomial")  # and the scatter
    return Fit(
        shape=shape,
        figures=dict(zip(names, map(float, best.x), strict=True)),
        errors=dict(zip(names, map(float, errors), strict=True)),
        aic=2 * count + 2 * float(best.fun),
    )


def _unlikely(curve: Values, y: Values, likelihood: Likelihood) -> float:
    """Return the negative log-likelihood of the values, under the most likely scatter."""
    if likelihood == "binomial":
        p = np.clip(curve, LEAST, 1 - LEAST)
        return np.inf if curve.max() > 1 + LEAST else -float(np.sum(y * np.log(p) + (1 - y) * np.log(1 - p)))
    if likelihood == "lognormal":
        logged = np.log(np.maximum(y, LEAST))
        return _unlikely(np.log(np.maximum(curve, LEAST)), logged, "normal") + float(logged.sum())
    scatter = max(float(np.mean((y - curve) ** 2)), LEAST**2)
    return len(y) / 2 * (log(2 * pi * scatter) + 1)


def _starts(names: Sequence[str], n: Values, y: Values) -> Iterator[tuple[float, ...]]:
    """Yield where to begin: the ends of the data say how high, three guesses say how fast."""
    tenth, mean = max(1, len(y) // 10), float(y.mean())
    begin, end = (
        0.9 * float(y[:tenth].mean()),
        0.9 * float(y[-tenth:].mean()),
    )  # a share stays below the whole
    lows = [max(end, mean / 10), mean / 100] if len(names) > 2 else [max(end, mean / 10)]
    for low, (slope, span) in product(lows, ((0.05, 0.02), (0.3, 0.1), (1.0, 0.5))):
        fall = max(begin - low, mean / 20) if "c" in names else 0.9 * mean
        first = {"c": low, "a": fall, "b": slope, "t": max(span * float(n.max()), 1.0)}
        yield tuple(first[name] for name in names)


def _covariance(curve: Shape, figures: Values, n: Values, y: Values, likelihood: Likelihood) -> Values:
    """Return the covariance of the figures: the inverse of Fisher's information."""
    fitted, scales = np.maximum(curve(n, *figures), LEAST), np.maximum(np.abs(figures), STEP)
    moved = (figures + step for step in np.diag(STEP * scales))
    slopes = np.array([(curve(n, *each) - fitted) / STEP for each in moved])  # by a figure's own scale
    scatter = np.full_like(n, max(float(np.mean((y - fitted) ** 2)), LEAST**2))
    if likelihood == "binomial":
        scatter = np.maximum(fitted * (1 - fitted), LEAST)
    elif likelihood == "lognormal":
        scatter = fitted**2 * float(np.mean((np.log(np.maximum(y, LEAST)) - np.log(fitted)) ** 2))
    return np.asarray(np.outer(scales, scales) * np.linalg.pinv((slopes / scatter) @ slopes.T), dtype=float)


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
    made = now.report(rows, summary, *plots, title=title)
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
