"""Compare the facts of a message with the memories that they may touch (conflict router, §3.1, deviating).

The paper's version 3 asks about each similar memory by itself. Here one question names all pairs that have to
do with one another, of memories above a floor of similarity.
"""

from asyncio import gather
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from mneme.nodes.channels import Update
from mneme.nodes.chat.context import MemoryRuntime
from mneme.nodes.chat.memory_operations import Judged
from mneme.nodes.chat.remembering import State
from mneme.nodes.chat.writing_down import last_reply
from mneme.nodes.costs import counted
from mneme.prompts.chat.bounds import moment
from mneme.prompts.chat.evidence import located
from mneme.prompts.chat.memory_agent.comparing import Comparing, Fact, Judgement, compare_memories
from mneme.stores.ledger.words import words_of
from mneme.stores.users.memories import Memory, MemoryRecord
from mneme.stores.users.valid_time import holds

FLOOR = 0.1
"""Cosine below which a memory that shares no word with a fact is not compared with it.

Of 53 memories that facts in ten languages changed, one was below it (development cases, both embedders).
"""
COMMON = 0.4
"""The share of the memories found that have a word from which it says nothing, such as `user`."""
MAX_SAID_CHARS = 120
"""Characters of the user's own words for a fact that the comparison sees."""
MAX_MEMORIES = 24
"""Memories that one question shows at most; further facts go into further questions."""


class Batch(NamedTuple):
    """The facts of one question by their numbers, and the memories shown beside them by their keys."""

    facts: dict[int, Memory]
    memories: dict[str, MemoryRecord]


def worth_comparing(fact: str, similar: Sequence[MemoryRecord]) -> list[MemoryRecord]:
    """Return the memories above the floor, and those that share a word with the fact."""
    held = [{*words_of(each.memory.content).indices} for each in similar]
    counts = Counter(chain.from_iterable(held))
    said = {each for each in words_of(fact).indices if counts[each] <= max(1, COMMON * len(held))}
    return [
        each
        for each, words in zip(similar, held, strict=True)
        if each.similarity is None or each.similarity >= FLOOR or said & words
    ]


@counted
async def conflict_router(state: State, runtime: MemoryRuntime) -> Update:
    """Judge every candidate against the memories that it may touch (conflict router); others are unrelated.

    Raises `BadAnswer` where the model's replies are no judgements at all.
    """
    who = runtime.context.memory_agent
    found = await gather(*(_asked(batch, state, who) for batch in _batches(state)))
    return {"verdicts": [each for batch in found for each in batch]}


def _batches(state: State) -> list[Batch]:
    """Put as many facts into a question as their memories have room.

    Beside them stand the memories that the message's reader was shown: what a fact changes may share neither
    words nor, in another language than the embedder's, meaning with it.
    """
    shown = {each.key: each for each in state.get("shown", [])}
    batches: list[Batch] = []
    for number, (fact, similar) in enumerate(zip(state["candidates"], state["similar"], strict=True)):
        memories = {each.key: each for each in worth_comparing(fact.content, similar)}
        if not memories:
            continue
        if not batches or len(batches[-1].memories | memories) > MAX_MEMORIES:
            batches.append(Batch({}, dict(shown)))
        batches[-1].facts[number] = fact
        batches[-1].memories.update(memories)
    return batches


async def _asked(batch: Batch, state: State, who: str) -> list[Judged]:
    numbers, memories = list(batch.facts), list(batch.memories.values())
    given = Comparing(
        facts=[Fact(content=_dated(each), said=_ends(each.quote)) for each in batch.facts.values()],
        memories=[_dated(each.memory) for each in memories],
        time=moment(state.get("time", "")),
        preceding=state.get("preceding", []),
    )
    answer, doubt = await last_reply(compare_memories, given, who)
    return list(_judgements(answer.judgements, numbers, memories, doubt))


def _ends(quote: str) -> str:
    """Return a quote; of a long one, which may leave out a middle, its beginning and its end."""
    half = MAX_SAID_CHARS // 2
    return quote if len(quote) <= MAX_SAID_CHARS else f"{quote[:half]} … {quote[-half:]}"


def _dated(memory: Memory) -> str:
    return holds(memory.content, memory.since, memory.until)


def _judgements(
    given: Sequence[Judgement], numbers: Sequence[int], memories: Sequence[MemoryRecord], doubt: str
) -> Iterator[Judged]:
    """Return the judgements on pairs that were offered; one that shows nothing outdated is `unclear`."""
    for each in given:
        if each.fact >= len(numbers) or each.memory >= len(memories):
            continue
        memory = memories[each.memory]
        outdated = located(each.outdated, memory.memory.content)
        is_unclear = each.relation in {"change", "correction"} and not outdated
        yield Judged(
            candidate=numbers[each.fact],
            memory=memory,
            relation="unclear" if is_unclear else each.relation,
            rationale=each.reason,
            outdated=outdated,
            updated=each.updated.strip(),
            doubt=doubt if f"memory {each.memory} " in doubt else "",
        )
