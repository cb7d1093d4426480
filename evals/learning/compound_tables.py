"""Figures, tables, notes and plots of compound learning, from the rows of solved tasks."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from mneme.api.tables import Table
from mneme.evals.learning.playing import LEARNING_RIVALS, WITH_MEMORY, WITHOUT_MEMORY
from mneme.evals.measuring import interval_of_mean, p_cell, wilcoxon_p
from mneme.evals.report import Row, framed
from mneme.stores.cards.metrics import duplicate_mistakes

CURVE_WINDOW = 8
"""Tasks over which a learning curve is averaged."""
COMPARED_COLUMNS = {
    "iterations": ("iterations", False),
    "first-attempt success": ("first_attempt", True),
    "solved": ("solved", True),
    "time saved by the solution": ("saved", True),
    "model calls": ("calls", False),
    "seconds": ("seconds", False),
    "tokens of what is retrieved": ("shown_tokens", False),
}
"""Metrics that compare two arms task by task: the column, and whether more is better."""
AGAINST = "{theirs:.2f} ({difference:+.2f}: {low:+.2f} to {high:+.2f}){mark}"
MARKS = {"better": " +", "worse": " –", "": ""}
COSTS = ("seconds", "iterations", "calls")


def saved(row: Mapping[str, object]) -> float:
    """Return the share of the query's time that the solution saves; 0 if the task is not solved."""
    if not row["solved"] or not row["baseline_seconds"]:
        return 0.0
    return 1.0 - float(str(row["solution_seconds"])) / float(str(row["baseline_seconds"]))


