"""What household runs left: lines, files and checkpoints."""

import json
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from mneme.stores.checkpoints.checkpointer import latest_values, open_checkpointer


def changed(home: Path, sql: str) -> None:
    """Change the checkpoints as another program could."""
    with closing(sqlite3.connect(home / "checkpoints.sqlite")) as connection, connection:
        connection.execute(sql)


def copied(trace: Path, other: Path, **more: str) -> None:
    """Copy a run, with something more in its first line."""
    begun, *others = trace.read_text().splitlines()
    other.parent.mkdir(exist_ok=True)
    other.write_text("\n".join([json.dumps(json.loads(begun) | more), *others, ""]))


def lines(trace: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in trace.read_text().splitlines()]


async def checkpoints_of(home: Path, run: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the metadata and the values of the latest checkpoint of a run."""
    async with open_checkpointer(str(home / "checkpoints.sqlite")) as saver:
        names = {each.metadata["thread_name"].split("/")[1]: each for each in await saver.threads()}
        return names[run].metadata, await saver.read(partial(latest_values, thread=names[run].id))
