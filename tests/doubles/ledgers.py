"""Records for the tests of the ledger."""

from typing import Any

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Forgotten, Source, Version, make_write, missing

ALICE, BOB = ("users", "alice", "memories"), ("users", "bob", "memories")
SAID = Change(reason="the user said so", actor="memory agent", source=Source(thread="t1", messages=["m1"]))


async def put(ledger: Ledger, text: str, namespace: tuple[str, ...] = ALICE, **more: Any) -> Version:
    value: dict[str, Any] = {"content": text, **more.pop("value", {})}
    return await ledger.insert(namespace, value, text=text, change=SAID, **more)


async def texts(ledger: Ledger, query: str, namespace: tuple[str, ...] = ALICE, **more: Any) -> list[str]:
    return [hit.version.text for hit in await ledger.search(namespace, query, **more)]


async def forget(
    ledger: Ledger, namespace: tuple[str, ...], key: str, *, reason: str = "", actor: str = ""
) -> Forgotten:
    head = await ledger.get(namespace, key)
    [mark] = [None] if head is None else await ledger.forget_records([head], reason=reason, actor=actor)
    if mark is None:
        raise missing(namespace, key)
    return mark


async def restore(ledger: Ledger, namespace: tuple[str, ...], key: str, **stated: Any) -> Version:
    return (await ledger.write([make_write(event="restore", namespace=namespace, key=key, **stated)]))[0]


async def rollback(
    ledger: Ledger, namespace: tuple[str, ...], key: str, to: int, expected_version: int | None = None
) -> Version:
    write = await ledger.rolled_back(namespace, key, to, expected_version, change=SAID)
    return (await ledger.write([write]))[0]
