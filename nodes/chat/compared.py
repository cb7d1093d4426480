"""Compare a text written by hand with the memories, and find the names in it, without a language model."""

from collections.abc import Sequence

from mneme.models.asking.lazily import by_rules
from mneme.prompts.chat.evidence import names
from mneme.prompts.chat.memory_agent.comparing import Comparing, Fact, compare_memories
from mneme.prompts.chat.memory_agent.rewriting import Pair, rewrite_memory
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import MAX_LINKS, Memory, MemoryRecord, overlaps
from mneme.stores.write_gate import SAME_FACT

MAX_SIMILAR = 12
"""Maximum memories with which a text is compared."""


async def compared(
    new: Memory, memories: UserMemories, but: str = ""
) -> tuple[MemoryRecord | None, Sequence[MemoryRecord]]:
    """Return the memory that a new one repeats, and those that it may contradict.

    A memory that holds on no day of the new one's period is neither; nor do two events contradict one another
    of which none has a time.
    """
    found = await memories.related(new.content, "", new.entities, MAX_SIMILAR)
    period = (new.since, new.until)
    related = [
        each for each in found if each.key != but and overlaps(period, (each.memory.since, each.memory.until))
    ]
    facts = [Fact(content=new.content, said=new.content)]
    given = Comparing(facts=facts, memories=[each.memory.content for each in related])
    # By rules, since a text that a person wrote is saved at once, and word for word.
    judged = (await by_rules(compare_memories, given)).judgements
    relations = {each.memory: each.relation for each in judged}
    same = (related[number] for number, relation in relations.items() if relation == "duplicate")
    # Those that rules relate in another way than as a duplicate; and unrelated ones that are as similar.
    beside = [
        each
        for number, each in enumerate(related)
        if not (_is_undated_event(new) and _is_undated_event(each.memory))
        and (
            relations.get(number, "duplicate") != "duplicate"
            or (number not in relations and (each.similarity or 0.0) >= SAME_FACT)
        )
    ]
    return next(same, None), beside[:MAX_LINKS]


async def names_in(text: str, known: Sequence[str] = ()) -> list[str]:
    """Return the known names that a text still has, and the others that rules find in it."""
    whole = await by_rules(rewrite_memory, Pair(fact=text, message="", memory=""))
    return list(dict.fromkeys([*(each for each in known if names([each], text)), *whole.entities]))


def _is_undated_event(memory: Memory) -> bool:
    return memory.kind == "episodic" and not (memory.since or memory.until)
