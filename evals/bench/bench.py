"""Measure the parts one after the other, each beside what can be had without it in the same run.

The embedding is in no time but that of a chat. What is compared is done in turn, so that the ratio holds
whatever else the machine does. Everything is answered by rules.
"""

from functools import partial
from typing import Annotated, Literal, get_args

from pydantic import Field

from mneme.evals.bench.storage import USERS, cards, embedded, retriever, served
from mneme.evals.bench.work import chat, frames
from mneme.evals.options import RunOptions
from mneme.evals.report import Progress, Report, Row, table

Part = Literal["memories", "server", "cards", "retriever", "chat", "frames"]
PARTS = {"memories": embedded, "cards": cards, "retriever": retriever, "chat": chat, "frames": frames}
COLUMNS = ("part", "size", "median", "p95", "unit", "ratio", "beside")
PIXELS = [128, 256]


class Options(RunOptions):
    """What to measure, and where results go."""

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
    journal = options.journal("bench", configuration)
    wanted = [(part, size) for part in options.parts for size in _sizes(part, options)]
    for number, (part, size) in enumerate(wanted, 1):
        if f"{part} at {size}" not in journal:
            measure = partial(served, url=options.qdrant) if part == "server" else PARTS[part]
            journal.add(f"{part} at {size}", {"lines": await measure(size, embedder)})
        progress(number, len(wanted), f"{part} at {size}")
    rows: list[Row] = [row for part, size in wanted for row in journal[f"{part} at {size}"]["lines"]]
    cells = [[row[column] for column in COLUMNS] for row in rows]
    tables = [table("Our parts, and how many times the median of what is beside them", COLUMNS, cells)]
    notes = [f"Vectors of {embedder.name}; a user has one of {USERS} parts of the memories."]
    if "server" in options.parts and not options.qdrant:
        notes.append("No server was measured: --qdrant names none.")
    return Report("bench", "rules", journal.path, rows, {"rows": rows}, tables, notes=notes)


def _sizes(part: Part, options: Options) -> list[int]:
    """Return the sizes of a part: memories, cards or pairs; messages; pixels."""
    if part == "server" and not options.qdrant:
        return []
    return {"chat": [options.messages], "frames": PIXELS}.get(part, options.sizes)
