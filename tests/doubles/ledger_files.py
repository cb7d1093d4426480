"""What the files of an embedded ledger hold, and what they must hold."""

import json
import os
from contextlib import suppress
from pathlib import Path

from mneme.stores.ledger.ledger import Ledger

ROOT = Path(__file__).parents[2]


def files_with(folder: Path, *tokens: str) -> list[str]:
    """Return the files that have one of the words; each is read once.

    One that goes meanwhile is passed over: the files of an index are replaced in the background.
    """
    wanted, found = [token.encode() for token in tokens], list[str]()
    for path in (Path(place, name) for place, _, names in os.walk(folder) for name in names):
        with suppress(FileNotFoundError):
            text = path.read_bytes()
            found += [str(path.relative_to(folder))] if any(each in text for each in wanted) else []
    return found


async def check(ledger: Ledger, acknowledged: dict[str, int]) -> None:
    """Hold every acknowledged version against history, current view, search index and counts."""
    lines = [json.loads(line) async for line in ledger.export()]
    histories: dict[str, list[int]] = {}
    for line in lines:
        histories.setdefault(line["key"], []).append(line["version"])
    assert acknowledged.keys() <= histories.keys()
    assert all(numbers == [*range(1, len(numbers) + 1)] for numbers in histories.values())
    assert all(len(histories[key]) >= version for key, version in acknowledged.items())
    heads = await ledger.records((), limit=10**6, include_retired=True)
    assert {head.key: head.version for head in heads} == {k: len(v) for k, v in histories.items()}
    live = [head for head in heads if head.live]
    assert await ledger.count() == len(live)
    found = await ledger.search(("users", "writer"), "record", mode="dense", limit=10**5)
    assert {hit.version.key for hit in found} == {head.key for head in live}
