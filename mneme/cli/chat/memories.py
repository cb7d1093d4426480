"""`mneme memories …`: commands that do more than call an operation and print its result."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from mneme.api.erased import Erased
from mneme.api.memories import Memories, Written
from mneme.api.rendering import erased_lines, written_lines
from mneme.api.threads import Cleaned
from mneme.cli.options import Agents, Reason, ToFile, User, Yes
from mneme.cli.show import (
    SHORT,
    confirmed,
    console,
    emit,
    errors,
    from_person,
    is_written,
    print_error,
    print_fields,
    print_rows,
    prints_json,
    read_file,
    say,
)
from mneme.client.home import open_operations
from mneme.core.errors import BadInput, Forbidden
from mneme.core.settings import settings
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.ledger import reembed as rebuild
from mneme.stores.users.inbox import Letter
from mneme.stores.users.memory import RULES, MemoryRecord


def print_listed(found: Sequence[MemoryRecord]) -> None:
    """Print memories, and how many of them a model could read again."""
    print_rows(found)
    if count := sum(each.memory.read_by == RULES for each in found):
        console.print(
            f"[dim]{count} of these were read by rules; a model reads them again: mneme memories reread[/]"
        )


def print_written(written: Written) -> None:
    """Print a written memory, or that it exists already, and the memories that it may contradict."""
    print_rows(written)
    for each in written_lines(written):
        console.print(each)
    if written.beside:
        console.print("It may contradict, or repeat in other words:")
        print_rows(written.beside)
        console.print(f"To settle it: mneme memories accept {written.key[:SHORT]}, or update one.")


def print_letters(found: Letter | Sequence[Letter]) -> None:
    """Print messages of the inbox, without the replies that could not be used."""
    letters: Sequence[Mapping[str, object]] = [found] if isinstance(found, dict) else found
    columns = ("message_id", "status", "tries", "message", "error")
    print_rows([{name: each[name] for name in columns} for each in letters])


def dropped(letter: Letter, _: object) -> dict[str, object]:
    """Return a message of the inbox as one that was closed."""
    return {**letter, "status": "dropped"}


async def reread(user: User = "local", agents: Agents = "auto") -> int:
    """Let a model reread messages that rules remembered; each change is a version with its reason."""
    from rich.progress import Progress, TextColumn

    from mneme.client.workflows import GraphRun, open_session
    from mneme.models.asking.responders import resolve

    if await resolve(agents) == RULES:  # what they have read is what is to be read again
        raise BadInput("No model is there to read again.", "Give one: --agents ollama:MODEL.")
    async with open_session(user) as session:
        config, context = await session.background(), {"memory_agent": agents, "user": session.user}
        run = GraphRun(session.flows, "remember", {}, config, context, "updates")
        with Progress(TextColumn("{task.completed} read again"), console=errors, transient=True) as progress:
            bar = progress.add_task("", total=None)
            async for step in run:
                progress.update(bar, completed=(step.get("count") or {}).get("reread"))
        report = run.values
    print_fields({"read again": report["reread"], "failed": len(report["failed"])})
    for each in report["failed"]:
        print_error(BadInput(f"{each['message_id']}: {each['error']}", "See `mneme inbox list`."))
    return int(bool(report["failed"]))


async def forget(
    key: Annotated[str, typer.Argument(help="A memory's key, or its first letters.")] = "",
    everything: Annotated[bool, "Forget all of this user's memories.", "--all"] = False,
    everything_of: Annotated[
        str,
        typer.Option(
            metavar="USER",
            help="Erase everything of this user: memories, inbox, threads. Cards and pools are the team's.",
        ),
    ] = "",
    with_threads: Annotated[bool, "Delete the whole conversations that contain it."] = False,
    user: User = "local",
    reason: Reason = "requested on the command line",
    yes: Yes = False,
) -> int:
    """Erase a memory for good, with its history, the messages that it came from and the turns that repeat it.

    In conversations, this removes the text of each message that said it, of the reply to that message, and
    of replies that repeat it. Discussions, household runs and team records that repeat it are erased, too. It
    does not reach other messages that say the same in other words, traces sent to LangSmith, the model
    server's logs, exports and backups; backups that may contain it are listed.
    """
    if not everything_of and bool(key) == everything:
        raise BadInput(
            "Choose what to forget.", "Give a memory's key, or --all, or --everything-of with your name."
        )
    async with open_operations(Memories, everything_of or user) as memories:
        # with a key it is the key's user, whatever name was given: nobody's data goes by mistake
        if everything_of and everything_of != (name := await memories.whoami()):
            raise Forbidden(f"Your key is {name}'s, not {everything_of}'s.", f"Say --everything-of {name}.")
        if key:
            await memories.history(key)  # a missing one is reported before a person is asked
        if not await from_person(partial(confirmed, yes)):
            return 0
        if everything_of or everything:
            whole = with_threads or bool(everything_of)
            erased = await memories.forget_everything(reason, threads=whole)
        else:
            erased = await memories.forget(key, reason, whole=with_threads)
    return print_erased(erased)


def print_erased(erased: Erased) -> int:
    """Print what was erased and what may still hold it; return 1 if that is more than backups."""
    emit(erased)
    for each in erased_lines(erased):
        say(escape(each))
    return 1 if erased.left else 0  # `left` is what a person must still erase; backups are only named


def print_deleted(done: Cleaned) -> None:
    """Print which threads were deleted, and which files may still hold something of them."""
    say(f"deleted: {', '.join(done.threads)}")
    for each in done.left:
        say(f"- not erased: {escape(each)}")


def is_left(done: Cleaned) -> bool:
    """Return whether files may still contain deleted text."""
    return bool(done.left)


async def export(
    file: ToFile = Path("-"),
    user: User = "local",
) -> None:
    """Write all memories with their whole history as JSON Lines."""
    async with open_operations(Memories, user, reading=True) as memories:
        lines = await memories.export()
    text = "".join(f"{line}\n" for line in lines)
    if is_written(text, file):
        print_fields({"exported": len(lines), "file": str(file)})


async def import_(
    file: Annotated[Path, "An exported file; `-` reads stdin."],
    user: User = "local",
) -> int:
    """Import exported memories; those that exist already stay unchanged."""
    text = read_file(file, "Give a file that `export` wrote.")
    async with open_operations(Memories, user) as memories:
        report = await memories.import_(text.split("\n"))
    rest = "The other lines are imported." if report.imported else "Nothing is imported."
    for each in () if prints_json() else report.refused:
        print_error(BadInput(f"{file}, line {each.line}: {each.reason}.", rest))
    counted = {name: len(each) if isinstance(each, list) else each for name, each in dict(report).items()}
    print_fields(report.model_dump() if prints_json() else counted)
    return 1 if report.refused else 0


async def reembed() -> None:
    """Compute every vector again with the embedder of the settings; after a crash the old ones remain."""
    from rich.progress import Progress, TextColumn

    where, key = settings().ledger_location, settings().ledger_api_key.get_secret_value()
    embedder = await open_embedder(settings().embedder)
    with Progress(TextColumn("{task.completed} texts embedded"), console=errors) as progress:
        bar = progress.add_task("", total=None)
        count = await rebuild(
            where, embedder, api_key=key, progress=lambda done: progress.update(bar, completed=done)
        )
    print_fields({"embedded": count, "embedder": embedder.name})
