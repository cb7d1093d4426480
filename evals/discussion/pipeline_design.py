"""Table 2 and figure 3: the case study (§5), with intrinsic memory and without, judged by five metrics.

Both arms have the same team, task and context; only the memory differs. A run's seed is that of every reply,
drawn at the given temperature, and the order in which the workers speak, the same in both arms; by rules the
order alone tells two runs apart. `--wording printed` takes figure 5's task and figure 6's judge word by word,
beside ours. Designs are also compared in pairs, blind and in both orders. Beside the paper's table, the same
at other sizes of the context, since a memory helps only where not everything fits into the context.

Under rules agents say again what the task or their duties name, and the judge counts. That tells nothing
about the quality of a design.
"""

from itertools import product
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, Field

from mneme.cli.tables import Table
from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.evals.answering import Identity, identify
from mneme.evals.discussion.discussions import OWNER, Case, hold, open_fresh_ledger, reordered
from mneme.evals.discussion.judges import SCORES
from mneme.evals.discussion.pipeline_design_tables import (
    ARMS,
    METRICS,
    NAMES,
    Arm,
    notes,
    plots,
    size_table,
    summarise,
    table_2,
)
from mneme.evals.discussion.pipeline_judging import (
    Wording,
    compared,
    judge_table,
    judged,
    pair_table,
    tallied,
)
from mneme.evals.options import RUNS, Agents, EmbedderName, Fresh, Out, Role
from mneme.evals.report import Journal, Progress, Report, Row, digest, draw, open_journal
from mneme.library.teams.team import Team, load_team
from mneme.models.asking.asking import SEED
from mneme.models.asking.responders import drawn
from mneme.nodes.discussion.context import DiscussionContext

TASK = Path(__file__).parent / "data" / "pipeline_task.md"
TASKS: dict[Wording, Path] = {"ours": TASK, "printed": TASK.with_name("pipeline_task_printed.md")}


SMALLEST = 512


