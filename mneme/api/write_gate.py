"""What a text that somebody wrote into memory repeats or may contradict, without a language model."""

import asyncio
from collections.abc import Sequence

from mneme.prompts.chat.evidence import names
from mneme.prompts.chat.memory_agent.comparing import Comparing, Fact
from mneme.rules.chat.memory_agent import compare_memories, entities_of
from mneme.stores.users.memories import MAX_LINKS, Memory, MemoryRecord, UserMemories
from mneme.stores.users.valid_time import overlaps

__all__ = ["compared", "entities_of", "linked", "still_named"]

COMPARED = 12
"""Memories that a text is compared with at most."""
NEARLY_SAME = 0.8
"""Cosine from which two memories may repeat or contradict one another, in any language."""


async def compared(
    new: Memory, memories: UserMemories, but: str = ""
) -> tuple[MemoryRecord | None, Sequence[MemoryRecord]]:
    """Return the memory that a new one repeats, and those that it may contradict: the write gate.

    A memory that holds on no day of the new one's period is neither; nor do two events contradict one another
    of which none has a time.
    """
    found = await memories.related(new.content, "", new.entities, COMPARED)
    period = (new.since, new.until)
    related = [
        each for each in found if each.key != but and overlaps(period, (each.memory.since, each.memory.until))
    ]
    facts = [Fact(content=new.content, said=new.content)]
    given = Comparing(facts=facts, memories=[each.memory.content for each in related])
    judged = (await asyncio.to_thread(compare_memories, given)).judgements
    relations = {each.memory: each.relation for each in judged}
    same = (related[number] for number, relation in relations.items() if relation == "duplicate")
    beside = [
        each
        for number, each in enumerate(related)
        if not (_is_undated_event(new) and _is_undated_event(each.memory))
        and (
            relations.get(number, "duplicate") != "duplicate"
            or (number not in relations and (each.similarity or 0.0) >= NEARLY_SAME)
        )
    ]
    return next(same, None), beside[:MAX_LINKS]


def linked(memory: Memory, beside: Sequence[MemoryRecord]) -> Memory:
    """Return a memory with links to those that it may contradict."""
    return memory.model_copy(update={"may_contradict": [each.key for each in beside]})


def _is_undated_event(memory: Memory) -> bool:
    return memory.kind == "episodic" and not (memory.since or memory.until)


def still_named(entities: Sequence[str], content: str) -> Sequence[str]:
    """Return those of the names that a text still has."""
    return [each for each in entities if names([each], content)]
