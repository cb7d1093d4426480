"""§11.1 of the self-improving-memory paper: how does performance grow with the tasks, and where does it end?

Query-tuning tasks, drawn from every family of the generator, go through the graph `compound_learning` in
one long seeded order, with memory and without, either first in turn. What a task costs is fitted as a
function of its number by four shapes (`fitting.py`), compared by AIC. The likelihood is normal for counts,
normal of the logarithm for seconds, and binomial for yes and no. Without memory a constant should be best:
that is the control. Each shape is fitted to the first half alone as well, to see what it says of the second.
"""

import asyncio
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from pydantic import BaseModel, Field

from mneme.cli.tables import Table
from mneme.core.settings import settings
from mneme.environments.sql_tuning import tasks
from mneme.evals.answering import Identity, identify
from mneme.evals.learning.arms import Team, make_databases
from mneme.evals.learning.fitting import Fit, Likelihood, Values, fit_all, weights
from mneme.evals.measuring import home_beside, ledger_at
from mneme.evals.options import RUNS, Agents, EmbedderName, Fresh, Out
from mneme.evals.report import Journal, Progress, Report, Row, draw, open_journal, table
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.ledger import Ledger

ARMS = {"with memory": 5, "without memory": 0}
"""Cards that a task is shown."""
CLEAR = 2.0
"""Less AIC between two shapes decides nothing."""
WINDOW = 40
"""Tasks over which the plot averages."""
KEPT = (
    *("family", "schema", "iterations", "solved", "first_attempt", "seconds", "calls", "tokens"),
    *("retrieved", "used", "cards", "verified", "answered_by"),
)


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


