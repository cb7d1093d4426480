"""`mneme import …`: read, announce the work, write, and count the outcomes."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any

import typer
from pydantic import Field
from rich.markup import escape

from mneme.api.memories import Memories
from mneme.api.rendering import count_of
from mneme.cli.chat.remember import MAX_PRINTED_FAILURES, print_sent
from mneme.cli.chat.responders import get_ready
from mneme.cli.derived import Fields
from mneme.cli.show import (
    console,
    emit,
    errors,
    print_error,
    print_table,
    prints_json,
    progress_bar,
    say,
)
from mneme.client.home import open_operations
from mneme.core.errors import BadInput
from mneme.importing import conversations, langmem, markdown, mem0
from mneme.importing.conversations import CHATGPT, CLAUDE
from mneme.importing.item import Reading
from mneme.importing.writing import MemoryCounts, MessageCounts, message_of, send, write
from mneme.nodes.context import OwnedByUser, responder

DRY_RUN_ITEMS = 10
"""Items that a dry run shows."""
SOURCE_NOUNS = {
    "ChatGPT": ("message", "conversation"),
    "Claude": ("message", "conversation"),
    "Markdown": ("statement", "note"),
    "Mem0": ("memory", "owner"),
    "LangMem": ("memory", "namespace"),
}
"""Nouns for the content of each source, and for its containers."""
Read = Callable[[], Reading]


class How(OwnedByUser):
    """Owner of the memories, part of the source, responder, and whether it is a dry run."""

    since: str = Field("", description="Import nothing that is older: a date.", examples=["2026-11-20"])
    limit: int | None = Field(
        None, ge=1, description="Import at most this many, the oldest first, to try it out."
    )
    dry_run: bool = Field(False, description="Show what would be imported, and import nothing.")
    memory_agent: str = responder("The memory agent's model.")


Choice = Annotated[dict[str, Any], Fields(How)]
Export = Annotated[
    Path, typer.Argument(metavar="FILE", help="The zip file, the folder in it, or a conversations.json.")
]
ThroughAgent = Annotated[
    bool,
    typer.Option(
        "--through-agent",
        help="Let the memory agent compare them with known memories, instead of importing them unchanged.",
    ),
]


async def import_chatgpt(export: Export, how: Choice) -> int:
    """Remember what you told ChatGPT, from its data export (Settings, Data controls, Export)."""
    return await _imported("ChatGPT", lambda: conversations.read(CHATGPT, export), how)


async def import_claude(export: Export, how: Choice) -> int:
    """Remember what you told Claude, from its data export (Settings, Privacy, Export data)."""
    return await _imported("Claude", lambda: conversations.read(CLAUDE, export), how)


async def import_markdown(
    notes: Annotated[Path, typer.Argument(metavar="FILE|FOLDER", help="A note, or a folder of notes.")],
    how: Choice,
) -> int:
    """Remember what your notes say, e.g. those of Obsidian; a second run reads only what is new."""
    return await _imported("Markdown", lambda: markdown.read(notes), how)


async def import_mem0(
    how: Choice,
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE|FOLDER", help="What `get_all` returned, as JSON; or the folder of a local store."
        ),
    ] = Path("/tmp/qdrant"),  # noqa: S108  (where Mem0 puts it)
    of: Annotated[
        str, typer.Option("--of", metavar="NAME", help="The user to import, if the source has several.")
    ] = "",
    collection: Annotated[str, "The store's collection."] = "mem0",
    history: Annotated[
        Path | None, "Mem0's history.db. With a store: the one in ~/.mem0.", "--history-db"
    ] = None,
    by_agent: ThroughAgent = False,
) -> int:
    """Import the memories of Mem0, with their times and earlier versions."""
    return await _imported("Mem0", lambda: mem0.read(source, of, collection, history), how, by_agent)


async def import_langmem(
    how: Choice,
    source: Annotated[
        str,
        typer.Argument(metavar="FILE|URL", help="Items as JSON, an SQLite store, or the URL of a Postgres."),
    ],
    namespace: Annotated[
        str,
        typer.Option("--namespace", metavar="PATH", help="Only items below it, e.g. memories/ann."),
    ] = "",
    by_agent: ThroughAgent = False,
) -> int:
    """Import the memories of LangMem, or of another LangGraph store, with their times."""
    return await _imported("LangMem", lambda: langmem.read(source, namespace), how, by_agent)


async def _imported(program: str, read: Read, given: dict[str, Any], by_agent: bool = True) -> int:
    """Import a program's data, through the memory agent or verbatim; return 1 if a part failed."""
    how = How.model_validate(given)
    try:
        since = datetime.fromisoformat(how.since).astimezone() if how.since else None
    except ValueError as error:
        raise BadInput(f"{how.since!r} is not a date.", "Write it like 2026-11-20.") from error
    reading = read().chosen(since, how.limit)  # all of it first: what the import takes is announced
    asked = "The memory agent asks a model up to four questions about each."
    _announce(program, reading, how, asked if by_agent else "They are written as they are.")
    if how.dry_run or not reading.items:
        return 0  # before any responder is checked: a dry run needs no model
    context, count = {"memory_agent": how.memory_agent}, len(reading.items)
    passed_over = {"skipped": reading.skipped, "notes": reading.notes}
    with progress_bar() as progress:
        bar = progress.add_task("remembering" if by_agent else "writing", total=count)
        if by_agent:
            await get_ready(context)
            sent = MessageCounts(messages=count)
            async for sent in send([*map(message_of, reading.items)], how.user, context):
                progress.update(bar, completed=sent.done)
        else:
            written = MemoryCounts(memories=count)
            async with open_operations(Memories, how.user) as memories:
                async for written in write(reading.items, program, memories):
                    progress.update(bar, completed=written.done)
    return print_sent(sent, passed_over) if by_agent else _print_written(written, passed_over)


