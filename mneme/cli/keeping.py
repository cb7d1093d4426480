"""`mneme verify`, `mneme repair`, `mneme backup` and `mneme restore`."""

import asyncio
from pathlib import Path
from typing import Annotated

from rich.markup import escape

from mneme.api.copies import noted
from mneme.api.rendering import count_of
from mneme.api.threads import damaged_threads
from mneme.cli.show import console, emit, say
from mneme.client import backups
from mneme.client.backups import Backup
from mneme.core.settings import settings
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.checkpoints.checkpointer import opened_checkpointer
from mneme.stores.checkpoints.files import accept_missing, check_checkpoints
from mneme.stores.ledger import verifying
from mneme.stores.ledger.verifying import RepairReport, VerifyReport

ADVICE = "`mneme repair` builds the ledger anew from what is whole; `mneme restore` brings back a backup."
REWRITTEN = """Rewritten without what was erased. It may still be in backups and snapshots, and on a server in
Postgres's write-ahead log and its archives, until they are removed."""


async def verify() -> int:
    """Read all files of the ledger and of conversations, and list what is damaged or gone."""
    found = await verifying.verify(settings().ledger_location, _key())
    # damage of a conversation brings its own remedy in its line; the advice is on the ledger
    wrong = await _problems_beside()
    advice = found.hint or ADVICE if found.problems else "" if wrong else "Everything is whole."
    found = found.model_copy(update={"problems": [*found.problems, *wrong]})
    emit(found)
    where = escape(found.location)
    say(f"{where}: {_counted(found)}")
    for each in (made for made in noted().backups if made.is_restored):
        say(f"restored from {escape(each.file)}, of {each.at:%Y-%m-%d %H:%M}")
    for problem in found.problems:
        say(f"- {escape(problem)}")
    if advice:
        say(advice)
    return 1 if found.problems else 0


async def _problems_beside() -> list[str]:
    """Return damage outside the ledger: conversations."""
    location = settings().checkpoints_location
    path = Path(location).expanduser()
    if wrong := await asyncio.to_thread(check_checkpoints, path):
        return wrong
    is_there = "://" in location or await asyncio.to_thread(path.is_file)  # opening would make the file
    return await damaged_threads() if is_there else []


async def repair(
    vacuum: Annotated[
        bool, "Also rewrite all tables and files without what was erased; others wait."
    ] = False,
) -> int:
    """Rebuild a damaged ledger from its intact versions, and list what is lost."""
    embedder = await open_embedder(settings().embedder)
    done = await verifying.repair(settings().ledger_location, embedder, _key())
    checkpoints = Path(settings().checkpoints_location).expanduser()
    # rows that are gone cannot come back; if their number stood, every later check would report them again
    missing = await asyncio.to_thread(accept_missing, checkpoints) if checkpoints.is_file() else []
    done = done.model_copy(update={"lost": [*done.lost, *missing]})
    if vacuum:
        await verifying.vacuum(settings().ledger_location, embedder, _key())
        async with opened_checkpointer() as saver:
            await saver.vacuum()
        say(REWRITTEN)
    emit(done.model_dump() | {"rewritten": vacuum})
    left = await _problems_beside()
    for each in (*(f"lost: {each}" for each in missing), *(f"not repaired: {each}" for each in left)):
        say(f"- {escape(each)}")
    if not done.old:
        is_whole = not (missing or left)
        whole = "Everything is whole." if vacuum else "Everything is whole; nothing was done."
        console.print(whole if is_whole else "The ledger is whole.")
        return int(not is_whole)
    console.print(f"Built anew: {_counted(done)}.")
    for each in done.lost:
        say(f"- lost: {escape(each)}")
    say(f"The damaged files are in {escape(done.old)}.")
    return 1 if done.lost or left else 0


async def backup(
    file: Annotated[Path, "Where to write; it must not exist."],
) -> None:
    """Write all memories and conversations into one file, also while they are in use."""
    _print_backup("Written", await asyncio.to_thread(backups.back_up, file))


async def restore(
    file: Annotated[Path, "A file of `mneme backup`."],
) -> None:
    """Restore a backup where there are no memories yet."""
    embedder = await open_embedder(settings().embedder)
    _print_backup("Restored", await backups.restore(file, embedder))


def _print_backup(what: str, done: Backup) -> None:
    emit(done)
    also = ", and the checkpoints" if done.checkpoints else "; there are no checkpoints"
    say(f"{what}: {_counted(done)}{also}.")


def _counted(found: VerifyReport | RepairReport | Backup) -> str:
    return f"{count_of(found.records, 'record')}, {count_of(found.versions, 'version')}"


def _key() -> str:
    return settings().ledger_api_key.get_secret_value()
