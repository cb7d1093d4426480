"""Compare the facts of a message with the memories that they may touch (conflict router, §3.1, deviating).

The paper's version 3 asks about each similar memory by itself. Here one question names all pairs that have to
do with one another, of memories above a floor of similarity.
"""

from asyncio import gather
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from mneme.nodes.chat.context import MemoryRuntime
from mneme.nodes.chat.memory_operations import Judged
from mneme.nodes.chat.remembering import State, last_reply
from mneme.nodes.workflow import Update, counted
from mneme.prompts.chat.bounds import moment
from mneme.prompts.chat.evidence import located
from mneme.prompts.chat.memory_agent.comparing import Comparing, Fact, compare_memories
from mneme.stores.ledger.words import words_of
from mneme.stores.users.memory import Memory, MemoryRecord

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

    A question holds as many facts as their memories have room. Beside them stand the memories that the
    message's reader was shown: what a fact changes may share neither words nor, in another language than the
    embedder's, meaning with it. Raises `BadAnswer` where the model's replies are no judgements at all.
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
    found = await gather(*(_judged(each, state, runtime.context.memory_agent) for each in batches))
    return {"verdicts": [each for batch in found for each in batch]}


async def _judged(batch: Batch, state: State, who: str) -> list[Judged]:
    """Return the judgements on pairs that were offered; one that shows nothing outdated is `unclear`."""
    numbers, memories, facts = list(batch.facts), list(batch.memories.values()), list[Fact]()
    for fact in batch.facts.values():
        said, half = fact.quote, MAX_SAID_CHARS // 2
        if len(said) > MAX_SAID_CHARS:  # it may leave out a middle
            said = f"{said[:half]} … {said[-half:]}"
        facts.append(Fact(content=fact.dated, said=said))
    given = Comparing(
        facts=facts,
        memories=[each.memory.dated for each in memories],
        time=moment(state.get("time", "")),
        preceding=state.get("preceding", []),
    )
    answer, doubt = await last_reply(compare_memories, given, who)
    judged = list[Judged]()
    for each in answer.judgements:
        if each.fact >= len(numbers) or each.memory >= len(memories):
            continue
        memory = memories[each.memory]
        outdated = located(each.outdated, memory.memory.content)
        is_unclear = each.relation in {"change", "correction"} and not outdated
        judged.append(
            Judged(
                candidate=numbers[each.fact],
                memory=memory,
                relation="unclear" if is_unclear else each.relation,
                rationale=each.reason,
                outdated=outdated,
                updated=each.updated.strip(),
                doubt=doubt if f"memory {each.memory} " in doubt else "",
            )
        )
    return judged
