"""What a message of a chat costs, and how fast an agent with eyes sees."""

import asyncio
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from langchain_core.messages import HumanMessage

from mneme.core.settings import settings
from mneme.environments.household.generator import generate
from mneme.environments.household.visual.world import SeeingWorld
from mneme.evals.bench.corpus import sentences
from mneme.evals.measuring import ledger_at, line, seconds_of
from mneme.evals.report import Row
from mneme.graphs import chatbot, remember
from mneme.models.embedding.embedders import Embedder
from mneme.nodes.chat.context import ChatContext
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.base_store import LedgerStore

APARTMENT, FRAMES = 9000, 50


async def chat(messages: int, embedder: Embedder) -> list[Row]:
    """Measure replies and remembering, answered by rules, after as many messages that only warm up."""
    spent: dict[str, list[float]] = {"reply": [], "remembering": []}
    with TemporaryDirectory(prefix="mneme-bench-") as name:
        folder = Path(name)
        saved = str(folder / "checkpoints.sqlite")
        async with (
            ledger_at(folder / "ledger", embedder) as ledger,
            open_checkpointer(saved, settings().checkpoint_turns) as saver,
        ):
            given: dict[str, Any] = {"checkpointer": saver, "store": LedgerStore(ledger)}
            graphs = chatbot.builder.compile(**given), remember.builder.compile(**given)
            context, before = ChatContext(user="ann", chatbot="rules", memory_agent="rules"), 0
            for number, text in enumerate(sentences(2 * messages)):
                if number == messages:
                    before = _bytes(folder)
                inputs: tuple[Any, ...] = {"messages": [HumanMessage(text)]}, {}
                for what, graph, asked in zip(spent, graphs, inputs, strict=True):
                    config: Any = {"configurable": {"thread_id": what}, "recursion_limit": 100}
                    turn = graph.ainvoke(asked, config, context=context)
                    spent[what].append(1000 * await seconds_of(turn))
            kept = (_bytes(folder) - before) / messages
    rows = [line(f"{what} by rules", messages, took[messages:], "ms") for what, took in spent.items()]
    return [*rows, line("a message on disk", messages, [kept], "bytes")]


def _bytes(folder: Path) -> int:
    """Return the bytes of all files; of sparse ones, what the disk holds."""
    stats = [path.stat() for path in folder.rglob("*") if path.is_file() and not path.name.endswith("-wal")]
    return sum(min(each.st_blocks * 512, each.st_size) for each in stats)


async def frames(pixels: int, embedder: Embedder) -> list[Row]:
    """Measure what an agent with eyes waits for a frame, in a furnished room; nothing is embedded."""
    return [
        line("frame: colours, depth, segments", pixels, await asyncio.to_thread(_looked, pixels), "CPU ms")
    ]


def _looked(pixels: int) -> list[float]:
    """Return the milliseconds of the processor for each frame; the first is none, and only warms up."""
    world, began = SeeingWorld(generate(APARTMENT, agents=1), size=pixels), list[float]()
    for _ in range(FRAMES + 2):
        began.append(1000 * time.thread_time())
        world.look(0)
    return [float(ms) for ms in np.diff(began)[1:]]
