"""`mneme memories …`: list, search and change memories."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.progress import Progress, TextColumn

from mneme.api.memories import Erased, Memories, Written
from mneme.cli.confirming import confirmed
from mneme.cli.files import is_written, read_file
from mneme.cli.show import console, errors, print_error, print_fields, print_json, print_result, print_table
from mneme.client.home import open_operations
from mneme.client.session import Session, open_session
from mneme.client.waiting import alone
from mneme.core.errors import BadInput, Forbidden
from mneme.core.settings import settings
from mneme.models.asking.responders import resolve
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.ledger.records import Version
from mneme.stores.ledger.reembedding import reembed as rebuild
from mneme.stores.ledger.transfer import ImportReport
from mneme.stores.users.memories import RULES, Memory, MemoryRecord
from mneme.stores.users.valid_time import holds

SHORT = 8
KEY = re.compile(r"\b[0-9a-f]{32}\b")


def print_listed(found: Sequence[MemoryRecord]) -> None:
    """Print memories, and how many of them a model could read again."""
    print_memories(found)
    if count := sum(each.memory.read_by == RULES for each in found):
        console.print(
            f"[dim]{count} of these were read by rules; a model reads them again: mneme memories reread[/]"
        )


def print_written(written: Written) -> None:
    """Print what was written, or that it is known, and what it may contradict."""
    print_memories([written])
    if not written.is_new:
        console.print("It was remembered already, word for word: nothing was written.")
    if written.beside:
        console.print("It may contradict, or repeat in other words:")
        print_memories(written.beside)
        console.print(f"To settle it: mneme memories review --accept {written.key[:SHORT]}, or update one.")


async def reread(user: str, agents: str, as_json: bool) -> int:
    """Let a model read again what rules have read; return 1 if some could not be read."""
    if await resolve(agents) == RULES:
        raise BadInput("No model is there to read again.", "Give one: --agents ollama:MODEL.")
    async with open_session(user) as session:
        report = await _reread(session, agents)
    failed = [f"{each['message_id']}: {each['error']}" for each in report["failed"]]
    print_fields({"read again": report["reread"], "failed": len(failed)}, as_json)
    for each in failed:
        print_error(BadInput(each, "See `mneme inbox list`."), as_json)
    return 1 if failed else 0


async def _reread(session: Session, agents: str) -> dict[str, Any]:
    """Run the memory agent, showing how far it is; return its report."""
    config, context = await session.background(), {"memory_agent": agents, "user": session.user}
    with Progress(TextColumn("{task.completed} read again"), console=errors, transient=True) as progress:
        bar = progress.add_task("", total=None)
        async for step in session.flows.stream("remember", {}, config, context, "updates"):
            progress.update(bar, completed=(step.get("count") or {}).get("reread"))
    _, report = await session.flows.left_at("remember", config)
    return report


async def review(user: str, accept: str, as_json: bool) -> None:
    """Print the memories that are flagged, with the reasons; or take the flag off one."""
    async with open_operations(Memories, user, reading=not accept) as memories:
        if accept:
            await memories.accept(accept)
        found = await memories.flagged()
    print_result(found, as_json, _print_flagged)


def _print_flagged(found: Sequence[MemoryRecord]) -> None:
    rows = ([each.key[:SHORT], each.memory.content, _short_keys(each.memory.attention)] for each in found)
    print_table("", ("key", "memory", "why look at it"), rows)


def print_memory(remembered: MemoryRecord) -> None:
    """Print one memory with all its fields."""
    fields = remembered.model_dump(exclude={"memory", "similarity"}) | remembered.memory.model_dump()
    print_table("", ("field", "value"), ((name, _cell(value)) for name, value in fields.items()))


def print_memory_line(record: MemoryRecord) -> None:
    """Print one memory as a line of a table."""
    print_memories([record])


def print_text(text: str) -> None:
    """Print a text as it is."""
    console.print(escape(text))


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
        print_fields({"exported": len(lines), "file": str(file)}, as_json)


async def import_(user: str, file: Path, as_json: bool) -> int:
    """Import exported lines; return 1 if some were refused."""
    text = read_file(file, "Give a file that `export` wrote.")
    async with open_operations(Memories, user) as memories:
        report = await memories.import_(text.split("\n"))
    for each in () if as_json else report.refused:
        print_error(BadInput(f"{file}, line {each.line}: {each.reason}.", "The other lines are imported."))
    print_fields(report.model_dump() if as_json else _counted(report), as_json)
    return 1 if report.refused else 0


def _counted(report: ImportReport) -> dict[str, object]:
    return {name: len(value) if isinstance(value, list) else value for name, value in dict(report).items()}


def print_memories(found: Sequence[MemoryRecord]) -> None:
    """Print memories as a table."""
    notes = [_note(each.memory) for each in found]
    scored = any(each.similarity is not None for each in found)
    more = [*(["note"] if any(notes) else []), *(["similarity"] if scored else [])]
    rows = (_row(each, note, more) for each, note in zip(found, notes, strict=True))
    print_table("", ("key", "v", "memory", "kind", "since", *more), rows)


def _row(each: MemoryRecord, note: str, more: Sequence[str]) -> list[str]:
    content = each.memory.content if each.live else f"{each.memory.content} (retired)"
    row = [each.key[:SHORT], str(each.version), content, each.memory.kind, f"{each.at:%Y-%m-%d %H:%M}"]
    similarity = "" if each.similarity is None else f"{each.similarity:.2f}"
    return [*row, *({"note": note, "similarity": similarity}[column] for column in more)]


HOLDING = {"now": "", "later": "not yet", "past": "no longer"}


def _note(memory: Memory) -> str:
    """Say when a memory holds, why somebody should look at it, and whether no model has read it."""
    when = " ".join(filter(None, [HOLDING[memory.holding], holds("", memory.since, memory.until).strip()]))
    read = "read by rules" if memory.read_by == RULES else ""
    return "; ".join(filter(None, [when, _short_keys(memory.attention), read]))


def _short_keys(text: str) -> str:
    return KEY.sub(lambda found: found[0][:SHORT], text)


def print_history(versions: Sequence[Version]) -> None:
    """Print the versions of a memory, oldest first."""
    columns = ("v", "event", "memory", "when", "who", "why")
    print_table("", columns, (_version_row(version) for version in versions))


def _version_row(version: Version) -> list[str]:
    who = " / ".join(filter(None, (version.change.actor, version.change.model)))
    content, flag = version.value.get("content"), version.value.get("flag")
    doubt = f" ({flag})" if isinstance(flag, str) and flag else ""
    shown = content if isinstance(content, str) else json.dumps(version.value, ensure_ascii=False)
    return [
        str(version.version),
        version.event,
        shown,
        f"{version.at:%Y-%m-%d %H:%M:%S}",
        who,
        f"{version.change.reason}{doubt}",
    ]


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


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
    print_fields({"embedded": count, "embedder": embedder.name}, as_json)