class Options(BaseModel):
    """How many runs, on what context, about which task, by which team, and who answers and judges."""

    runs: int = Field(10, ge=2, description="Discussions in each arm.")
    context_tokens: int = Field(0, ge=0, description="Tokens of the context in table 2; 0: the team's own.")
    sizes: list[int] = Field(
        [1536, 2048, 3072, 8192], description="Other sizes of the context; may be empty."
    )
    agents: Agents = "auto"
    judge: Role = ""
    team: str = Field("data_pipeline", description="The team: a shipped one's name, or a file.")
    task: Path | None = Field(None, description="A file with another task than the case study's.")
    wordings: list[Wording] = Field(
        ["ours"], min_length=1, description="Task and judge: ours, or as figures 5 and 6 print them."
    )
    temperature: float = Field(0.7, ge=0, le=2, description="Of the agents' replies; the judge's is 0.")
    out: Out = RUNS
    embedder: EmbedderName = ""
    fresh: Fresh = False
    quick: bool = Field(False, description="A short run: 2 discussions in each arm, one size.")

    @property
    def sized(self) -> "Options":
        """Return the options with the sizes of a short run, where one is asked for. Raises BadInput."""
        if 0 < self.context_tokens < SMALLEST:
            raise BadInput(f"--context-tokens {self.context_tokens}: {SMALLEST} are the least, 0 the team's.")
        return self.model_copy(update={"runs": 2, "sizes": []}) if self.quick else self

    @property
    def all_sizes(self) -> list[int]:
        return sorted({self.context_tokens, *self.sizes})


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Hold and judge every discussion; go on where an interrupted run stopped."""
    team = load_team(options.team)
    given = options.model_copy(update={"context_tokens": options.context_tokens or team.context_tokens})
    sized = given.sized
    who, judge = await identify(sized.agents), await identify(sized.judge or sized.agents)
    tasks = {wording: _task(sized.task or TASKS[wording]) for wording in sized.wordings}
    configuration = {
        "agents": who.model_dump(),
        "judge": judge.model_dump(),
        "team": team.model_dump(mode="json"),
        "tasks": tasks,
        "temperature": sized.temperature,
        "scores": SCORES,
    }
    journal = open_journal(sized.out, "pipeline_design", configuration, fresh=sized.fresh)
    plan = list(product(sized.wordings, sized.all_sizes, range(sized.runs), ARMS))
    for done, (wording, size, seed, arm) in enumerate(plan, start=1):
        case = Which(wording, size, arm, seed)
        if case.name not in journal:
            held = await _held(sized, reordered(team, seed), tasks[wording], case, who)
            found = await judged(held, team, judge, sized.wordings)
            journal.add(case.name, {**case._asdict(), **held, **found})
        progress(done, len(plan), f"{size} tokens, {NAMES[arm]}")
    for wording, seed in product(sized.wordings, range(sized.runs)):
        pair = f"pair/{wording}/{seed}"
        if pair not in journal:
            both = {arm: journal[Which(wording, sized.context_tokens, arm, seed).name] for arm in ARMS}
            journal.add(pair, {"pair": wording, **await compared(tasks[wording], both, judge)})
    return _report(sized, journal, team, who, judge)


class Which(NamedTuple):
    """Which discussion: the wording of its task, the size of its context, its memory and its repetition."""

    wording: Wording
    size: int
    arm: Arm
    seed: int

    @property
    def name(self) -> str:
        return f"{self.wording}/{self.size}/{self.arm}/{self.seed}"


def _task(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--task {path}: {error}.", "Give a text file.") from error


async def _held(options: Options, team: Team, task: str, which: Which, who: Identity) -> Row:
    context = DiscussionContext(
        team=OWNER,
        agents=who.responder,
        memory=which.arm,
        context_tokens=which.size,
        max_turns=team.max_turns,
    )
    case = Case(id=which.name.replace("/", "-"), task=task, team=team, context=context)
    folder = options.out / f"pipeline_design-{digest({'team': team.name, 'task': task})}"
    ledger = await open_fresh_ledger(folder, options.embedder or settings().embedder)
    try:
        with drawn(seed=SEED + which.seed, temperature=options.temperature):
            return await hold(case, ledger)
    finally:
        await ledger.close()


def _report(options: Options, journal: Journal, team: Team, who: Identity, judge: Identity) -> Report:
    wanted = [
        row
        for row in journal.rows
        if row.get("size") in options.all_sizes
        and row["seed"] < options.runs
        and row["wording"] in options.wordings
    ]
    by_wording = {
        wording: _by_size(options, team, [row for row in wanted if row["wording"] == wording])
        for wording in options.wordings
    }
    pairs = {
        wording: tallied([journal[f"pair/{wording}/{seed}"] for seed in range(options.runs)])
        for wording in options.wordings
    }
    summary = by_wording[options.wordings[0]]
    main = summary[str(options.context_tokens)]
    answered_by = f"{who}; judged by {judge}" if str(judge) != str(who) else str(who)
    title = f"Pipeline design: {options.runs} discussions each, {options.context_tokens} tokens of context"
    return Report(
        name="pipeline_design",
        answered_by=answered_by,
        raw=journal.path,
        rows=wanted,
        summary={
            "context_tokens": options.context_tokens,
            "runs": options.runs,
            "sizes": summary,
            "wordings": by_wording,
            "pairs": pairs,
        },
        tables=[*_tables(options, by_wording, wanted), pair_table(pairs)],
        plots=[draw(journal.path.with_suffix(".png"), title, answered_by, *plots(main, summary))],
        notes=[*notes(main, summary, who, judge), BLIND],
    )


BLIND = (
    "Pairs: the judge sees two designs of one repetition, unnamed, in both orders. A design is preferred "
    "where both answers agree on it; bias: the share of pairs where they agree on the place instead; p: sign "
    "test of the pairs that were decided."
)


def _by_size(options: Options, team: Team, rows: list[Row]) -> Row:
    return {
        str(size): summarise([row for row in rows if row["size"] == size], team.document.item_fields)
        for size in options.all_sizes
    }


def _tables(options: Options, by_wording: dict[Wording, Row], rows: list[Row]) -> list[Table]:
    size = options.context_tokens
    found: list[Table] = []
    for wording, summary in by_wording.items():
        printed = "" if wording == "ours" else ", task as printed"
        found += [table_2(summary[str(size)], options.runs, size, printed), size_table(summary)]
    if "printed" in options.wordings:
        found.append(judge_table([row for row in rows if row["size"] == size], METRICS))
    return found
