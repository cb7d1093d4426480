"""Compare the facts of a message with similar memories, in one question (§3.1, deviating).

The paper's version 3 asks about each similar memory by itself. Here every pair is judged by itself too, but
all in one question, and pairs that obviously have nothing to do with one another are left out: their cosine
is low, or middling without any word in common. On the shipped labelled messages that loses none.
"""

from asyncio import gather
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mneme.core.evidence import located
from mneme.nodes.chat.memory_operations import Similar
from mneme.nodes.chat.remembering import Judged
from mneme.nodes.chat.statements import around, share_a_word
from mneme.nodes.chat.writing_down import answer_or_last_reply
from mneme.prompts.chat.memory_agent.comparing import (
    MOST_PAIRS,
    Compared,
    Comparing,
    Fact,
    Judgement,
    Judgements,
    compare_memories,
)

Pair = tuple[int, Similar]
"""The number of a candidate, and a memory similar to it."""

RELATED = 0.4
"""Cosine from which a pair is compared whatever its words."""
LOOSELY_RELATED = 0.25
"""Cosine from which a pair with a word in common is compared."""
ALWAYS = 2
"""The most similar memories of a candidate that are compared in any case."""


def pairs(candidates: Sequence[Mapping[str, Any]], similar: Sequence[Sequence[Similar]]) -> list[Pair]:
    """Return the pairs of a candidate's number and a memory that are worth comparing."""
    return [
        (number, memory)
        for number, (candidate, found) in enumerate(zip(candidates, similar, strict=True))
        for place, memory in enumerate(found)
        if place < ALWAYS or _have_to_do(candidate["content"], memory)
    ]


def _have_to_do(fact: str, memory: Similar) -> bool:
    similarity = memory["similarity"]
    if similarity is None or similarity >= RELATED:
        return True
    return similarity >= LOOSELY_RELATED and share_a_word(fact, memory["content"])


async def judged(
    compared: Sequence[Pair], candidates: Sequence[Mapping[str, Any]], message: str, time: str, who: str
) -> list[Judged]:
    """Return how each candidate stands to each memory that it is compared with.

    Raises `BadAnswer` where the model's replies are no judgements at all.
    """
    facts = [Fact(content=each["content"], said=around(each["quote"], message)) for each in candidates]
    batches = [compared[start : start + MOST_PAIRS] for start in range(0, len(compared), MOST_PAIRS)]
    found = await gather(*(_asked(batch, facts, time, who) for batch in batches))
    return [each for batch in found for each in batch]


async def _asked(batch: Sequence[Pair], facts: Sequence[Fact], time: str, who: str) -> list[Judged]:
    answer = await answer_or_last_reply(compare_memories, _question(batch, facts, time), who)
    return list(_judgements(batch, answer))


def _question(batch: Sequence[Pair], facts: Sequence[Fact], time: str) -> Comparing:
    """Number the facts and memories of this question from 0, each once."""
    asked = list(dict.fromkeys(number for number, _ in batch))
    memories = {memory["key"]: memory["content"] for _, memory in batch}
    places = {key: place for place, key in enumerate(memories)}
    return Comparing(
        facts=[facts[number] for number in asked],
        memories=list(memories.values()),
        pairs=[Compared(fact=asked.index(number), memory=places[memory["key"]]) for number, memory in batch],
        time=time,
    )


def _judgements(batch: Sequence[Pair], answer: Judgements) -> Iterator[Judged]:
    """Return a judgement of each pair; one that is missing, or shows nothing outdated, is `unclear`."""
    given = {each.pair: each for each in answer.judgements}
    missing = Judgement(pair=0, reason="The model did not judge it.", relation="unrelated")
    for place, (number, memory) in enumerate(batch):
        each = given.get(place, missing)
        outdated = located(each.outdated, memory["content"])
        is_unclear = each is missing or (each.relation == "conflict" and not outdated)
        yield Judged(
            candidate=number,
            memory=memory,
            relation="unclear" if is_unclear else each.relation,
            rationale=each.reason,
            outdated=outdated,
        )
