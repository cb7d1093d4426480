"""Training pairs of a team's cards: the tasks that they rest on, and the lessons that solved them."""

import hashlib
from collections.abc import Collection, Mapping, Sequence

from mneme.models.tuning.pairs import Pair, Pairs
from mneme.stores.cards.card import Card
from mneme.stores.cards.check import findings
from mneme.stores.cards.consolidation import DELTA, is_good, is_held_out, lesson_of, situation_of, warning_of
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.settings import Consolidation
from mneme.stores.cards.task_log import TaskRecord

TASKS_A_CARD = 4
"""Tasks of one card that are trained on: more of the same teach little."""
REPLAYS = 40
HELD_OUT_AT_MOST = 200
LOOKED_AT = 50
"""Cards among which those that are left are looked for."""


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
        tasks = {task.id: task for task in await self._cards.tasks.list() if task.task}
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
                for card in _some([card for card in good if is_held_out(card)], HELD_OUT_AT_MOST)
            ],
            replays=[await self._shown(card, asked[card.id][-1], keys) for card in _some(again, REPLAYS)],
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


def _some(cards: Sequence[Card], most: int) -> list[Card]:
    """Return as many cards as are wanted, chosen by their ids and not by their age."""
    return sorted(cards, key=lambda card: hashlib.sha256(card.id.encode()).digest())[:most]
