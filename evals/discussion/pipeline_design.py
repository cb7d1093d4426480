"""Table 2 and figure 3: the case study (§5), with intrinsic memory and without, judged by five metrics.

Both arms have the same team, task and context; only the memory differs. A run's seed is that of every reply,
drawn at the given temperature, and the order in which the workers speak, the same in both arms; by rules the
order alone tells two runs apart. `--wording printed` takes figure 5's task and figure 6's judge word by word,
instead of ours. `--context-tokens` sets another size of the context: a memory helps only where not everything
fits into it.

Under rules, agents repeat what the task or their duties name, and there is no judge: only the course of the
discussions is shown.
"""

import json
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from statistics import fmean
from typing import Any, Literal, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from pydantic import Field
from scipy.stats import ranksums

from mneme.api.tables import Table
from mneme.core.errors import BadInput
from mneme.evals.discussion.judges import SCORES, Design, judge_as_printed, judge_design
from mneme.evals.measuring import temporary_ledger
from mneme.evals.options import Agents, Identity, Role, RunOptions, identify
from mneme.evals.report import Journal, Progress, Report, Row, table
from mneme.graphs import intrinsic_memory
from mneme.library.teams.document import MINUTES
from mneme.library.teams.team import Delegated, Team, load_team
from mneme.models.asking.asking import SEED, ask
from mneme.models.asking.responders import drawn
from mneme.nodes.discussion.context import DiscussionContext
from mneme.prompts.discussion.document import UNSAID
from mneme.prompts.prompt import Prompt
from mneme.stores.discussions.discussions import Discussions
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger

Wording = Literal["ours", "printed"]
OWNER = "eval"
TASK_FILE = Path(__file__).parent / "data" / "pipeline_task.md"
TASKS: dict[Wording, Path] = {"ours": TASK_FILE, "printed": TASK_FILE.with_name("pipeline_task_printed.md")}
MIN_CONTEXT = 512
DISCUSSION_FIELDS: Any = DiscussionContext.model_fields
JUDGES: dict[Wording, Prompt[Design, Any]] = {"ours": judge_design, "printed": judge_as_printed}

Arm = Literal["none", "intrinsic"]
METRICS = ("scalability", "reliability", "usability", "cost_effectiveness", "documentation")
"""The paper's metrics (table 2); our other two are about the file that the task requires."""
ARMS: tuple[Arm, ...] = ("none", "intrinsic")
NAMES = {"none": "baseline", "intrinsic": "intrinsic memory"}
PAPER: dict[str, tuple[float, float, float]] = {
    "tokens": (36077, 47830, 0.0195),
    "turns": (14.3, 16, 0.2632),
    "scalability": (5, 7, 0.0041),
    "reliability": (3.56, 4.89, 0.005),
    "usability": (3, 3.67, 0.0948),
    "cost_effectiveness": (3.22, 4.67, 0.004),
    "documentation": (2, 3.56, 0.0017),
}
"""Table 2: baseline, intrinsic memory, p."""
FIGURES = (*PAPER, "completeness", "consistency", "components", "parts of each", "agreed")
THOUSANDS = 10_000
"""Means from this value are printed in thousands, so that table 2 fits a terminal of 80 columns."""


class Options(RunOptions):
    """Number of runs, the context, the team, the responders and judges."""

    runs: int = Field(10, ge=2, description="Discussions in each arm.")
    context_tokens: int = DISCUSSION_FIELDS["context_tokens"]
    agents: Agents = "auto"
    judge: Role = ""
    experts: str = Field(
        "data_pipeline", description="The team that discusses: a shipped one's name, or a file."
    )
    wordings: list[Wording] = Field(
        ["ours"], min_length=1, description="Task and judge: ours, or as figures 5 and 6 print them."
    )
    temperature: float = Field(0.7, ge=0, le=2, description="Of the agents' replies; the judge's is 0.")
    quick: bool = Field(False, description="A short run: 2 discussions in each arm.")

    @property
    def sized(self) -> "Options":
        """Return the options, with the sizes of a short run if one is requested. Raises BadInput."""
        if 0 < self.context_tokens < MIN_CONTEXT:
            raise BadInput(
                f"--context-tokens {self.context_tokens}: {MIN_CONTEXT} are the least, 0 the team's."
            )
        return self.model_copy(update={"runs": 2}) if self.quick else self


