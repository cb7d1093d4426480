"""How much the checkpoints of a chat take on the disk, by the number of turns, and what writing them costs.

One user chats, answered by rules, and after each turn the memory agent remembers on its own hidden thread, as
with `mneme chat`. The same chat is held with LangGraph's own saver, which keeps every checkpoint whole, as
Mneme did before; with ours and all turns kept; and with ours and the last turns kept. The file is measured
with its write-ahead log emptied.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiosqlite
import numpy as np
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pydantic import BaseModel, Field

from mneme.evals.measuring import temporary_ledger
from mneme.evals.options import RUNS, Fresh, Out, Positive
from mneme.evals.reliability.damage import Scattered
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.graphs import chatbot, remember
from mneme.nodes.chat.context import ChatContext
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.base_store import LedgerStore

WHOLE, ALL_KEPT, LAST_KEPT = "every checkpoint whole", "all turns kept", "last turns kept"
ARMS = (WHOLE, ALL_KEPT, LAST_KEPT)
THREADS = ("chat", "memory")
RULES = ChatContext(user="ann", chatbot="rules", memory_agent="rules")
SAID = "My friend number {turn} moved to Lisbon last spring, to house {turn}, and likes green tea and walks."
SIZES = """
    SELECT coalesce(sum(length(checkpoint) + length(metadata)), 0) FROM checkpoints WHERE thread_id = :thread
    UNION ALL SELECT coalesce(sum(length(value)), 0) FROM writes WHERE thread_id = :thread"""


class Options(BaseModel):
    """After how many turns the file is measured, how many are kept, and where results go."""

    turns: list[Positive] = Field([25, 50, 100, 200], min_length=2, description="Turns to measure after.")
    kept: int = Field(20, ge=1, description="Turns that are kept where not all are (MNEME_CHECKPOINT_TURNS).")
    out: Out = RUNS
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Hold the chat once with each way to keep checkpoints, and report sizes and times."""
    configuration = {"turns": sorted(options.turns), "kept": options.kept}
    journal = open_journal(options.out, "growth", configuration, fresh=options.fresh)
    for number, arm in enumerate(ARMS, start=1):
        if arm not in journal:
            journal.add(arm, await measured(arm, sorted(options.turns), options.kept))
        progress(number, len(ARMS), arm)
    return report([journal[arm] for arm in ARMS], journal, options)


async def measured(arm: str, turns: Sequence[int], kept: int) -> Row:
    """Chat for as many turns as the largest of `turns`; return the sizes of the file, and the times."""
    sizes: list[int] = []
    with TemporaryDirectory(prefix="mneme-growth-") as folder:
        file = Path(folder) / "checkpoints.sqlite"
        async with temporary_ledger(Scattered()) as ledger, _opened(arm, file, kept) as saver:
            watch = Watch(saver)
            given: dict[str, Any] = {"checkpointer": saver, "store": LedgerStore(ledger)}
            chat, memory = chatbot.builder.compile(**given), remember.builder.compile(**given)
            started = time.perf_counter()
            for turn in range(1, turns[-1] + 1):
                said: Any = {"messages": [HumanMessage(SAID.format(turn=turn))]}
                await chat.ainvoke(said, _thread("chat"), context=RULES)
                await memory.ainvoke({}, _thread("memory"), context=RULES)
                if turn in turns:
                    sizes.append(await _size(saver, file))
            seconds = time.perf_counter() - started
            by_thread = {thread: await _bytes_of(saver, thread) for thread in THREADS}
    return {
        "arm": arm,
        "bytes": dict(zip(map(str, turns), sizes, strict=True)),
        "bytes of threads": by_thread,
        "seconds a turn": seconds / turns[-1],
        "seconds of writing a turn": watch.seconds / turns[-1],
    }


class Watch:
    """Take the time that a saver spends on writing."""

    def __init__(self, saver: Any) -> None:
        self.seconds = 0.0
        saver.aput, saver.aput_writes = self._timed(saver.aput), self._timed(saver.aput_writes)

    def _timed(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def timed(*given: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return await write(*given, **named)
            finally:
                self.seconds += time.perf_counter() - started

        return timed


@asynccontextmanager
async def _opened(arm: str, file: Path, kept: int) -> AsyncIterator[BaseCheckpointSaver[str]]:
    if arm != WHOLE:
        async with open_checkpointer(str(file), kept if arm == LAST_KEPT else 0) as saver:
            yield saver
        return
    async with aiosqlite.connect(file) as connection:
        for pragma in ("journal_mode = WAL", "secure_delete = ON"):
            await connection.execute_fetchall(f"PRAGMA {pragma}")
        yield AsyncSqliteSaver(connection)


def _thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}, "recursion_limit": 100}


async def _size(saver: Any, file: Path) -> int:
    await saver.conn.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
    return (await asyncio.to_thread(file.stat)).st_size


async def _bytes_of(saver: Any, thread: str) -> int:
    return sum(size for (size,) in await saver.conn.execute_fetchall(SIZES, {"thread": thread}))


def exponent(sizes: dict[str, int]) -> float:
    """Return the power of the turns with which the file grows, fitted by least squares: 1 is linear."""
    turns = [float(turn) for turn in sizes]
    return float(np.polyfit(np.log(turns), np.log([float(size) for size in sizes.values()]), 1)[0])


def report(rows: Sequence[Row], journal: Journal, options: Options) -> Report:
    """Compare the ways to keep checkpoints."""
    turns = [*rows[0]["bytes"]]
    before = rows[0]
    cells = [
        [
            row["arm"],
            *(f"{row['bytes'][turn] / 1e6:.2f}" for turn in turns),
            f"{exponent(row['bytes']):.2f}",
            *(f"{row['bytes of threads'][thread] / 1e6:.2f}" for thread in THREADS),
            f"{1000 * row['seconds a turn']:.0f}",
            f"{row['seconds of writing a turn'] / before['seconds of writing a turn']:.2f}",
        ]
        for row in rows
    ]
    columns = ["", *(f"{turn} turns" for turn in turns), "exponent", *THREADS, "ms a turn", "writing"]
    summary: Row = {row["arm"]: {"bytes": row["bytes"], "exponent": exponent(row["bytes"])} for row in rows}
    notes = [
        f"`{LAST_KEPT}`: the last {options.kept} can be gone back to (MNEME_CHECKPOINT_TURNS).",
        "exponent: the file grows with that power of the turns; 1 is linear, 2 quadratic.",
        "chat, memory: MB in each thread's rows at the end; memory is the hidden thread of the memory agent.",
        "writing: seconds a turn that the saver spends on writing, against the first line's.",
    ]
    tables = [table("MB of the file of checkpoints", columns, cells)]
    return Report("growth", "rules", journal.path, list(rows), summary, tables, notes=notes)
