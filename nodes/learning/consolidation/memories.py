"""Training pairs of a shared pool (§5 of Memory Sharing): questions with the answers that scored well."""

import hashlib
from collections.abc import Sequence

from mneme.library.agents.agent import AGENTS, load_agent
from mneme.models.tuning.pairs import Pair, Pairs
from mneme.nodes.learning.consolidation.sources import HELD_OUT_AT_MOST, REPLAYS
from mneme.nodes.sharing.choosing import Choice, chosen
from mneme.stores.cards.check import findings
from mneme.stores.pools.lessons import HELD_OUT, group_of
from mneme.stores.pools.memory_pool import MemoryPool, Pooled
from mneme.stores.pools.near_duplicates import near_to_any


class MemoryPairs:
    """A pool's memories above a threshold; every fifth answer is held out, with all its questions."""

    def __init__(self, pool: MemoryPool, above: int, recall: int) -> None:
        self._pool, self._above, self._recall = pool, above, recall

    async def pairs(self) -> Pairs:
        """Return what there is to be learned; what is nearly a held-out question or answer is left out."""
        good = [each async for each in self._pool.pairs() if self._is_good(each)]
        held = [each for each in good if _is_held_out(each)]
        said = [text for each in held for text in (each.pair.prompt, each.pair.answer)]
        train = [
            each
            for each in good
            if not _is_held_out(each)
            and not near_to_any(each.pair.prompt, said)
            and not near_to_any(each.pair.answer, said)
        ]
        shown = [await self._shown(each) for each in _some(held, HELD_OUT_AT_MOST)]
        return Pairs(
            train=[_pair(each) for each in train],
            held_out=shown,
            replays=shown[:REPLAYS],
            keys=[each.key for each in train],
        )

    def _is_good(self, memory: Pooled) -> bool:
        """Say whether a memory may be learned: above the threshold, asked for, not rated down, no order."""
        pair = memory.pair
        is_scored = pair.score > self._above and bool(pair.prompt.strip()) and not pair.is_rated_down
        return is_scored and not any(findings(pair.text))

    async def _shown(self, memory: Pooled) -> Pair:
        """Return a pair with the examples that are found for it: the same before and afterwards."""
        asked, answer = memory.pair.asked, memory.pair.answer
        _, found = await chosen(self._pool, asked, self._recall, Choice(), without=answer)
        examples = [f"{each.pair.prompt} -> {each.pair.answer}" for each in found]
        return _pair(memory).model_copy(update={"shown": examples, "delta": examples})


def _pair(memory: Pooled) -> Pair:
    pair = memory.pair
    does = load_agent(pair.agent).does if pair.agent in AGENTS else ""
    return Pair(key=memory.key, asked="\n\n".join(filter(None, [does, pair.asked])), answer=pair.answer)


def _is_held_out(memory: Pooled) -> bool:
    return int(group_of(memory)[:8], 16) % HELD_OUT == 0


def _some(memories: Sequence[Pooled], most: int) -> list[Pooled]:
    """Return as many as are wanted, chosen by their keys and not by their age."""
    return sorted(memories, key=lambda each: hashlib.sha256(each.key.encode()).digest())[:most]
