"""Growth over a long discussion: tokens of context a turn, and bytes of checkpoints, by the number of turns.

One discussion that cannot end (a person in the last worker's place never accepts) is held three times: with
intrinsic memory, with the newest turns alone, both within one budget of tokens, and with the whole
conversation. The checkpoints are the stock SQLite tables; what stands in them after each turn is counted.

A conversation kept in the graph's state is measured beside it: the very turns of the first discussion, added
to a channel by a graph of as many steps a turn. LangGraph's own checkpointer keeps the whole of every state,
so that its bytes grow with the square of the turns.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import accumulate
from operator import add
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from matplotlib.axes import Axes
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from mneme.cli.tables import Table
from mneme.core.settings import settings
from mneme.evals.answering import identify
from mneme.evals.discussion.discussions import OWNER, Case, hold, open_fresh_ledger
from mneme.evals.discussion.pipeline_design import TASK
from mneme.evals.options import RUNS, Agents, EmbedderName, Fresh, Out
from mneme.evals.report import Journal, Progress, Report, Row, draw, open_journal, table
from mneme.library.teams.team import load_team
from mneme.nodes.discussion.context import DiscussionContext
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.namespaces import team_namespace

Arm = Literal["intrinsic", "newest turns", "whole conversation", "conversation in the state"]
ARMS: tuple[Arm, ...] = ("intrinsic", "newest turns", "whole conversation", "conversation in the state")
UNBOUNDED = 10_000_000
STEPS = 3
"""Checkpoints that the graph makes a turn: select, speak, update."""
PERSON = "infrastructure_engineer"
SAYS = "Proposal: Load test {turn} (k6) because the peak is not known. Pros: proof. Cons: it takes a day."
FIRST = 10
"""Turn from which the growth of bytes is fitted: before it, the beginning's own bytes count."""
STYLES = {
    "intrinsic": "tab:blue",
    "newest turns": "tab:orange",
    "whole conversation": "tab:red",
    "conversation in the state": "tab:gray",
}


class Options(BaseModel):
    """How long a discussion, on what context, and who answers."""

    turns: int = Field(200, ge=20, le=2000, description="Turns of the discussion.")
    context_tokens: int = Field(4096, ge=1024, description="Tokens of context where it is bounded.")
    agents: Agents = "auto"
    out: Out = RUNS
    embedder: EmbedderName = ""
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Hold the discussions and measure them; go on where an interrupted run stopped."""
    who = await identify(options.agents)
    configuration = {
        "agents": who.model_dump(),
        "turns": options.turns,
        "context_tokens": options.context_tokens,
    }
    journal = open_journal(options.out, "discussion_growth", configuration, fresh=options.fresh)
    for done, arm in enumerate(ARMS, start=1):
        if arm not in journal:
            measure = _kept_in_state if arm == ARMS[-1] else _discussed
            journal.add(arm, {"arm": arm, **await measure(options, arm, who.responder, journal)})
        progress(done, len(ARMS), arm)
    return _report(options, journal, str(who))


async def _discussed(options: Options, arm: Arm, who: str, journal: Journal) -> Row:
    """Hold the discussion with one memory; return what each turn was shown and what it left on the disk."""
    budget = UNBOUNDED if arm == "whole conversation" else options.context_tokens
    context = DiscussionContext(
        team=OWNER,
        agents=who,
        memory="intrinsic" if arm == "intrinsic" else "none",
        context_tokens=budget,
        max_turns=options.turns,
        person=PERSON,
    )
    team = load_team("data_pipeline")
    case = Case(id=arm.replace(" ", "-"), task=TASK.read_text(encoding="utf-8"), team=team, context=context)
    file = _fresh_file(options.out, arm)
    ledger = await open_fresh_ledger(
        options.out / "discussion_growth-ledger", options.embedder or settings().embedder
    )
    try:
        async with open_checkpointer(str(file)) as saver:
            held = await hold(case, ledger, saver, SAYS)
        lines = [line async for line in ledger.export(team_namespace(OWNER, "discussions"))]
    finally:
        await ledger.close()
    transcript = held.pop("transcript")
    return {
        **held,
        "context": [turn["context_tokens"] for turn in transcript],
        "said": [len(json.dumps(turn)) for turn in transcript],
        "bytes": _bytes_after_turns(file, len(transcript)),
        "ledger": _ledger_after_turns(lines, len(transcript)),
    }


def _fresh_file(folder: Path, arm: str) -> Path:
    file = folder / f"discussion_growth-{arm.replace(' ', '_')}.sqlite"
    for each in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
        each.unlink(missing_ok=True)
    return file


def _bytes_after_turns(file: Path, turns: int) -> list[int]:
    """Return the bytes in the checkpoint tables as they were after each turn."""
    by_turn = [0] * (turns + 1)
    with closing(sqlite3.connect(file)) as connection:
        for step, size in connection.execute(SIZES):
            turn = -(-(int(step) - 1) // STEPS)
            by_turn[max(1, min(turns, turn))] += int(size)
    return list(accumulate(by_turn))[1:]


SIZES = """
    WITH w AS (SELECT checkpoint_id AS id, sum(length(value)) AS bytes FROM writes GROUP BY checkpoint_id)
    SELECT json_extract(CAST(metadata AS TEXT), '$.step'),
        length(checkpoint) + length(metadata) + coalesce(w.bytes, 0)
    FROM checkpoints LEFT JOIN w ON w.id = checkpoint_id ORDER BY checkpoint_id"""


def _ledger_after_turns(lines: Sequence[str], turns: int) -> list[int]:
    """Return the bytes of turns and memory versions in the ledger as they were after each turn."""
    by_turn = [0] * (turns + 1)
    for line in lines:
        value = json.loads(line)["value"]
        turn = value.get("number", value.get("turn", 0))
        by_turn[min(turns, turn)] += len(line)
    return list(accumulate(by_turn))[1:]


class Talk(TypedDict):
    """A conversation in a graph's state."""

    turns: Annotated[list[dict[str, Any]], add]


