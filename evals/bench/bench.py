"""Measure the parts one after another, each beside the alternative without it in the same run.

Only the times of a chat include embedding. Compared work alternates, so that the ratio holds whatever else
the machine does. Rules give all answers.
"""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, get_args

from langchain_core.messages import HumanMessage
from pydantic import Field

from mneme.core.settings import settings
from mneme.evals.bench.storage import USERS, cards, embedded, retriever, sentences, served
from mneme.evals.measuring import bytes_on_disk, ledger_at, line, seconds_of
from mneme.evals.options import RunOptions
from mneme.evals.report import Progress, Report, Row, table
from mneme.graphs import chatbot, remember
from mneme.models.embedding.embedders import Embedder
from mneme.nodes.chat.context import ChatContext
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.base_store import LedgerStore

Part = Literal["memories", "server", "cards", "retriever", "chat"]
TABLE_COLUMNS = ("part", "size", "median", "p95", "unit", "ratio", "beside")


class Options(RunOptions):
    """Parts to measure, and the folder of the results."""

    parts: list[Part] = Field([*get_args(Part)], min_length=1, description="Part to measure; default: all.")
    sizes: list[Annotated[int, Field(ge=100)]] = Field(
        [1_000, 10_000], min_length=1, description="Number of memories, cards and pairs, 100 at least."
    )
    messages: int = Field(30, ge=1, description="Messages of the chat that are timed.")
    qdrant: str = Field(
        "",
        description="Address of a Qdrant server, http://…; without one only embedded.",
        json_schema_extra={"variable": "MNEME_TEST_QDRANT"},
    )


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Measure what is not in the journal, and report one line for each part and size."""
    embedder = await options.opened_embedder()
    configuration: Row = {"embedder": embedder.name, "qdrant": options.qdrant}
    journal = options.journal("bench", configuration)  # parts and sizes join one journal, case by case
    sizes = {"chat": [options.messages], "server": options.sizes if options.qdrant else []}
    wanted = [(part, size) for part in options.parts for size in sizes.get(part, options.sizes)]

    async def one(case: tuple[Part, int]) -> Row:
        measure = partial(served, url=options.qdrant) if case[0] == "server" else BENCH_PARTS[case[0]]
        return {"lines": await measure(case[1], embedder)}

    measured = await journal.play({f"{part} at {size}": (part, size) for part, size in wanted}, one, progress)
    rows: list[Row] = [row for each in measured for row in each["lines"]]
    cells = [[row[column] for column in TABLE_COLUMNS] for row in rows]
    tables = [table("Our parts, and how many times the median of what is beside them", TABLE_COLUMNS, cells)]
    notes = [f"Vectors of {embedder.name}; a user has one of {USERS} parts of the memories."]
    if "server" in options.parts and not options.qdrant:
        notes.append("No server was measured: --qdrant names none.")
    return journal.report("rules", {"rows": rows}, tables, notes, rows)


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
                    before = bytes_on_disk(folder)
                # `remember` takes what the chat put into the inbox.
                inputs: tuple[Any, ...] = {"messages": [HumanMessage(text)]}, {}
                for what, graph, asked in zip(spent, graphs, inputs, strict=True):
                    config: Any = {"configurable": {"thread_id": what}, "recursion_limit": 100}
                    turn = graph.ainvoke(asked, config, context=context)
                    spent[what].append(1000 * await seconds_of(turn))
            kept = (bytes_on_disk(folder) - before) / messages  # without the files that an empty home has
    rows = [line(f"{what} by rules", messages, took[messages:], "ms") for what, took in spent.items()]
    return [*rows, line("a message on disk", messages, [kept], "bytes")]


BENCH_PARTS = {"memories": embedded, "cards": cards, "retriever": retriever, "chat": chat}
