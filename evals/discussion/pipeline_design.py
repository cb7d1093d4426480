"""Table 2 and figure 3: the case study (§5), with intrinsic memory and without, judged by five metrics.

Both arms have the same team, task and context; only the memory differs. A run's seed is the order in which
the workers speak, the same in both arms: under rules nothing else would tell two runs apart. Beside the
paper's table, the same at other sizes of the context, since a memory helps only where not
everything fits into the context.

Under rules agents propose what they know and their context does not show; the judge counts. That tells what
is lost from a context, and nothing about the quality of a design.
"""

import json
from pathlib import Path

from pydantic import BaseModel, Field

from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.evals.answering import Identity, identify
from mneme.evals.discussion.discussions import OWNER, Case, hold, open_fresh_ledger, reordered
from mneme.evals.discussion.pipeline_design_tables import (
    ARMS,
    NAMES,
    Arm,
    notes,
    plots,
    size_table,
    summarise,
    table_2,
)
from mneme.evals.options import RUNS, Agents, EmbedderName, Fresh, Out
from mneme.evals.report import Journal, Progress, Report, Row, digest, draw, open_journal
from mneme.library.teams.team import Team, load_team
from mneme.models.asking.asking import ask
from mneme.nodes.discussion.context import DiscussionContext
from mneme.prompts.discussion.design_judge import SCORES, Design, judge_design

TASK = Path(__file__).parent / "data" / "pipeline_task.md"


SMALLEST = 512


class Options(BaseModel):
    """How many runs, on what context, about which task, by which team, and who answers and judges."""

    runs: int = Field(10, ge=2, description="Discussions in each arm.")
    context_tokens: int = Field(0, ge=0, description="Tokens of the context in table 2; 0: the team's own.")
    sizes: list[int] = Field(
        [1536, 2048, 3072, 8192], description="Other sizes of the context; may be empty."
    )
    agents: Agents = "auto"
    judge: str = Field("", description="Who judges; default: as the agents.")
    team: str = Field("data_pipeline", description="The team: a shipped one's name, or a file.")
    task: Path | None = Field(None, description="A file with another task than the case study's.")
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
    task = _task(sized.task)
    configuration = {
        "agents": who.model_dump(),
        "judge": judge.model_dump(),
        "team": team.model_dump(mode="json"),
        "task": task,
        "scores": SCORES,
    }
    journal = open_journal(sized.out, "pipeline_design", configuration, fresh=sized.fresh)
    plan = [(size, arm, seed) for size in sized.all_sizes for seed in range(sized.runs) for arm in ARMS]
    for done, (size, arm, seed) in enumerate(plan, start=1):
        case = f"{size}/{arm}/{seed}"
        if case not in journal:
            held = await _held(sized, reordered(team, seed), task, (size, arm, seed), who)
            judged = await _judged(held, team, judge)
            journal.add(case, {"size": size, "arm": arm, "seed": seed, **held, **judged})
        progress(done, len(plan), f"{size} tokens, {NAMES[arm]}")
    return _report(sized, journal, team, who, judge)


def _task(path: Path | None) -> str:
    try:
        return (path or TASK).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--task {path}: {error}.", "Give a text file.") from error


async def _held(options: Options, team: Team, task: str, which: tuple[int, Arm, int], who: Identity) -> Row:
    size, arm, seed = which
    context = DiscussionContext(
        team=OWNER, agents=who.responder, memory=arm, context_tokens=size, max_turns=team.max_turns
    )
    folder = options.out / f"pipeline_design-{digest({'team': team.name, 'task': task})}"
    ledger = await open_fresh_ledger(folder, options.embedder or settings().embedder)
    try:
        return await hold(Case(id=f"{size}-{arm}-{seed}", task=task, team=team, context=context), ledger)
    finally:
        await ledger.close()


async def _judged(held: Row, team: Team, judge: Identity) -> Row:
    """Judge a design, each score with its justification."""
    report = "\n\n".join(f"{name}: {text}" for name, text in held["report"].items())
    parts = team.document
    design = Design(
        document=json.dumps(held["document"], indent=1),
        report=report,
        specification=[*parts.fields, f"{parts.item} 1", *parts.ratings, *parts.item_fields],
    )
    answered = await ask(judge_design, design, judge.responder, lane="background")
    return {"judgement": answered.value.model_dump(), "judged_by": answered.responder}


def _report(options: Options, journal: Journal, team: Team, who: Identity, judge: Identity) -> Report:
    wanted = [row for row in journal.rows if row["size"] in options.all_sizes and row["seed"] < options.runs]
    by_size = {size: [row for row in wanted if row["size"] == size] for size in options.all_sizes}
    summary = {str(size): summarise(rows, team.document.item_fields) for size, rows in by_size.items()}
    main = summary[str(options.context_tokens)]
    answered_by = f"{who}; judged by {judge}" if str(judge) != str(who) else str(who)
    title = f"Pipeline design: {options.runs} discussions each, {options.context_tokens} tokens of context"
    plot = draw(journal.path.with_suffix(".png"), title, answered_by, *plots(main, summary))
    return Report(
        name="pipeline_design",
        answered_by=answered_by,
        raw=journal.path,
        rows=wanted,
        summary={"context_tokens": options.context_tokens, "runs": options.runs, "sizes": summary},
        tables=[table_2(main, options.runs, options.context_tokens), size_table(summary)],
        plots=[plot],
        notes=notes(main, summary, who, judge),
    )
