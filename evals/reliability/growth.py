"""How much the checkpoints of a chat take on the disk, by the number of turns, and what writing them costs.

One user chats, answered by rules, and after each turn the memory agent remembers on its own hidden thread, as
with `mneme chat`. The same chat is held with LangGraph's own saver, which keeps every checkpoint whole, as
Mneme did before; with ours and all turns kept; and with ours and the last turns kept. They take turns, so
that what else the machine does bears on all of them. The file is measured with its write-ahead log emptied.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
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
from mneme.stores.ledger.ledger import Ledger

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
    """Hold the chat with each way to keep checkpoints, and report sizes and times."""
    turns = sorted(options.turns)
    journal = open_journal(options.out, "growth", {"turns": turns, "kept": options.kept}, fresh=options.fresh)
    if any(arm not in journal for arm in ARMS):
        async with AsyncExitStack() as stack:
            chats = [await stack.enter_async_context(_opened(arm, options.kept)) for arm in ARMS]
            for turn in range(1, turns[-1] + 1):
                for chat in chats:
                    await chat.take(turn, measure=turn in turns)
                chats.append(chats.pop(0))  # rules remember what they parsed: whoever is first waits longer
                progress(turn, turns[-1], "turns")
            for chat in chats:
                journal.add(chat.arm, await chat.row())
    return report([journal[arm] for arm in ARMS], journal, options)


class Chat:
    """A chat and the memory agent behind it, on checkpoints of one kind; what they take, and how long."""

    def __init__(self, arm: str, saver: Any, file: Path, ledger: Ledger) -> None:
        self.arm = arm
        self._saver, self._file = saver, file
        self._watch, self._seconds, self._bytes = Watch(saver), list[float](), dict[str, int]()
        given: dict[str, Any] = {"checkpointer": saver, "store": LedgerStore(ledger)}
        self._chat, self._memory = chatbot.builder.compile(**given), remember.builder.compile(**given)

    async def take(self, turn: int, *, measure: bool) -> None:
        """Say something, get a reply, and let it be remembered; then measure the file, if asked to."""
        said: Any = {"messages": [HumanMessage(SAID.format(turn=turn))]}
        started = time.perf_counter()
        await self._chat.ainvoke(said, _thread("chat"), context=RULES)
        await self._memory.ainvoke({}, _thread("memory"), context=RULES)
        self._seconds.append(time.perf_counter() - started)
        self._watch.end_turn()
        if measure:
            await self._saver.conn.execute_fetchall("PRAGMA wal_checkpoint(TRUNCATE)")
            self._bytes[str(turn)] = (await asyncio.to_thread(self._file.stat)).st_size

    async def row(self) -> Row:
        """Return all that was measured; of times, the medians."""
        return {
            "arm": self.arm,
            "bytes": self._bytes,
            "bytes of threads": {thread: await self._bytes_of(thread) for thread in THREADS},
            "seconds a turn": median(self._seconds),
            "seconds of writing a turn": median(self._watch.turns),
        }

    async def _bytes_of(self, thread: str) -> int:
        return sum(size for (size,) in await self._saver.conn.execute_fetchall(SIZES, {"thread": thread}))


class Watch:
    """Take the time in which a saver writes, turn by turn; it is asked for several writes at once."""

    def __init__(self, saver: Any) -> None:
        self.turns: list[float] = []
        self._seconds, self._writing = 0.0, 0
        saver.aput, saver.aput_writes = self._timed(saver.aput), self._timed(saver.aput_writes)

    def end_turn(self) -> None:
        self.turns.append(self._seconds)
        self._seconds = 0.0

    def _timed(self, write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def timed(*given: Any, **named: Any) -> Any:
            if not self._writing:
                self._seconds -= time.perf_counter()
            self._writing += 1
            try:
                return await write(*given, **named)
            finally:
                self._writing -= 1
                if not self._writing:
                    self._seconds += time.perf_counter()

        return timed


@asynccontextmanager
async def _opened(arm: str, kept: int) -> AsyncIterator[Chat]:
    with TemporaryDirectory(prefix="mneme-growth-") as folder:
        file = Path(folder) / "checkpoints.sqlite"
        saver = (
            _whole(file) if arm == WHOLE else open_checkpointer(str(file), kept if arm == LAST_KEPT else 0)
        )
        async with temporary_ledger(Scattered()) as ledger, saver as opened:
            yield Chat(arm, opened, file, ledger)


@asynccontextmanager
async def _whole(file: Path) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open LangGraph's own saver as Mneme did before it stored lists apart."""
    async with aiosqlite.connect(file) as connection:
        for pragma in ("journal_mode = WAL", "secure_delete = ON"):
            await connection.execute_fetchall(f"PRAGMA {pragma}")
        yield AsyncSqliteSaver(connection)


def _thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}, "recursion_limit": 100}


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
        "writing: the median of the seconds of a turn in which the saver writes, against the first line's.",
    ]
    tables = [table("MB of the file of checkpoints", columns, cells)]
    return Report("growth", "rules", journal.path, list(rows), summary, tables, notes=notes)
