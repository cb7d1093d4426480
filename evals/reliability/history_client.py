"""Clients of a ledger that read and change a few records, and print each operation before and after it.

Run as a program, it does so with several threads of several tasks each, until it is killed.
"""

import asyncio
import json
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from mneme.core.errors import Conflict, LedgerInUse, MnemeError, NotFound
from mneme.evals.reliability.damage import Scattered
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change, Version

NAMESPACE = ("users", "ann", "memories")
CHANGE = Change(reason="told", actor="evaluation")
KINDS = {"read": 45, "insert": 15, "update": 32, "retire": 6, "forget": 2}
"""How often a client does what."""
TURN = 2.0
"""Seconds for which a process keeps the ledger; on a folder, another has its turn then."""
Tell = Callable[[dict[str, Any]], None]
Serial = Callable[[], str]


async def act(ledger: Ledger, chance: random.Random, keys: int, serial: Serial, tell: Tell) -> None:
    """Do one thing after another until cancelled, and tell of each."""
    known: dict[str, int] = {}
    while True:
        key = f"k{chance.randrange(keys)}"
        [kind] = chance.choices(list(KINDS), list(KINDS.values()))
        begun = {
            "id": serial(),
            "key": key,
            "kind": kind,
            "begun": time.monotonic_ns(),
            "text": f"text {serial()}",
            "version": known.get(key, 1),
        }
        tell(begun)
        result = await _result(_doing(ledger, begun), kind)
        head = result.pop("head", None)
        if head is not None:
            known[key] = head.version
            result["seen"] = [head.version, head.text, head.live]
        tell({"id": begun["id"], "ended": time.monotonic_ns(), **result})


async def _doing(ledger: Ledger, what: dict[str, Any]) -> Version | None:
    key, expected = what["key"], what["version"]
    match what["kind"]:
        case "read":
            return await ledger.get(NAMESPACE, key)
        case "insert":
            return await ledger.insert(NAMESPACE, {}, text=what["text"], change=CHANGE, key=key)
        case "update":
            return await ledger.update(
                NAMESPACE, key, {}, text=what["text"], change=CHANGE, expected_version=expected
            )
        case "retire":
            return await ledger.retire(NAMESPACE, key, change=CHANGE, expected_version=expected)
        case _:
            await ledger.forget(NAMESPACE, key, reason="asked", actor="evaluation")
            return None


async def _result(doing: Awaitable[Version | None], kind: str) -> dict[str, Any]:
    try:
        return {"result": "done", "head": await doing}
    except NotFound:  # an insertion was there for a moment, and forgotten at once; or never
        return {"result": "unknown" if kind == "insert" else "missing"}
    except Conflict:
        return {"result": "conflict"}
    except MnemeError as failure:
        return {"result": "unknown", "why": str(failure)}


async def turns(location: str, seed: str, keys: int, tasks: int) -> None:
    """Open the ledger as soon as it is free, act for a turn with several tasks, and close it; for ever."""
    numbers = count()
    while True:
        try:
            ledger = await open_ledger(location, Scattered())
        except LedgerInUse:
            await asyncio.sleep(0.05)
            continue
        try:
            async with asyncio.timeout(TURN):
                await asyncio.gather(
                    *(
                        act(
                            ledger,
                            random.Random(f"{seed}-{task}-{time.monotonic_ns()}"),  # noqa: S311
                            keys,
                            lambda: f"{seed}-{next(numbers)}",
                            _print,
                        )
                        for task in range(tasks)
                    )
                )
        except TimeoutError:
            pass
        finally:
            await ledger.close()
        await asyncio.sleep(0.1)


def _print(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")  # one write, so that threads do not mix their lines
    sys.stdout.flush()


def main(location: str, seed: str, keys: str, threads: str, tasks: str) -> None:
    works = [turns(location, f"{seed}-{number}", int(keys), int(tasks)) for number in range(int(threads))]
    running = [threading.Thread(target=asyncio.run, args=(work,)) for work in works]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
