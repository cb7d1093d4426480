"""Training pairs: of a team's cards, their tasks and lessons; of a pool (Memory Sharing, §5), its answers."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from mneme.library.agents.agent import AGENTS, load_agent
from mneme.models.tuning.pairs import Pair, Pairs
from mneme.nodes.sharing.choosing import chosen
from mneme.stores.cards.card import Card
from mneme.stores.cards.check import findings
from mneme.stores.cards.consolidation import DELTA, is_good, is_held_out, lesson_of, situation_of, warning_of
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.settings import Consolidation
from mneme.stores.cards.task_log import TaskRecord
from mneme.stores.pools.lessons import HELD_OUT, group_of
from mneme.stores.pools.memory_pool import MemoryPool, Pooled
from mneme.stores.pools.near_duplicates import near_to_any

TASKS_A_CARD = 4
"""Tasks of one card that are trained on: more of the same teach little."""
REPLAYS = 40
HELD_OUT_AT_MOST = 200
LOOKED_AT = 50
"""Cards among which those that are left are looked for."""


Item = TypeVar("Item")


class CardPairs:
    """A team's proven cards as pairs: a task with its material, and the claim and rules that solved it."""

    def __init__(
        self, cards: KnowledgeCards, limits: Consolidation, recall: int, before: Collection[str] = ()
    ) -> None:
        """Take what the base does not know: proven cards, and those `before` that a tuned model learned."""
        self._cards, self._limits, self._recall, self._before = cards, limits, recall, before

    async def pairs(self) -> Pairs:
        """Return what there is to be learned; of each card with two tasks the latest is replayed."""
        known = await self._cards.records.list()
        good = [card for card in known if is_good(card, self._limits)]
        learned = [card for card in good if not is_held_out(card)]
        earlier = [card for card in known if card.id in self._before and card.status == "archived"]
        tasks = {task.id: task for task in await self._cards.tasks.all() if task.task}
        asked = {card.id: _asked(card, tasks) for card in (*good, *earlier)}
        train = [
            Pair(key=card.id, asked=each, answer=lesson_of(card))
            for card in (*learned, *earlier)
            for each in (asked[card.id][:-1] or asked[card.id])[-TASKS_A_CARD:]
        ]
        warned = [
            Pair(key=card.id, asked=f"Is this right? {card.claim}", answer=warning_of(card))
            for card in known
            if card.status == "deprecated" and not card.flags
        ]
        keys = [card.id for card in learned]
        again = [card for card in good if len(asked[card.id]) > 1 or is_held_out(card)]
        return Pairs(
            train=[*train, *warned],
            held_out=[
                await self._shown(card, asked[card.id][-1], keys)
                for card in _some([card for card in good if is_held_out(card)], HELD_OUT_AT_MOST, _id)
            ],
            replays=[
                await self._shown(card, asked[card.id][-1], keys) for card in _some(again, REPLAYS, _id)
            ],
            keys=keys,
        )

    async def _shown(self, card: Card, asked: str, archived: Sequence[str]) -> Pair:
        """Return a pair with what retrieval finds for it now, and once what is learned is archived."""
        found = [each.card for each in await self._cards.retrieve(asked, LOOKED_AT)]
        left = [each for each in found if each.id not in archived]
        return Pair(
            key=card.id,
            asked=asked,
            answer=lesson_of(card),
            shown=[in_short(each) for each in found[: self._recall]],
            delta=[in_short(each) for each in left[: min(self._recall, DELTA)]],
        )


def _id(card: Card) -> str:
    return card.id


def in_short(card: Card) -> str:
    """Return a card as it stands in a prompt: its claim and its rules."""
    return "; ".join([card.claim, *(f"when {rule.condition}: {rule.pattern}" for rule in card.rules)])


def _asked(card: Card, tasks: Mapping[str, TaskRecord]) -> list[str]:
    """Return the logged tasks that a card rests on, oldest first, or else what its conditions ask.

    What reads like an instruction to agents is left out, as flagged cards are.
    """
    logged = [tasks[each] for each in card.evidence.task_ids if each in tasks]
    told = ["\n\n".join(filter(None, (each.task, each.material))) for each in logged]
    return [each for each in told if not any(findings(each))] or [situation_of(card)]


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
        shown = [await self._shown(each) for each in _some(held, HELD_OUT_AT_MOST, lambda each: each.key)]
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
        _, found = await chosen(self._pool, asked, self._recall, without=answer)
        examples = [f"{each.pair.prompt} -> {each.pair.answer}" for each in found]
        return _pair(memory).model_copy(update={"shown": examples, "delta": examples})


def _pair(memory: Pooled) -> Pair:
    pair = memory.pair
    does = load_agent(pair.agent).does if pair.agent in AGENTS else ""
    return Pair(key=memory.key, asked="\n\n".join(filter(None, [does, pair.asked])), answer=pair.answer)


def _is_held_out(memory: Pooled) -> bool:
    return int(group_of(memory)[:8], 16) % HELD_OUT == 0


def _some(among: Sequence[Item], most: int, key: Callable[[Item], str]) -> list[Item]:
    """Return as many as are wanted, chosen by their keys and not by their age."""
    return sorted(among, key=lambda each: hashlib.sha256(key(each).encode()).digest())[:most]