def measured(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the tasks' rows with computed columns, sorted by seed and number."""
    counted = [
        row
        | {
            "saved": saved(row),
            "cards_retrieved": len(row["retrieved"]),
            "cards_used": len(row["used"]),
            "mistakes_made": len(row["mistakes"]),
        }
        for row in rows
    ]
    numbers = {column: float for column, _ in COMPARED_COLUMNS.values()}
    return pd.DataFrame(counted).astype(numbers).sort_values(["seed", "number"], kind="stable")


def parts_of(played: pd.DataFrame, count: int) -> dict[str, pd.DataFrame]:
    """Return the complete orders of `count` tasks, their ends, and the repeated tasks."""
    third, number = max(1, count // 3), played["number"]
    first = played[number < count]
    parts = {
        "all": first,
        "first third": first[first["number"] < third],
        "last third": first[first["number"] >= count - third],
        "put once more": played[number >= count],
    }
    return {name: part for name, part in parts.items() if len(part)}


def figures_of(order: pd.DataFrame) -> pd.Series:
    """Return the figures of one arm's tasks in one order."""
    retrieved = order["cards_retrieved"].sum()
    return pd.Series(
        {
            **{name: order[column].mean() for name, (column, _) in COMPARED_COLUMNS.items()},
            "speed-up (median)": order["speed_up"].astype(float).fillna(0.0).median(),
            "cards retrieved": order["cards_retrieved"].mean(),
            "cards used": order["cards_used"].mean(),
            "retrieval precision": order["cards_used"].sum() / retrieved if retrieved else np.nan,
            "duplicate mistakes": duplicate_mistakes(order["mistakes"]) or 0.0,
        }
    )


def growth_of(order: pd.DataFrame) -> pd.Series:
    """Return the course and the end of one arm's order."""
    slope = np.polyfit(order["number"], order["iterations"], 1)[0] if len(order) > 1 else 0.0
    return pd.Series(
        {
            "slope of iterations per 10 tasks": 10 * slope,
            "mistakes": order["mistakes_made"].sum(),
            "cards at the end": order["cards"].iloc[-1],
            "verified at the end": order["verified"].iloc[-1],
        }
    )


def spread(part: pd.DataFrame, of: Callable[[pd.DataFrame], pd.Series]) -> pd.DataFrame:
    """Return figures as rows and arms as columns: mean and standard deviation over the orders, if several."""
    orders = part.groupby(["arm", "seed"], sort=False)[[*part.columns]].apply(of)
    by_arm = orders.groupby("arm", sort=False)
    means, deviations = by_arm.mean().T, by_arm.std().T
    cells = means.map("{:.2f}".format) + deviations.map(
        lambda each: "" if pd.isna(each) else f" ± {each:.2f}"
    )
    return cells.where(means.notna(), "–")


def compared(part: pd.DataFrame) -> dict[str, Row]:
    """Return for each rival and figure its mean and how it differs from ours, task by task.

    The interval of 95 % is a bootstrap over the tasks of all orders.
    """
    present = set(part["arm"])
    return {
        arm: {name: _difference(part, arm, *how) for name, how in COMPARED_COLUMNS.items()}
        for arm in LEARNING_RIVALS
        if arm in present
    }


def _difference(part: pd.DataFrame, arm: str, column: str, more_is_better: bool) -> Row:
    by_task = part.pivot_table(index=["seed", "number"], columns="arm", values=column)
    differences = (by_task[arm] - by_task[WITH_MEMORY]).dropna()
    low, high = interval_of_mean(differences)
    verdict = "" if low <= 0 <= high else "better" if (low > 0) == more_is_better else "worse"
    return {
        "theirs": float(by_task[arm].mean()),
        "ours": float(by_task[WITH_MEMORY].mean()),
        "difference": float(differences.mean()),
        "low": low,
        "high": high,
        "orders": differences.groupby("seed").mean().tolist(),
        "verdict": verdict,
    }


def significance(parts: Mapping[str, pd.DataFrame]) -> dict[str, Row]:
    """Return p of the same tasks with and without memory, and what memory saves in the last third."""
    found = {}
    for name in COSTS:
        whole, end = (
            parts[part].pivot_table(index=["seed", "number"], columns="arm", values=name)
            for part in ("all", "last third")
        )
        saving = 1.0 - end[WITH_MEMORY].mean() / end[WITHOUT_MEMORY].mean()
        found[name] = {"p": wilcoxon_p(whole[WITH_MEMORY] - whole[WITHOUT_MEMORY]), "saved": float(saving)}
    return found


def disputes(part: pd.DataFrame) -> dict[str, int]:
    """Count the decisions of our team's disputes."""
    opened = part.loc[part["arm"] == WITH_MEMORY, "disputes"].explode().dropna()
    return {str(k): int(n) for k, n in opened.map(lambda each: each["recommendation"]).value_counts().items()}


def tables(parts: Mapping[str, pd.DataFrame], compared: Mapping[str, Mapping[str, Row]]) -> list[Table]:
    """Return the figures with memory and without by part, how orders end, and each rival beside ours."""
    pair = pd.concat(
        {
            part: spread(frame[frame["arm"].isin([WITH_MEMORY, WITHOUT_MEMORY])], figures_of)
            for part, frame in parts.items()
            if part != "put once more"
        },
        axis=1,
    )
    pair.columns = [f"{arm}: {part}" for part, arm in pair.columns]
    orders = parts["all"]["seed"].nunique()
    made = [
        framed(f"Mean and standard deviation over {orders} orders", pair.rename_axis("")),
        framed("Learning", spread(parts["all"], growth_of).rename_axis("")),
    ]
    for part, rivals in compared.items():
        cells = {
            name: {WITH_MEMORY: f"{next(iter(rivals.values()))[name]['ours']:.2f}"}
            | {arm: AGAINST.format(**of[name], mark=MARKS[of[name]["verdict"]]) for arm, of in rivals.items()}
            for name in COMPARED_COLUMNS
        }
        title = f"{part.capitalize()}: the rival, its difference from ours (95 %)"
        made.append(framed(title, pd.DataFrame(cells).T.rename_axis("")))
    return made


def notes(tested: Mapping[str, Row], decided: Mapping[str, int]) -> list[str]:
    """Return what the tables leave out."""
    taken = ", ".join(f"{100 * each['saved']:.0f} % of the {name}" for name, each in tested.items())
    wilcoxon = ", ".join(f"{name} p={p_cell(each['p'])}" for name, each in tested.items())
    return [
        f"In the last third memory saves {taken} (paper, one example: 53 % of the time).",
        f"The same tasks with and without, Wilcoxon: {wilcoxon}.",
        f"Disputes with memory: {dict(decided) or 'none'}.",
        "Solutions are timed, so two runs differ: in seconds, time saved, speed-up always; where a solution "
        "is about as fast as is wanted, also in whether it solves the task, and in what follows from that.",
        "A mark tells where the interval leaves 0 out: + the rival is better, – ours is. The intervals "
        "take tasks for independent; within an order they are not.",
    ]


def plot(played: pd.DataFrame, axes: Axes) -> None:
    """Draw the learning curves of all arms: a moving mean over the orders."""
    means = played.pivot_table(index="number", columns="arm", values="iterations", sort=False).sort_index()
    curve = means.rolling(CURVE_WINDOW, min_periods=1).mean()
    curve.plot(ax=axes, xlabel="task", ylabel="drafts per task").set_ylim(bottom=0)
