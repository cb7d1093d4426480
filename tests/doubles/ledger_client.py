"""A process that reads and changes a few records that other processes change too, and notes each call.

Each line of the file that it is given is a call when it begins (`n`, `call`) or how it ended (`n`, `ended`),
with the clock that all processes of a machine share. A call that is noted as begun only, or as `unknown`, may
have happened, at any time since.
"""

import asyncio
import json
import os
import random
import sys
import time
from typing import Any
from uuid import uuid4

from mneme.core.errors import Conflict, NotFound, StorageFailure
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change, Version
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget, restore
from tests.doubles.qdrant_server import KEY

SHARED = ("teams", "shared")
KEYS = [f"k{number}" for number in range(8)]
SAID = Change(reason="said so", actor="client")
CALLS = {"get": 30, "search": 10, "update": 34, "insert": 10, "retire": 4, "restore": 4, "forget": 8}
TRIES = 4


async def main(location: str, seed: int, file: str) -> None:
    """Call at random until the process is killed."""
    chance = random.Random(seed)
    client = Client(await opened(location), file, chance)
    while True:
        [kind] = chance.choices([*CALLS], [*CALLS.values()])
        await client.call(kind, chance.choice(KEYS))


async def opened(location: str) -> Ledger:
    """Open the ledger, also while one of its servers is away."""
    while True:
        try:
            return await open_ledger(
                location, WordEmbedder(dimension=8), api_key=KEY if "|" in location else ""
            )
        except StorageFailure:
            await asyncio.sleep(0.2)


class Client:
    """One of several clients; it expects the versions that it read or wrote last."""

    def __init__(self, ledger: Ledger, file: str, chance: random.Random) -> None:
        self._ledger, self._chance = ledger, chance
        self._notes = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._seen: dict[str, int] = {}
        self._calls = 0

    async def call(self, kind: str, key: str) -> None:
        self._calls += 1
        text = f"{key} {self._chance.randbytes(6).hex()}"
        expected = self._seen.get(key, 1)
        self._note(call=kind, key=key, text=text, expected=expected)
        self._note(ended=await self._tried(kind, key, text, expected))

    def _note(self, **said: Any) -> None:
        line = json.dumps({"n": f"{os.getpid()}/{self._calls}", "at": time.monotonic_ns(), **said})
        os.write(self._notes, line.encode() + b"\n")

    async def _tried(self, kind: str, key: str, text: str, expected: int) -> Any:
        """Return the answer, `refused`, `lost` or `unknown`; what failed is asked again, and counts once."""
        once = uuid4().hex
        for attempt in range(TRIES):
            try:
                return await self._done(kind, key, text, expected, once)
            except StorageFailure:
                await asyncio.sleep(0.3)
            except Conflict:
                return "unknown" if attempt else "lost" if kind == "forget" else "refused"
            except NotFound:  # an insertion was there for a moment, and forgotten at once; or never
                return "unknown" if attempt or kind == "insert" else "refused"
        return "unknown"

    async def _done(self, kind: str, key: str, text: str, expected: int, once: str) -> Any:
        given: dict[str, Any] = {"change": SAID, "idempotency_key": once}
        match kind:
            case "get":
                head = await self._ledger.get(SHARED, key)
                return None if head is None else self._read(head)
            case "search":
                mode = self._chance.choice(["dense", "bm25", "hybrid"])
                hits = await self._ledger.search(SHARED, key, mode=mode, limit=2 * len(KEYS))  # type: ignore[arg-type]
                return [self._read(hit.version) for hit in hits]
            case "insert":
                return self._read(await self._ledger.insert(SHARED, {}, text=text, key=key, **given))
            case "update":
                made = self._ledger.update(SHARED, key, {}, text=text, expected_version=expected, **given)
                return self._read(await made)
            case "forget":
                await forget(self._ledger, SHARED, key, reason="", actor="client")
                return "forgotten"
            case "restore":
                return self._read(
                    await restore(self._ledger, SHARED, key, expected_version=expected, **given)
                )
            case _:
                return self._read(await self._ledger.retire(SHARED, key, expected_version=expected, **given))

    def _read(self, version: Version) -> dict[str, Any]:
        self._seen[version.key] = version.version
        return answer_of(version)


def answer_of(version: Version) -> dict[str, Any]:
    """Return what is noted of a version that was read."""
    return {"key": version.key, "version": version.version, "text": version.text, "live": version.live}


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
