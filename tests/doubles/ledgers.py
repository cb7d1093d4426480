"""Records for the tests of the ledger."""

from typing import Any

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Source, Version

ALICE, BOB = ("users", "alice", "memories"), ("users", "bob", "memories")
SAID = Change(reason="the user said so", actor="memory agent", source=Source(thread="t1", messages=["m1"]))


async def put(ledger: Ledger, text: str, namespace: tuple[str, ...] = ALICE, **more: Any) -> Version:
    value: dict[str, Any] = {"content": text, **more.pop("value", {})}
    return await ledger.insert(namespace, value, text=text, change=SAID, **more)


async def texts(ledger: Ledger, query: str, namespace: tuple[str, ...] = ALICE, **more: Any) -> list[str]:
    return [hit.version.text for hit in await ledger.search(namespace, query, **more)]