async def _kept_in_state(options: Options, arm: Arm, who: str, journal: Journal) -> Row:
    """Add the turns of the first discussion to a channel, in as many steps a turn; count the same bytes."""
    said = [{"turn": "x" * size} for size in journal[ARMS[0]]["said"]]
    file = _fresh_file(options.out, arm)
    builder = StateGraph(Talk)
    builder.add_node("speak", lambda state: {"turns": [said[len(state["turns"])]]})
    builder.add_node("update", lambda state: {})
    builder.add_node("select", lambda state: {})
    builder.add_edge(START, "speak")
    builder.add_edge("speak", "update")
    builder.add_edge("update", "select")
    builder.add_conditional_edges("select", lambda state: "speak" if len(state["turns"]) < len(said) else END)
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        given: Any = {"turns": []}
        config: Any = {"configurable": {"thread_id": "talk"}}
        await builder.compile(checkpointer=saver).ainvoke(given, config)
    return {"bytes": _bytes_after_turns(file, len(said))}


def exponent(sizes: Sequence[int]) -> float:
    """Return the power of the number of turns with which sizes grow: 1 is linear, 2 quadratic.

    The growth since turn `FIRST` is compared at half of the remaining turns and at the end.
    """
    grown = [size - sizes[FIRST - 1] for size in sizes[FIRST - 1 :]]
    half = (len(grown) - 1) // 2
    return float(np.log(grown[2 * half] / grown[half]) / np.log(2))


def _report(options: Options, journal: Journal, answered_by: str) -> Report:
    rows = {arm: journal[arm] for arm in ARMS}
    summary: Row = {arm: _summary(row) for arm, row in rows.items()}
    title = f"A discussion of {options.turns} turns, {options.context_tokens} tokens of context where bounded"
    plot = draw(journal.path.with_suffix(".png"), title, answered_by, *_plots(rows))
    return Report(
        name="discussion_growth",
        answered_by=answered_by,
        raw=journal.path,
        rows=journal.rows,
        summary=summary,
        tables=[_table(summary, options)],
        plots=[plot],
        notes=_notes(summary),
    )


def _summary(row: Row) -> Row:
    found = {"checkpoint bytes": row["bytes"][-1], "checkpoint exponent": exponent(row["bytes"])}
    if "context" not in row:
        return found
    tenth = max(1, len(row["context"]) // 10)
    return found | {
        "context, first tenth": float(np.mean(row["context"][:tenth])),
        "context, last tenth": float(np.mean(row["context"][-tenth:])),
        "largest context": max(row["context"]),
        "ledger bytes": row["ledger"][-1],
        "ledger exponent": exponent(row["ledger"]),
        "tokens": row["tokens"],
        "components": sum(isinstance(each, dict) for each in row["document"].values()),
    }


FIGURES = (
    "context, first tenth",
    "context, last tenth",
    "largest context",
    "tokens",
    "checkpoint bytes",
    "checkpoint exponent",
    "ledger bytes",
    "ledger exponent",
    "components",
)


def _table(summary: Row, options: Options) -> Table:
    cells = [[name, *(_cell(summary[arm].get(name)) for arm in ARMS)] for name in FIGURES]
    return table(f"After {options.turns} turns", ["", *ARMS], cells)


def _cell(value: float | None) -> str | None:
    return None if value is None else f"{value:,.0f}" if value > 10 else f"{value:.2f}"


def _notes(summary: Row) -> list[str]:
    grown = summary["whole conversation"]
    return [
        "exponent: bytes grow with that power of the turns; 1 is linear, 2 quadratic.",
        f"The whole conversation grows with each turn, to {grown['largest context']:,} tokens of context.",
        "Checkpoints hold names and numbers; turns and memories are in the ledger, each written once.",
    ]


def _plots(rows: dict[Arm, Row]) -> list[Callable[[Axes], None]]:
    return [lambda axes: _context(axes, rows), lambda axes: _bytes(axes, rows)]


def _context(axes: Axes, rows: dict[Arm, Row]) -> None:
    for arm, row in rows.items():
        if "context" in row:
            axes.plot(np.arange(len(row["context"])) + 1, row["context"], color=STYLES[arm], label=arm, lw=1)
    axes.set_xlabel("turn")
    axes.set_ylabel("tokens of context")
    axes.legend(fontsize="small")


def _bytes(axes: Axes, rows: dict[Arm, Row]) -> None:
    for arm, row in rows.items():
        axes.plot(np.arange(len(row["bytes"])) + 1, row["bytes"], color=STYLES[arm], label=arm)
    ledger = rows["intrinsic"]["ledger"]
    axes.plot(
        np.arange(len(ledger)) + 1, ledger, color=STYLES["intrinsic"], ls=":", label="intrinsic: ledger"
    )
    axes.set_xlabel("turn")
    axes.set_ylabel("bytes in the checkpoint tables")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.legend(fontsize="small")
