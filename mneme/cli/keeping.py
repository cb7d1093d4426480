"""`mneme verify`, `mneme repair`, `mneme backup` and `mneme restore`."""

import asyncio
from pathlib import Path

from rich.markup import escape

from mneme.cli.show import console, print_json
from mneme.client import backups
from mneme.client.backups import Backup
from mneme.core.settings import settings
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.checkpoints.files import check_checkpoints
from mneme.stores.ledger import verifying
from mneme.stores.ledger.verifying import Verified


async def verify(as_json: bool) -> int:
    """Read all files and compare them; return 1 if something is wrong."""
    found = await verifying.verify(settings().ledger_location, _key())
    checkpoints = Path(settings().checkpoints_location).expanduser()
    wrong = await asyncio.to_thread(check_checkpoints, checkpoints)
    found = found.model_copy(update={"problems": [*found.problems, *wrong]})
    if as_json:
        print_json(found)
    else:
        _print_verified(found)
    return 1 if found.problems else 0


def _print_verified(found: Verified) -> None:
    console.print(
        f"{escape(found.location)}: {found.records} records, {found.versions} versions", soft_wrap=True
    )
    for problem in found.problems:
        console.print(f"- {escape(problem)}", soft_wrap=True)
    advice = "`mneme repair` builds the ledger anew from what is whole; `mneme restore` brings back a backup."
    console.print(advice if found.problems else "Everything is whole.", soft_wrap=True)


async def repair(as_json: bool) -> int:
    """Build the ledger anew from what is whole; return 1 if something is lost."""
    embedder = await open_embedder(settings().embedder)
    done = await verifying.repair(settings().ledger_location, embedder, _key())
    if as_json:
        print_json(done)
        return 1 if done.lost else 0
    if not done.old:
        console.print("Everything is whole; nothing was done.")
        return 0
    console.print(f"Built anew: {done.records} records, {done.versions} versions.")
    for each in done.lost:
        console.print(f"- lost: {escape(each)}", soft_wrap=True)
    console.print(f"The damaged files are in {escape(done.old)}.", soft_wrap=True)
    return 1 if done.lost else 0


async def backup(file: Path, as_json: bool) -> None:
    """Write everything into one file."""
    _print_backup("Written", await asyncio.to_thread(backups.back_up, file), as_json)


async def restore(file: Path, as_json: bool) -> None:
    """Restore a backup into an empty place."""
    embedder = await open_embedder(settings().embedder)
    _print_backup("Restored", await backups.restore(file, embedder), as_json)


def _print_backup(what: str, done: Backup, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    also = ", and the checkpoints" if done.checkpoints else "; there are no checkpoints"
    console.print(f"{what}: {done.records} records with {done.versions} versions{also}.", soft_wrap=True)


def _key() -> str:
    return settings().ledger_api_key.get_secret_value()
