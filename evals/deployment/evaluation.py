"""Measure what a message costs, and what records take embedded and on a Qdrant server.

`docs/scaling.md` has the figures of one machine. What a million records take is worked out from the two
largest sizes: what the larger one has, and the growth between them for each record beyond it.
"""

import asyncio
import os

from pydantic import BaseModel, Field

from mneme.core.settings import settings
from mneme.evals.deployment.costs import KINDS, cost
from mneme.evals.deployment.records import Place, keep
from mneme.evals.engine import corpus as engine_corpus
from mneme.evals.options import RUNS, EmbedderName, Fresh, Out, Positive
from mneme.evals.report import Journal, Progress, Report, Row, open_journal, table
from mneme.models.embedding.embedders import open_embedder

MILLION = 1_000_000
EMBEDDED = 1_000
"""Sentences that are really embedded; what records take does not depend on what they say."""
NO_PROGRAM = "not measured on a Qdrant server: MNEME_TEST_QDRANT_BINARY (--qdrant) names no program."


class Options(BaseModel):
    """How much to measure, with which Qdrant server, and where results go."""

    messages: int = Field(60, ge=4, description="Messages of the chat; half of them only warm up.")
    sizes: list[Positive] = Field([10_000, 100_000], min_length=1, description="Number of records.")
    server_sizes: list[Positive] = Field([], description="The same on the server; default: as embedded.")
    qdrant: str = Field(
        "",
        description="Qdrant server's program, which is started; without one only embedded.",
        json_schema_extra={"variable": "MNEME_TEST_QDRANT_BINARY"},
    )
    embedder: EmbedderName = ""
    out: Out = RUNS
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Measure the chat, then each size in each place, and report them together."""
    embedder = await open_embedder(options.embedder or settings().embedder)
    configuration: Row = {
        "embedder": embedder.name,
        "messages": options.messages,
        "qdrant": os.path.basename(options.qdrant),  # noqa: PTH119  (no file is touched)
    }
    journal = open_journal(options.out, "deployment", configuration, fresh=options.fresh)
    on_server = (options.server_sizes or options.sizes) if options.qdrant else []
    cases: list[tuple[Place, int]] = [("embedded", size) for size in sorted(options.sizes)]
    cases += [("Qdrant server", size) for size in sorted(on_server)]
    if "a message" not in journal:
        journal.add("a message", await cost(options.messages, embedder))
    progress(1, len(cases) + 1, "a message")
    for number, (place, size) in enumerate(cases, 2):
        if _name(place, size) not in journal:
            corpus = await engine_corpus.make(size, embedder, options.out, embedded=EMBEDDED)
            kept = await asyncio.to_thread(keep, place, corpus, options.qdrant)
            journal.add(_name(place, size), {"place": place, "records": size, **kept})
        progress(number, len(cases) + 1, _name(place, size))
    return report([journal[_name(*case)] for case in cases], journal["a message"], journal)


def _name(place: Place, size: int) -> str:
    return f"{place} at {size}"


def at_a_million(rows: list[Row], place: Place, what: str) -> float | None:
    """Return what a million records take, in bytes; None where fewer than two sizes were measured."""
    measured = sorted((row["records"], row[what]) for row in rows if row["place"] == place)
    if len(measured) < 2:
        return None
    (few, less), (many, more) = measured[-2:]
    return float(more + (more - less) / (many - few) * (MILLION - many))


def report(rows: list[Row], message: Row, journal: Journal) -> Report:
    """Show what a message costs, what records take, and what a million would."""
    each = [
        ["questions asked of a model", message["calls"]],
        ["prompt tokens (four characters each)", message["prompt_tokens"]],
        ["CPU seconds of ours, with those of the rules", message["cpu_seconds"]],
        ["seconds", message["seconds"]],
        *([f"bytes in the {kind}", float(round(message["bytes"][kind]))] for kind in KINDS),
    ]
    kept = [
        [
            f"{row['place']}, {row['records']:,}",
            row["write_s"],
            row["load_s"],
            row["search_ms"],
            row["memory"] / 2**20,
            row["memory"] / row["records"],
            row["disk"] / 2**20,
            row["disk"] / row["records"],
        ]
        for row in rows
    ]
    columns = ["", "write s", "load s", "search ms", "memory MiB", "bytes each", "disk MiB", "bytes each"]
    places = list(dict.fromkeys(row["place"] for row in rows))
    million = {
        place: {what: at_a_million(rows, place, what) for what in ("memory", "disk")} for place in places
    }
    worked_out = [
        [place, *(None if size is None else size / 2**30 for size in sizes.values())]
        for place, sizes in million.items()
    ]
    tables = [
        table(f"One message of {message['messages']}, reply and memory agent", ["", "each"], each),
        table("Records", columns, kept),
        table("A million records, worked out", ["", "memory GiB", "disk GiB"], worked_out),
    ]
    notes = [
        "Questions and tokens: the whole chat through Ollama's protocol, answered by rules.",
        "A million: the largest size, and for each further record the growth between the two largest.",
        *([] if "Qdrant server" in places else [f"Records are {NO_PROGRAM}"]),
    ]
    summary: Row = {"message": message, "records": rows, "million": million}
    return Report("deployment", "rules", journal.path, [message, *rows], summary, tables, notes=notes)
