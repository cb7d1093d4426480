"""A record that is forgotten while another process writes it stays forgotten, whatever the moment.

Each request of the writer is a moment, and each operation of a batch: there the record is forgotten by
another process. The writer goes on, or is killed at that moment or at a later one.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from functools import partial
from typing import Any, cast
from uuid import uuid4

import pytest
from qdrant_client import AsyncQdrantClient

from mneme.core.errors import NotFound, StorageFailure
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change, Version
from tests.doubles.embedding import WordEmbedder
from tests.doubles.qdrant_server import at

ALICE = ("users", "alice", "memories")
SAID = Change(reason="said so", actor="agent")
WORD = "Zanzibarrow"
MOMENTS = 12
"""More than a write has."""
Work = Callable[[Ledger], Awaitable[Version]]
writing: ContextVar["Moments | None"] = ContextVar("writing", default=None)


class Moments:
    """The moments of one write: at the moment `forget` something is done, at the moment `death` it dies."""

    def __init__(self, forget: int, death: int, forgetting: Callable[[], Awaitable[None]]) -> None:
        self.forget, self.death, self.forgetting = forget, death, forgetting
        self.passed = 0

    async def comes(self) -> None:
        self.passed += 1
        if self.passed == self.forget:
            outside = writing.set(None)
            await self.forgetting()
            writing.reset(outside)
        if self.passed == self.death:
            raise ConnectionError("killed")


@pytest.fixture(autouse=True)
def moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a moment pass before each request of a writer, and send the operations of a batch one by one."""
    batch = AsyncQdrantClient.batch_update_points

    def stepwise(name: str) -> None:
        method = getattr(AsyncQdrantClient, name)

        async def stepped(*given: Any, **named: Any) -> Any:
            if now := writing.get():
                await now.comes()
            return await method(*given, **named)

        monkeypatch.setattr(AsyncQdrantClient, name, stepped)

    async def one_by_one(self: Any, collection: str, operations: list[Any], **named: Any) -> None:
        now = writing.get()
        for some in [[each] for each in operations] if now else [operations]:
            if now:
                await now.comes()
            await batch(self, collection, some, **named)

    monkeypatch.setattr(AsyncQdrantClient, "batch_update_points", one_by_one)
    stepwise("upsert")
    stepwise("retrieve")


@pytest.fixture(params=["double", "qdrant"])
def location(request: pytest.FixtureRequest) -> str:
    """Name a new ledger on the double, and on a real server."""
    return str(request.getfixturevalue(f"{request.param}_location"))


@pytest.fixture
async def ledgers(location: str, embedder: WordEmbedder) -> AsyncIterator[tuple[Ledger, Ledger]]:
    both = await open_ledger(location, embedder), await open_ledger(location, embedder)
    yield both
    for each in both:
        await each.close()


async def insert(ledger: Ledger) -> Version:
    return await ledger.insert(ALICE, {}, text=WORD, change=SAID, key="k", idempotency_key=uuid4().hex)


async def update(ledger: Ledger, seen: int) -> Version:
    return await ledger.update(
        ALICE, "k", {}, text=f"{WORD} again", change=SAID, expected_version=seen, idempotency_key=uuid4().hex
    )


async def written(ledger: Ledger, other: Ledger, work: Work, forget: int, death: int) -> int:
    """Write, and forget at one moment; return how many moments there were, 0 where it was not forgotten."""
    forgotten: list[bool] = []

    async def forgetting() -> None:
        if await other.get(ALICE, "k"):
            await other.forget(ALICE, "k", reason="", actor="")
            forgotten.append(True)

    now = Moments(forget, death, forgetting)
    outside = writing.set(now)
    try:
        await work(ledger)
    except (NotFound, StorageFailure):
        assert forgotten or death
    finally:
        writing.reset(outside)
    return now.passed if forgotten else 0


@pytest.mark.parametrize(
    "dies", [pytest.param(False, id="goes on"), pytest.param(True, id="is killed", marks=pytest.mark.long)]
)
@pytest.mark.parametrize("work", [insert, update])
async def test_what_is_forgotten_stays_forgotten_whatever_its_writer_does(
    ledgers: tuple[Ledger, Ledger], location: str, embedder: WordEmbedder, work: Work, dies: bool
) -> None:
    ledger, other = ledgers
    tried, doing, is_update = 0, work, cast("object", work) is update
    for forget in range(1, MOMENTS):
        for death in range(forget, MOMENTS) if dies else (0,):
            if is_update:
                before = await ledger.insert(ALICE, {}, text=WORD, change=SAID, key="k")
                doing = partial(update, seen=before.version)
            if not await written(ledger, other, doing, forget, death):
                await forgotten_anyway(other)
                break
            tried += 1
            if dies:
                await (await open_ledger(location, embedder)).close()
            assert await other.get(ALICE, "k") is None, (forget, death)
            assert await holding(location, WORD) == [], (forget, death)
            assert await other.search(ALICE, WORD, mode="bm25") == []
            await goes_on(other)
    assert tried >= (20 if dies else 5)


async def forgotten_anyway(ledger: Ledger) -> None:
    if await ledger.get(ALICE, "k"):
        await ledger.forget(ALICE, "k", reason="", actor="")


async def goes_on(ledger: Ledger) -> None:
    """See that nothing that was left is in the way of the same key."""
    made = await ledger.insert(ALICE, {}, text="tea", change=SAID, key="k")
    await ledger.update(ALICE, "k", {}, text="green tea", change=SAID, expected_version=made.version)
    assert [version.text for version in await ledger.history(ALICE, "k")] == ["tea", "green tea"]
    await ledger.forget(ALICE, "k", reason="", actor="")


async def holding(location: str, word: str) -> list[str]:
    """Return the points of which the payload has a word in it."""
    async with at(location) as (client, name):
        records, _ = await client.scroll(name, limit=1000)
    return [str(record.id) for record in records if word in str(record.payload)]
