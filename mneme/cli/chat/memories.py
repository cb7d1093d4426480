"""`mneme memories …`: list, search and change memories."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rich.markup import escape
from rich.progress import Progress, TextColumn

from mneme.api.memories import Erased, Memories
from mneme.cli.confirming import confirmed
from mneme.cli.files import is_written, read_file
from mneme.cli.show import console, errors, print_error, print_json, print_table, versions_listed_by
from mneme.client.home import open_operations
from mneme.client.waiting import alone
from mneme.core.errors import BadInput, Forbidden
from mneme.core.settings import settings
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.engine import Mode
from mneme.stores.ledger.records import Version
from mneme.stores.ledger.reembedding import reembed as rebuild
from mneme.stores.ledger.transfer import ImportReport
from mneme.stores.users.memories import MemoryRecord

SHORT = 8


async def list_(user: str, limit: int, retired: bool, as_json: bool) -> None:
    """List memories."""
    async with open_operations(Memories, user, reading=True) as memories:
        print_memories(await memories.list(limit=limit, include_retired=retired), as_json)


async def search(user: str, query: str, limit: int, mode: Mode, as_json: bool) -> None:
    """Print the memories that match a query best."""
    async with open_operations(Memories, user, reading=True, searching=True) as memories:
        found = await memories.recall(query, limit, mode)
    print_memories(found, as_json)


async def review(user: str, accept: str, as_json: bool) -> None:
    """Print the memories that are flagged, with the reasons; or take the flag off one."""
    async with open_operations(Memories, user, reading=not accept) as memories:
        if accept:
            await memories.accept(accept)
        found = await memories.flagged()
    if as_json or not found:
        print_memories(found, as_json)
        return
    rows = (
        [each.key[:SHORT], each.memory.content, each.memory.flag or each.memory.unclear] for each in found
    )
    print_table("", ("key", "memory", "why look at it"), rows)


async def show(user: str, key: str, as_json: bool) -> None:
    """Print one memory with all its fields."""
    async with open_operations(Memories, user, reading=True) as memories:
        remembered = await memories.show(key)
    if as_json:
        print_json(remembered)
        return
    fields = remembered.model_dump(exclude={"memory", "similarity"}) | remembered.memory.model_dump()
    print_table("", ("field", "value"), ((name, _cell(value)) for name, value in fields.items()))


async def history(user: str, key: str, as_json: bool) -> None:
    """Print every version of a memory."""
    async with open_operations(Memories, user, reading=True) as memories:
        print_history(await memories.history(key), as_json)


async def diff(user: str, key: str, older: int, newer: int, as_json: bool) -> None:
    """Print what changed between two versions."""
    async with open_operations(Memories, user, reading=True) as memories:
        with versions_listed_by(f"mneme memories history {key}"):
            text = await memories.diff(key, older, newer)
    if as_json:
        print_json({"diff": text})
        return
    console.print(escape(text))


async def as_of(user: str, time: str, as_json: bool) -> None:
    """Print what was remembered at a time; without a time zone it is local time."""
    try:
        at = datetime.fromisoformat(time).astimezone()
    except ValueError as error:
        raise BadInput(f"{time!r} is not a time.", "Write it like 2026-11-20 or 2026-11-20T09:30.") from error
    async with open_operations(Memories, user, reading=True) as memories:
        print_memories(await memories.as_of(at), as_json)


async def rollback(user: str, key: str, version: int, reason: str, as_json: bool) -> None:
    """Add a version that equals an older one."""
    async with open_operations(Memories, user) as memories:
        with versions_listed_by(f"mneme memories history {key}"):
            rolled = await memories.rollback(key, version, reason)
    print_memories([rolled], as_json)


async def undo(user: str, as_json: bool) -> None:
    """Take back the last change."""
    async with open_operations(Memories, user) as memories:
        undone = await memories.undo()
    print_memories([undone] if undone else [], as_json)


async def forget(
    user: str, key: str, everything: bool, whole: bool, reason: str, yes: bool, as_json: bool
) -> int:
    """Erase one memory, or all of them; return 1 if a file may still hold it."""
    if bool(key) == everything:
        raise BadInput(
            "Choose what to forget.", "Give a memory's key, or --all, or --everything-of with your name."
        )
    if not confirmed(yes):
        return 0
    async with open_operations(Memories, user) as memories:
        if everything:
            erased = await memories.forget_everything(reason, threads=whole)
        else:
            erased = await memories.forget(key, reason, whole=whole)
    return print_erased(erased, as_json)


async def forget_user(user: str, reason: str, yes: bool, as_json: bool) -> int:
    """Erase all that is kept of a user; return 1 if a file may still hold it."""
    if not confirmed(yes):
        return 0
    async with open_operations(Memories, user) as memories:
        if user != (name := await memories.whoami()):
            raise Forbidden(f"Your key is {name}'s, not {user}'s.", f"Say --everything-of {name}.")
        erased = await memories.forget_everything(reason, threads=True)
    return print_erased(erased, as_json)


def print_erased(erased: Erased, as_json: bool) -> int:
    """Print what was erased and what may still hold it; return 1 if that is more than backups."""
    if as_json:
        print_json(erased)
        return 1 if erased.left else 0
    console.print(
        f"forgotten: {erased.records}, messages: {erased.turns}, threads: {len(erased.threads)}",
        soft_wrap=True,
    )
    for each in erased.left:
        console.print(f"- not erased: {escape(each)}", soft_wrap=True)
    for each in erased.backups:
        console.print(f"- a backup may hold it: {escape(each)}", soft_wrap=True)
    return 1 if erased.left else 0


async def export(user: str, file: Path, as_json: bool) -> None:
    """Write every version of every memory as JSON Lines."""
    async with open_operations(Memories, user, reading=True) as memories:
        lines = await memories.export()
    text = "".join(f"{line}\n" for line in lines)
    if is_written(text, file):
        _print_fields({"exported": len(lines), "file": str(file)}, as_json)


async def import_(user: str, file: Path, as_json: bool) -> int:
    """Import exported lines; return 1 if some were refused."""
    text = read_file(file, "Give a file that `export` wrote.")
    async with open_operations(Memories, user) as memories:
        report = await memories.import_(text.split("\n"))
    for each in () if as_json else report.refused:
        print_error(BadInput(f"{file}, line {each.line}: {each.reason}.", "The other lines are imported."))
    _print_fields(report.model_dump() if as_json else _counted(report), as_json)
    return 1 if report.refused else 0


def _counted(report: ImportReport) -> dict[str, object]:
    return {name: len(value) if isinstance(value, list) else value for name, value in dict(report).items()}


def print_memories(found: Sequence[MemoryRecord], as_json: bool) -> None:
    """Print memories as a table or as JSON Lines."""
    if as_json:
        for each in found:
            print_json(each)
        return
    if not found:
        console.print("[dim]nothing[/]")
        return
    scored = any(each.similarity is not None for each in found)
    columns = ("key", "v", "memory", "kind", "since", *(["similarity"] if scored else []))
    print_table("", columns, (_row(each, scored) for each in found))


def _row(each: MemoryRecord, scored: bool) -> list[str]:
    content = each.memory.content if each.live else f"{each.memory.content} (retired)"
    row = [each.key[:SHORT], str(each.version), content, each.memory.kind, f"{each.at:%Y-%m-%d %H:%M}"]
    return [*row, "" if each.similarity is None else f"{each.similarity:.2f}"] if scored else row


def print_history(versions: Sequence[Version], as_json: bool) -> None:
    """Print the versions of a memory, oldest first."""
    if as_json:
        for version in versions:
            print_json(version)
        return
    columns = ("v", "event", "memory", "when", "who", "why")
    print_table("", columns, (_version_row(version) for version in versions))


def _version_row(version: Version) -> list[str]:
    who = " / ".join(filter(None, (version.change.actor, version.change.model)))
    content = version.value.get("content")
    shown = content if isinstance(content, str) else json.dumps(version.value, ensure_ascii=False)
    return [
        str(version.version),
        version.event,
        shown,
        f"{version.at:%Y-%m-%d %H:%M:%S}",
        who,
        version.change.reason,
    ]


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _print_fields(what: dict[str, object], as_json: bool) -> None:
    if as_json:
        print_json(what)
        return
    console.print(", ".join(f"{name}: {value}" for name, value in what.items()))


async def reembed(as_json: bool) -> None:
    """Compute every vector again with the embedder of the settings; after a crash the old vectors remain."""
    where, key = settings().ledger_location, settings().ledger_api_key.get_secret_value()
    embedder = await open_embedder(settings().embedder)
    with Progress(TextColumn("{task.completed} points copied"), console=errors) as progress:
        bar = progress.add_task("", total=None)
        count = await alone(
            lambda: rebuild(
                where, embedder, api_key=key, progress=lambda done: progress.update(bar, completed=done)
            )
        )
    _print_fields({"embedded": count, "embedder": embedder.name}, as_json)
