"""Homes with something in them, made before a server opens them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from mneme.models.embedding import minilm
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.namespaces import user_namespace
from mneme.stores.ledger.records import Change, Write, make_write
from mneme.stores.users.inbox import MOST_TRIES, Inbox, Message
from mneme.stores.users.memories import Memory
from tests.doubles.embedding import WordEmbedder

AT_ONCE = 500
THINGS = ("bicycle", "piano", "garden", "boat", "novel")
PLACES = ("Oslo", "Lima", "Cairo", "Quito", "Turin", "Perth", "Hanoi")


def with_memories(home: Path, user: str, count: int) -> None:
    """Fill a home with memories whose vectors are made quickly; how long a search takes is the same."""
    home.mkdir()
    asyncio.run(_in(home, lambda ledger: _remember(ledger, user, count)))


def with_dead_letters(home: Path, user: str, *texts: str) -> None:
    """Put messages into the inbox that have failed too often."""
    home.mkdir()
    asyncio.run(_in(home, lambda ledger: _set_aside(ledger, user, texts)))


async def _in(home: Path, fill: Callable[[Ledger], Awaitable[None]]) -> None:
    quick = WordEmbedder(f"bundled:{minilm.NAME}", minilm.DIMENSION)
    ledger = await open_ledger(str(home / "ledger"), quick)
    await fill(ledger)
    await ledger.close()


async def _remember(ledger: Ledger, user: str, count: int) -> None:
    for start in range(0, count, AT_ONCE):
        await ledger.write([_write(user, number) for number in range(start, min(count, start + AT_ONCE))])


def _write(user: str, number: int) -> Write:
    thing, place = THINGS[number % len(THINGS)], PLACES[number % len(PLACES)]
    memory = Memory(content=f"The user's {thing} number {number} is in {place}.", entities=[place])
    return make_write(
        event="insert",
        namespace=user_namespace(user, "memories"),
        value=memory.model_dump(),
        text=memory.content,
        change=Change(reason="made up", actor="test"),
    )


async def _set_aside(ledger: Ledger, user: str, texts: tuple[str, ...]) -> None:
    inbox = Inbox(ledger)
    for number, text in enumerate(texts):
        await inbox.add(user, Message(message=text, message_id=f"m{number}"))
        for _ in range(MOST_TRIES):
            await inbox.fail(user, f"m{number}", "no model made sense of it", "{broken")
