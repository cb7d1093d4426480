"""Homes with something in them, made before a server opens them."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from mneme.models.embedding.absent import BUNDLED_NAME, DIMENSION
from mneme.models.embedding.embedders import open_embedder
from mneme.stores.cards.card import Lesson, Rule, TaskOutcome
from mneme.stores.cards.disputes import Approach
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.discussions.discussions import Discussion, Discussions, Turn
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change, Write, make_write, user_namespace
from mneme.stores.pools.memory_pool import MemoryPool, Pair
from mneme.stores.pools.retrievers import Judged, Retriever, Retrievers
from mneme.stores.provenance import made_from
from mneme.stores.users.inbox import MAX_TRIES, Inbox, Message
from mneme.stores.users.memory import Memory
from mneme.stores.users.promotion import TeamFacts
from tests.doubles.embedding import WordEmbedder

AT_ONCE = 500
CHANGE = Change(reason="made up", actor="test")
THINGS = ("bicycle", "piano", "garden", "boat", "novel")
PLACES = ("Oslo", "Lima", "Cairo", "Quito", "Turin", "Perth", "Hanoi")


def with_memories(home: Path, user: str, count: int) -> None:
    """Fill a home with memories whose vectors are made quickly; how long a search takes is the same."""
    _fill(home, lambda ledger: _remember(ledger, user, count))


def with_dead_letters(home: Path, user: str, *texts: str) -> None:
    """Put messages into the inbox that have failed too often."""
    _fill(home, lambda ledger: _set_aside(ledger, user, texts))


def _fill(home: Path, fill: Callable[[Ledger], Awaitable[None]], *, is_quick: bool = True) -> None:
    """Fill a new home, on a thread of its own: Playwright has an event loop on this one."""
    home.mkdir()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(lambda: asyncio.run(_in(home, fill, is_quick))).result()


async def _in(home: Path, fill: Callable[[Ledger], Awaitable[None]], is_quick: bool) -> None:
    quick = WordEmbedder(f"bundled:{BUNDLED_NAME}", DIMENSION)
    ledger = await open_ledger(str(home / "ledger"), quick if is_quick else await open_embedder("bundled"))
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
        change=CHANGE,
    )


async def _set_aside(ledger: Ledger, user: str, texts: tuple[str, ...]) -> None:
    inbox = Inbox(ledger)
    for number, text in enumerate(texts):
        await inbox.add(user, Message(message=text, message_id=f"m{number}"))
        for _ in range(MAX_TRIES):
            await inbox.fail(user, f"m{number}", "no model made sense of it", "{broken")


def with_a_team(home: Path, team: str) -> None:
    """Fill a home with two cards, a dispute, discussions, and a pool whose retriever has learned.

    The second discussion rests on a fact that was corrected since, and one of its agreements is taken back.
    """
    _fill(home, lambda ledger: _work(ledger, team, home), is_quick=False)  # cards are found by likeness


async def _work(ledger: Ledger, team: str, home: Path) -> None:
    await _learn(KnowledgeCards(ledger, team))
    await _discuss(Discussions(ledger, team))
    await _correct(ledger, team)
    await _share(MemoryPool(ledger, team, "limericks"), home / "retrievers")


async def _learn(cards: KnowledgeCards) -> None:
    made = []
    for number, pattern in enumerate(("a hash index", "a covering index")):
        lesson = Lesson(
            claim=f"Use {pattern} for lookups.",
            rationale="It is read once.",
            rules=[Rule(condition="a lookup", pattern=pattern)],
        )
        outcome = TaskOutcome(task=f"t{number}", success=True, confidence=0.9)
        made.append((await cards.create(lesson, outcome, change=CHANGE)).card)
    for number in range(2, 5):
        again = TaskOutcome(task=f"t{number}", success=True, confidence=0.9)
        await cards.reinforce(made[0].id, again, change=CHANGE)
    old = Approach(claim=made[1].claim, solution="lookup -> covering index")
    new = Approach(claim="Use no index for small tables.", solution="small table -> scan", task="t7")
    await cards.disputes.open(made[1].id, old=old, new=new, change=CHANGE)


async def _discuss(discussions: Discussions) -> None:
    await discussions.open(
        Discussion(id="d1", task="Plan a pipeline.", team={}, memory="structured", turns=2)
    )
    memory = discussions.memory("d1", "Architect")
    first = await memory.begin({"goal": "unknown"}, change=CHANGE)
    for number, goal in ((1, "a fast pipeline"), (2, "a cheap pipeline")):
        said = Turn(number=number, speaker="Architect", title="Architect", message=f"We want {goal}.")
        await discussions.conversation("d1").add(said)
        first = await memory.update(
            {"goal": goal}, turn=number, change=CHANGE, expected_version=first.version
        )


async def _correct(ledger: Ledger, team: str) -> None:
    facts, talks = TeamFacts(ledger, team), Discussions(ledger, team)
    known = await facts.insert(Memory(content="The budget is 900."), change=CHANGE)
    told = await facts.head(known.key)
    held = Discussion(id="d2", task="Plan a feast.", team={}, memory="intrinsic", ended="consensus")
    agreed = held.model_copy(update={"document": {"Food": "There is soup.", "Budget": "We spend 900."}})
    await talks.insert(agreed, change=made_from(CHANGE, [told.reference]), key="d2")
    await talks.withdraw("d2", "Food: There is soup.", change=CHANGE.model_copy(update={"reason": "too hot"}))
    corrected = Change(reason="it was cut", actor="test")
    await facts.update(
        known.key, Memory(content="The budget is 500."), change=corrected, expected_version=told.version
    )


async def _share(pool: MemoryPool, folder: Path) -> None:
    pair = Pair(prompt="A limerick?", answer="A young man.", agent="poet", domain="limerick", score=80)
    await pool.add(pair, change=CHANGE)
    retrievers, judged = Retrievers(pool, folder), Judged(held_out=1, recall=0.5, told_apart=0.5, loss=1, k=3)
    learned = Retriever(
        number=1,
        parent=0,
        learning="projection",
        weights=retrievers.store({"left": np.ones((4, 2), dtype=np.float32)}),
        embedder=f"bundled:{BUNDLED_NAME}",
        memories=[],
        positives=1,
        negatives=1,
        losses=[1.0],
        before=judged,
        after=judged,
        kept=True,
        reason="It finds more.",
        seconds=1,
        device="cpu",
        seed=1,
    )
    await retrievers.record(learned, change=CHANGE)
    await retrievers.serve(1, instead_of=0, change=CHANGE)
