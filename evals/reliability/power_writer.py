"""Write to a ledger and to checkpoints in MNEME_HOME, and print a JSON line for whatever was acknowledged."""

import asyncio
import json
import os
from collections.abc import Iterable
from pathlib import Path

from mneme.client.backups import back_up
from mneme.evals.reliability.damage import NAMESPACE, Scattered, checkpoint
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change, Version, Write

CHANGE = Change(reason="told", actor="evaluation")
FORGOTTEN = "box-1"


async def main(home: Path) -> None:
    """Insert, update, retire and forget, alone, in a batch and at once; in between, save checkpoints."""
    async with open_checkpointer(str(home / "checkpoints.sqlite")) as saver:
        ledger = await open_ledger(str(home / "ledger"), Scattered())
        await _write(ledger)
        await checkpoint(saver, "thread-0")
        tell(checkpoint="thread-0")
        tell(forgetting=FORGOTTEN)
        await ledger.forget(NAMESPACE, FORGOTTEN, reason="asked", actor="evaluation")
        tell(forgotten=FORGOTTEN)
        await checkpoint(saver, "thread-1")
        tell(checkpoint="thread-1")
        await ledger.close()
    ledger = await open_ledger(str(home / "ledger"), Scattered())
    tell_versions(await ledger.write([box(20)]))
    await ledger.close()
    back_up(home / "backup.zip")
    tell(backup="backup.zip")


async def _write(ledger: Ledger) -> None:
    for number in range(3):
        tell_versions(await ledger.write([box(number)]))
    tell_versions(await ledger.write([box(number) for number in range(3, 8)]))
    for made in asyncio.as_completed([ledger.write([box(number)]) for number in range(8, 14)]):
        tell_versions(await made)
    tell_versions(await ledger.write([box(number, event="update") for number in (0, 3)]))
    tell_versions(await ledger.write([box(4, event="retire")]))


def box(number: int, event: str = "insert") -> Write:
    """Make a write to the record of a box, the second one unless it is inserted."""
    text = None if event == "retire" else f"Box {number} is behind door {number * 7 % 11}, {event}."
    return Write.model_validate(
        {
            "event": event,
            "namespace": NAMESPACE,
            "key": f"box-{number}",
            "value": None if text is None else {"content": text},
            "text": text,
            "change": CHANGE,
            "expected_version": None if event == "insert" else 1,
        }
    )


def tell_versions(versions: Iterable[Version]) -> None:
    for version in versions:
        tell(version=json.loads(version.model_dump_json()))


def tell(**what: object) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(os.environ["MNEME_HOME"])))