class Options(BaseModel):
    """How many tasks, in which orders, on how large a database, and who answers."""

    tasks: int = Field(512, ge=20, description="Tasks in each order.")
    seeds: list[int] = Field([1], min_length=1, description="Orders of tasks; all are fitted together.")
    rows: int = Field(8_000, ge=100, description="Rows of each database's table of facts.")
    agents: Agents = "auto"
    embedder: EmbedderName = ""
    out: Out = RUNS
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Run every order with and without memory, going on where a run stopped, and fit the curves."""
    embedder = await open_embedder(options.embedder or settings().embedder)
    who = await identify(options.agents)
    configuration: Row = {"tasks": options.tasks, "rows": options.rows, "agents": who.model_dump()}
    configuration["embedder"] = embedder.name
    journal = open_journal(options.out, "learning_curve", configuration, fresh=options.fresh)
    async with ledger_at(home_beside(journal), embedder) as ledger:
        await _run(options, ledger, who.responder, journal, progress)
    return report(options, journal, who)


async def _run(options: Options, ledger: Ledger, who: str, journal: Journal, progress: Progress) -> None:
    await asyncio.to_thread(make_databases, options.rows)
    plan = [
        (seed, number, task, arm)
        for seed in options.seeds
        for number, task in enumerate(tasks(seed, options.tasks), start=1)
        for arm in (list(ARMS) if number % 2 else list(ARMS)[::-1])
    ]
    for done, (seed, number, task, arm) in enumerate(plan, start=1):
        if (case := f"{arm}/{seed}/{number:04d}") not in journal:
            solved = await Team(f"{arm} {seed}", ledger, who, options.rows, ARMS[arm]).solve(task)
            journal.add(case, {"arm": arm, "seed": seed, "number": number} | {n: solved[n] for n in KEPT})
        progress(done, len(plan), f"{arm}, order {seed}")


def report(options: Options, journal: Journal, who: Identity) -> Report:
    """Fit every quantity of both arms, and say which shapes won, and by how much."""
    rows = [row for row in journal.rows if row["seed"] in options.seeds]
    fitted = [_fitted(quantity, arm, rows) for quantity in QUANTITIES for arm in ARMS]
    found = [each for each in fitted if each]
    return Report(
        name="learning_curve",
        answered_by=str(who),
        raw=journal.path,
        rows=rows,
        summary={"tasks": options.tasks, "seeds": options.seeds, "fits": found},
        tables=[_levels(rows), _curves(found)],
        plots=[
            draw(
                journal.path.with_suffix(".png"),
                f"Learning curves of {options.tasks} query-tuning tasks, averaged over {WINDOW}",
                str(who),
                *(_plot(quantity, rows, found) for quantity in QUANTITIES[:3]),
            )
        ],
        notes=_notes(found, fitted, who),
    )


def _fitted(quantity: Quantity, arm: str, rows: Sequence[Row]) -> Row | None:
    """Return the fits of one quantity; None where it never changes."""
    mine = [row for row in rows if row["arm"] == arm]
    at, values = [row["number"] for row in mine], [float(quantity.of(row)) for row in mine]
    if len(set(values)) < 2:
        return None
    fits = fit_all(at, values, quantity.likelihood)
    half = max(at) // 2
    early = [(n, value) for n, value in zip(at, values, strict=True) if n <= half]
    late = [(n, value) for n, value in zip(at, values, strict=True) if n > half]
    numbers, costs = [n for n, _ in early], [value for _, value in early]
    forecast = {fit.shape: fit for fit in fit_all(numbers, costs, quantity.likelihood)}
    return {
        "quantity": quantity.name,
        "arm": arm,
        "likelihood": quantity.likelihood,
        "tasks": len(values),
        "later": _mean(quantity, [value for _, value in late]),
        "shapes": [
            _shape(fit, fits[0], weight, _mean(quantity, forecast[fit.shape].at([n for n, _ in late])))
            for fit, weight in zip(fits, weights(fits), strict=True)
        ],
    }


def _mean(quantity: Quantity, values: Sequence[float] | Values) -> float:
    """Return the mean that the likelihood is about: of proportions the geometric one."""
    if quantity.likelihood == "lognormal":
        return float(np.exp(np.mean(np.log(np.maximum(values, 1e-9)))))
    return float(np.mean(values))


def _shape(fit: Fit, best: Fit, weight: float, forecast: float) -> Row:
    return {
        "shape": fit.shape,
        "figures": fit.figures,
        "errors": fit.errors,
        "aic": fit.aic,
        "worse_by": fit.aic - best.aic,
        "weight": weight,
        "settled_at": fit.settled_at,
        "forecast": forecast,
    }


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


def _curves(found: Sequence[Row]) -> Table:
    columns = (
        *("quantity", "memory", "likelihood", "shape", "ΔAIC", "weight", "curve"),
        *("second half, foretold", "measured"),
    )
    cells = [
        [
            *(
                (each["quantity"], each["arm"].split()[0], each["likelihood"])
                if number == 0
                else ("", "", "")
            ),
            *(shape["shape"], f"{shape['worse_by']:.1f}", f"{shape['weight']:.2f}", _said(shape)),
            *(shape["forecast"], each["later"] if number == 0 else ""),
        ]
        for each in found
        for number, shape in enumerate(each["shapes"])
    ]
    return table("Curves over the number of the task, best first", columns, cells, figures=False)


def _said(shape: Row) -> str:
    figures = ", ".join(
        f"{name} {value:.3g} ± {shape['errors'][name]:.1g}" for name, value in shape["figures"].items()
    )
    settled = shape["settled_at"]
    return f"{figures}; settled by task {settled:.0f}" if settled else figures


def _notes(found: Sequence[Row], fitted: Sequence[Row | None], who: Identity) -> list[str]:
    notes = [_verdict(each) for each in found]
    flat = [
        f"{quantity.name}, {arm}"
        for (quantity, arm), each in zip(((q, a) for q in QUANTITIES for a in ARMS), fitted, strict=True)
        if each is None
    ]
    if flat:
        notes.append(f"The same in every task, so without a curve: {'; '.join(flat)}.")
    notes += [
        "power law: a·n^-b; exponential: a·e^(-n/t); ceiling: c + a·e^(-n/t); ± is a standard error.",
        "One order of tasks is one path of learning: the errors are those of the tasks, not of other orders.",
    ]
    if not who.is_model:
        notes.append("Answered by rules: the figures show the mechanism, not a language model.")
    return notes


def _verdict(each: Row) -> str:
    """Say which shape is best, or that nothing tells it from a constant."""
    best, about = each["shapes"][0], f"{each['quantity']}, {each['arm']}"
    constant = next(shape for shape in each["shapes"] if shape["shape"] == "constant")
    if constant["worse_by"] <= CLEAR:
        return f"{about}: nothing tells it from a constant, so it shows no learning."
    near = [shape["shape"] for shape in each["shapes"][1:] if shape["worse_by"] <= CLEAR]
    rivals = f", not to be told from {' and '.join(near)}" if near else ""
    return f"{about}: {best['shape']}{rivals} (a constant is worse by {constant['worse_by']:.0f})."


def _plot(quantity: Quantity, rows: Sequence[Row], found: Sequence[Row]) -> Callable[[Axes], None]:
    def plot(axes: Axes) -> None:
        for arm, colour in zip(ARMS, ("tab:blue", "tab:orange"), strict=True):
            mine = sorted((r for r in rows if r["arm"] == arm), key=lambda row: row["number"])
            values = [quantity.of(row) for row in mine]
            width = min(WINDOW, len(values))
            smooth = np.convolve(values, np.ones(width) / width, mode="valid")
            middle = [mine[n + width // 2]["number"] for n in range(len(smooth))]
            axes.plot(middle, smooth, color=colour, alpha=0.5, label=arm)
            for each in (e for e in found if (e["quantity"], e["arm"]) == (quantity.name, arm)):
                best = each["shapes"][0]
                curve = Fit(best["shape"], best["figures"], best["errors"], 0.0, best["aic"])
                at = np.arange(1, mine[-1]["number"] + 1, dtype=float)
                axes.plot(at, curve.at(at), color=colour, linestyle="--", label=f"{arm}: {best['shape']}")
        axes.set_xlabel("task")
        axes.set_ylabel(quantity.name)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize="small")

    return plot