class Case(NamedTuple):
    """One discussion: the wording of its task, its memory and its repetition."""

    wording: Wording
    arm: Arm
    seed: int

    @property
    def name(self) -> str:
        return f"{self.wording}/{self.arm}/{self.seed}"


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Hold and judge every discussion; an interrupted run is continued."""
    team = load_team(options.experts)
    given = options.model_copy(update={"context_tokens": options.context_tokens or team.context_tokens})
    sized = given.sized
    who, judge = await identify(sized.agents), await identify(sized.judge or sized.agents)
    tasks = {wording: TASKS[wording].read_text(encoding="utf-8") for wording in sized.wordings}
    configuration = {
        "agents": who.model_dump(),
        "judge": judge.model_dump(),
        "team": team.model_dump(mode="json"),
        "tasks": tasks,
        "temperature": sized.temperature,
        "context_tokens": sized.context_tokens,
        "scores": SCORES,
    }
    journal = sized.journal("pipeline_design", configuration)
    plan = [Case(*each) for each in product(sized.wordings, ARMS, range(sized.runs))]
    plan.sort(key=lambda case: (case.wording, case.seed))

    async def one(case: Case) -> Row:
        held = await _held(sized, reordered(team, case.seed), tasks[case.wording], case, who)
        found = await _judged(case.wording, held, team, judge) if judge.is_model else {}
        return {**case._asdict(), **held, **found}

    rows = await journal.play({case.name: case for case in plan}, one, progress)
    return _report(sized, journal, rows, (who, judge))


async def _judged(wording: Wording, held: Row, team: Team, judge: Identity) -> Row:
    """Judge a design by the question that goes with its task, each score justified."""
    parts = team.document
    design = Design(
        document=json.dumps(held["document"], indent=1, ensure_ascii=False),
        report="\n\n".join(f"{name}: {text}" for name, text in held["report"].items()),
        specification=[*parts.fields, f"{parts.item} 1", *parts.ratings, *parts.item_fields],
    )
    answered = await ask(JUDGES[wording], design, judge.responder, lane="background")
    return {"judgement": answered.value.model_dump(), "judged_by": answered.responder}


async def _held(options: Options, team: Team, task: str, case: Case, who: Identity) -> Row:
    context = DiscussionContext(
        team=OWNER,
        agents=who.responder,
        memory=case.arm,
        context_tokens=options.context_tokens,
        max_turns=team.max_turns,
    )
    async with temporary_ledger(await options.opened_embedder()) as ledger:
        # The same seed in both arms: they differ in the memory alone.
        with drawn(seed=SEED + case.seed, temperature=options.temperature):
            return await hold(case.name.replace("/", "-"), task, team, context, ledger)


def reordered(team: Team, seed: int) -> Team:
    """Return a team whose workers speak in another order, which makes runs by rules independent."""
    if not isinstance(team.speakers, Delegated):
        return team
    workers = list(team.speakers.workers)
    Random(seed).shuffle(workers)  # noqa: S311  (no secret)
    speakers = team.speakers.model_copy(update={"workers": workers})
    return team.model_copy(update={"speakers": speakers})


async def hold(discussion_id: str, task: str, team: Team, context: DiscussionContext, ledger: Ledger) -> Row:
    """Hold a discussion to its end; return its results and every turn."""
    graph = intrinsic_memory.builder.compile(store=LedgerStore(ledger))
    given: Any = {"task": task, "team": team.model_dump(mode="json"), "discussion_id": discussion_id}
    result = await graph.ainvoke(given, context=context)
    turns = await Discussions(ledger, context.team).conversation(discussion_id).all(result["turn"])
    return {
        "ended": result["ended"],
        "turns": result["turn"],
        "tokens": result["tokens"],
        "document": {name: part for name, part in result["document"].items() if name != MINUTES},
        "report": result["report"],
        "answered_by": result["answered_by"],
        "transcript": [turn.model_dump(mode="json") for turn in turns],
    }


def _report(options: Options, journal: Journal, rows: list[Row], people: tuple[Identity, Identity]) -> Report:
    (who, judge), size = people, options.context_tokens
    fields = load_team(options.experts).document.item_fields
    by_wording = {
        wording: summarise([row for row in rows if row["wording"] == wording], fields)
        for wording in options.wordings
    }
    main = by_wording[options.wordings[0]]
    answered_by = f"{who}; judged by {judge}" if str(judge) != str(who) else str(who)
    title = f"Pipeline design: {options.runs} discussions each, {size} tokens of context"
    said = f"Table 2: mean ± sd of {options.runs} discussions each, {size} tokens of context"
    printed = {"ours": "", "printed": ", task as printed"}
    return journal.report(
        answered_by,
        {"context_tokens": size, "runs": options.runs, "wordings": by_wording},
        [table_2(of, said + printed[wording]) for wording, of in by_wording.items()],
        notes(main, judge),
        rows,
    ).with_plots(title, partial(plot_metrics, main))


def summarise(rows: Sequence[Row], item_fields: Iterable[str]) -> Row:
    """Return each figure's values, mean, median and spread in both arms, and the rank-sum test's p.

    There are scores only where a judge answered.
    """
    fields = list(item_fields)
    frame = pd.DataFrame([{"arm": row["arm"], **_figures(row, fields)} for row in rows])
    by_arm = frame.groupby("arm")
    return {name: _compared(by_arm[name]) for name in FIGURES if name in frame}


def _figures(row: Row, fields: Sequence[str]) -> dict[str, float]:
    components = [each for each in row["document"].values() if isinstance(each, dict)]
    said = [sum(each[name] != UNSAID for name in fields) for each in components]
    scores = {metric: float(each["score"]) for metric, each in row.get("judgement", {}).items()}
    return scores | {
        "tokens": float(row["tokens"]),
        "turns": float(row["turns"]),
        "components": float(len(components)),
        "parts of each": fmean(said) if said else 0.0,
        "agreed": float(row["ended"] == "consensus"),
    }


def _compared(values: Any) -> Row:
    baseline, intrinsic = (values.get_group(arm) for arm in ARMS)
    p = float(ranksums(intrinsic, baseline).pvalue)
    spreads = values.agg(["mean", "median", "std"]).rename(columns={"std": "sd"}).fillna(0.0)
    arms = {arm: {"values": values.get_group(arm).tolist(), **spreads.loc[arm].to_dict()} for arm in ARMS}
    return arms | {"p": p}


def table_2(main: Row, title: str) -> Table:
    """Return table 2: means, each beside the paper's."""
    columns = ["", "baseline", "paper", "intrinsic", "paper", "p", "paper"]
    cells = [
        [
            name.replace("cost_effectiveness", "cost-effective"),
            _mean(figure["none"]),
            paper[0],
            _mean(figure["intrinsic"]),
            paper[1],
            f"{figure['p']:.2g}",
            paper[2],
        ]
        for name, figure in main.items()
        for paper in [PAPER.get(name, (None, None, None))]
    ]
    return table(title, columns, cells)


