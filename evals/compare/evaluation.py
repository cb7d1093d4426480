"""Play every memory in every course at every budget, and compare them in one table for each family of work.

A course is the same for every memory: same seed, same token budget of recalled text, same responder. With
rules, a few fixed rules, which know the wordings of our own courses, derive an answer from the recalled text:
this compares what a memory stores and finds, not a model's use of it.
"""

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from mneme.core.durable import write_durably
from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.evals.compare.finding import COURSE_FAMILIES, NAMED_MEMORIES, code_of, families_with, memory_named
from mneme.evals.compare.playing import Case, play
from mneme.evals.compare.public import files_in
from mneme.evals.measuring import holm, interval_of_mean, p_cell, processes, wilcoxon_p
from mneme.evals.options import Agents, Jobs, Positive, RunOptions, identify, jobs_of
from mneme.evals.report import Journal, Progress, Report, Row, file_digest, framed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BASELINE = "none"
"""The memory that the others are compared with."""
QUICK_SEEDS, QUICK_SIZE = 2, 12
PAGE_FILE = Path(__file__).with_name("page.html")
ROWS_MARKER = "/*rows*/"


class Options(RunOptions):
    """Memories, families of work, sizes, and responder."""

    memories: list[str] = Field(
        [],
        description="A memory, by name or as module:Class; default: all.",
        json_schema_extra={"option": "memory"},
    )
    work: list[str] = Field([], description=f"A family of work: {', '.join(COURSE_FAMILIES)}; default: all.")
    tokens: list[Annotated[int, Field(ge=20)]] = Field(
        [200], min_length=1, description="Tokens of a recall.", json_schema_extra={"option": "tokens"}
    )
    courses: Positive = Field(10, description="Courses of each family.")
    tasks: Positive = Field(24, description="Tasks of a course; a meeting counts as four.")
    agents: Agents = "rules"
    quick: bool = Field(False, description=f"{QUICK_SEEDS} short courses of each family, in a few minutes.")
    data: Path | None = Field(
        None, description="A folder of public conversations, to play as a family of their own."
    )
    jobs: Jobs = 0


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Play all courses, going on where a run stopped."""
    memories = [*dict.fromkeys([*options.memories, BASELINE])] if options.memories else [*NAMED_MEMORIES]
    for each in memories:
        memory_named(each)
    codes = {each: code_of(each) for each in memories}
    there = await asyncio.to_thread(families_with, options.data)
    if unknown := [each for each in options.work if each not in there]:
        raise BadInput(f"There is no work {unknown[0]!r}.", f"There is: {', '.join(there)}.")
    who, embedder = await identify(options.agents), options.embedder or settings().embedder
    seeds, size = (QUICK_SEEDS, QUICK_SIZE) if options.quick else (options.courses, options.tasks)
    given = (size, who.responder, embedder, str(options.data or ""))
    cases = {
        case.name: case
        for family in options.work or there
        for seed in range(1, seeds + 1)
        for budget in options.tokens
        for memory in memories
        for case in [Case(family, memory, budget, seed, *given, codes[memory])]
    }
    told = {"who": who.model_dump(), "embedder": (await options.opened_embedder()).name, "size": size}
    files = await asyncio.to_thread(files_in, options.data) if options.data else []
    journal = options.journal("compare", {**told, "data": {each.name: file_digest(each) for each in files}})
    jobs = jobs_of(options.jobs, who.is_model)
    with processes(jobs, play) as player:
        rows = await journal.play(cases, player, progress, concurrency=jobs)
    return _report(rows, journal, str(who))


def _report(rows: list[Row], journal: Journal, who: str) -> Report:
    tasks = tasks_of(rows)
    tables = [
        framed(f"{family}: recall of {budget} tokens", table_of(part))
        for (family, budget), part in tasks.groupby(["family", "budget"], sort=False)
    ]
    summary = tasks.groupby(["family", "budget", "memory"], sort=False)[["success", "steps", "stale"]].mean()
    largest = tasks[tasks["budget"] == tasks["budget"].max()].groupby("family", sort=False)
    made = journal.report(
        who,
        json.loads(summary.reset_index().to_json(orient="records")),
        tables,
        [
            "± is the half width of the 95 % interval of the difference to none, over the same tasks.",
            "p: Wilcoxon's signed-rank test on the courses, corrected for the number of memories (Holm).",
            "misled: answers or tries, a task, that something outdated or false led to.",
            "asked: questions of the memory's own to a model, a task; read and written: tokens of these. "
            "shown: tokens of a recall.",
        ],
        rows,
    )
    bars = [partial(_bars, of=of, title=str(family)) for family, of in largest]
    made.with_plots("Which memory for which work", *bars)
    made.plots.insert(0, journal.path.with_suffix(".html"))
    write_durably(made.plots[0], _page(rows, who), 0o666)
    return made


def tasks_of(rows: Sequence[Row]) -> pd.DataFrame:
    """Return one line for each task, with what its course cost."""
    return pd.DataFrame([
        {**{name: row[name] for name in row if name != "tasks"}, "number": number, **task}
        for row in rows
        for number, task in enumerate(row["tasks"])
    ])  # fmt: skip


def table_of(tasks: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each memory: its results compared with those without memory, and its cost."""
    keyed = tasks.set_index(["seed", "number"])
    # Aligned by seed and number: the same tasks without memory.
    beside = keyed[keyed["memory"] == BASELINE]["success"].astype(float)
    lines, p = dict[str, Row](), dict[str, float | None]()
    for memory, of in keyed.groupby("memory", sort=False):
        gains = of["success"].astype(float) - beside
        low, high = interval_of_mean(gains.to_numpy())
        courses = of.groupby("seed").first()
        # By course, not by task: tasks of one course are not independent.
        p[str(memory)] = wilcoxon_p(gains.groupby("seed").mean().to_numpy())
        lines[str(memory)] = {
            "done %": round(100 * of["success"].mean()),
            "gain": f"{100 * gains.mean():+.0f} ± {50 * (high - low):.0f}",
            "steps": round(of["steps"].mean(), 1),
            "misled": round(of["stale"].mean(), 2),
            # A course's costs stand on each of its tasks: `first` counts them once.
            "shown": round(courses["shown"].sum() / max(1, courses["recalls"].sum())),
            "asked": round(courses["questions"].sum() / len(of), 1),
            "read": courses["prompt_tokens"].sum() / len(of),
            "written": courses["reply_tokens"].sum() / len(of),
            "ms a recall": 1000 * courses["recalling"].sum() / max(1, courses["recalls"].sum()),
            "ms an event": 1000
            * (courses["observing"] + courses["learning"]).sum()
            / courses["events"].sum(),
            "kB": courses["bytes"].mean() / 1000,
        }
    adjusted = holm(p)
    frame = pd.DataFrame.from_dict(lines, orient="index")
    frame.insert(2, "p", [p_cell(adjusted.get(each)) for each in lines])
    return frame.rename_axis("memory").sort_values("done %", ascending=False, kind="stable")


def _bars(axes: "Axes", of: pd.DataFrame, title: str) -> None:
    """Draw the share of a family's tasks done, by memory."""
    done = of.groupby("memory", sort=False)["success"].mean().sort_values()
    axes.barh(done.index, 100 * done.to_numpy(dtype=np.float64))
    axes.set(title=title, xlabel="tasks done, %", xlim=(0, 100))


def _page(rows: Sequence[Row], who: str) -> bytes:
    """Return one page, without any other file, in which a person can filter the rows."""
    kept = [
        {**row, "done": sum(each["success"] for each in row["tasks"]), "of": len(row["tasks"])}
        for row in rows
    ]
    for row in kept:
        row["misled"] = sum(each["stale"] for each in row.pop("tasks"))
    # A recalled "</script>" must not end the page's script.
    data = json.dumps({"who": who, "rows": kept}).replace("</", "<\\/")
    return PAGE_FILE.read_text(encoding="utf-8").replace(ROWS_MARKER, data).encode()