def _announce(program: str, reading: Reading, how: How, cost: str) -> None:
    """Announce the work before it starts; in a dry run that is the result."""
    times = {each.id: each.time.isoformat(timespec="seconds") if each.time else "" for each in reading.items}
    if how.dry_run:
        for item in reading.items:
            more = (
                {"before": item.before} if item.before else {"earlier": [each.text for each in item.earlier]}
            )
            emit({"id": item.id, "text": item.text, "time": times[item.id], "thread": item.thread, **more})
        emit({"items": len(reading.items), "skipped": reading.skipped, "notes": reading.notes})
    if prints_json():
        return
    # stdout has the result alone, which in a dry run this is
    screen, (noun, place) = console if how.dry_run else errors, SOURCE_NOUNS[program]
    places = count_of(len({each.thread for each in reading.items}), place)
    days = sorted(each[:10] for each in times.values() if each)
    period = f", from {days[0]} to {days[-1]}" if days else ""
    say(f"{program}: {count_of(len(times), noun)} of {places}{period}. {cost}", screen)
    for why, number in reading.skipped.most_common():
        say(f"- left out: {number:,} {escape(why)}", screen)
    for note in reading.notes:
        say(f"- {escape(note)}", screen)
    if how.dry_run:
        shown = reading.items[:DRY_RUN_ITEMS]
        rows = ([times[each.id][:10], each.thread, shorten(each.text, 100)] for each in shown)
        print_table("", ("date", "from", "text"), rows)


def _print_written(report: MemoryCounts, passed_over: dict[str, Any]) -> int:
    rest = "The others are." if report.imported else "Nothing is imported."
    for reason in report.refused[:MAX_PRINTED_FAILURES]:
        print_error(BadInput(f"Not imported: {reason}", rest))
    emit(report.model_dump() | passed_over)
    say(
        f"{count_of(report.memories, 'memory')}: {report.imported} imported, {report.known} here before "
        f"({report.differing} with other words), {report.forgotten} erased before, "
        f"{len(report.refused)} refused."
    )
    return int(bool(report.refused))