def _mean(spread: Row) -> str:
    if spread["mean"] >= THOUSANDS:
        return f"{spread['mean'] / 1000:.0f}k ± {spread['sd'] / 1000:.0f}k"
    return f"{spread['mean']:.3g} ± {round(spread['sd'], 2):.2g}"


def notes(main: Row, judge: Identity) -> list[str]:
    """Describe the reliability of the figures, and which of the paper's claims they support."""
    more = main["tokens"]["intrinsic"]["mean"] / main["tokens"]["none"]["mean"] - 1
    scored = {name: main[name] for name in METRICS if name in main}
    won = [name for name, each in scored.items() if each["intrinsic"]["mean"] > each["none"]["mean"]]
    sure = [name for name in won if main[name]["p"] < 0.05]
    found = [f"Tokens with intrinsic memory: {100 * more:+.0f} % (paper: +32 %)."]
    if judge.is_model:
        higher = f"It scores higher in {len(won)} of 5 metrics, {len(sure)} of them with p < 0.05"
        found.append(f"{higher} (paper: 5, and 4).")
    else:
        found.append("Nobody judged: rules judge no design. Name a --judge.")
    return found


def plot_metrics(main: Row, axes: Axes) -> None:
    """Draw figure 3: median and standard deviation of each metric, beside the paper's means."""
    metrics = [name for name in METRICS if name in main]
    medians, spreads = (
        pd.DataFrame({NAMES[arm]: [main[name][arm][what] for name in metrics] for arm in ARMS}, metrics)
        for what in ("median", "sd")
    )
    if metrics:
        medians.plot.bar(ax=axes, yerr=spreads, capsize=3, ylabel="score, median and sd", ylim=(0, 10.5))
    for number, arm in enumerate(ARMS):
        paper = [PAPER[name][number] for name in metrics]
        axes.plot(paper, "_", color="black", label=f"paper, {NAMES[arm]} (mean)")
