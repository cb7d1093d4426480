"""Training pairs: tasks and lessons of a team's cards, or the answers of a pool (Memory Sharing, §5)."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import TypeVar

from mneme.library.agents.agent import AGENTS, load_agent
from mneme.models.tuning.pairs import Pair, Pairs
from mneme.nodes.sharing.choosing import chosen
from mneme.stores.cards.card import Card, Consolidation
from mneme.stores.cards.consolidation import DELTA, is_good, is_held_out, lesson_of, situation_of, warning_of
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.pools.lessons import HELD_OUT, group_of
from mneme.stores.pools.memory_pool import MemoryPool, Pooled
from mneme.stores.write_gate import CARD_GATE, PAIR_GATE, near_to_any

TASKS_A_CARD = 4
"""Maximum training tasks of one card, since further ones teach little."""
REPLAYS = 40
MAX_HELD_OUT = 200
MAX_SOURCE_CARDS = 50
"""Number of retrieved cards, among which those that will not be archived are searched."""


Item = TypeVar("Item")


async def card_pairs(
    cards: KnowledgeCards, limits: Consolidation, recall: int, before: Collection[str] = ()
) -> Pairs:
    """Return a team's proven cards as pairs: a task with its material, the claim and rules that solved it.

    `before` are cards that an earlier tuned model learned, which the base does not know. Of each card with
    two tasks the latest is replayed.
    """
    known = await cards.records.list()
    good = [card for card in known if is_good(card, limits)]
    learned = [card for card in good if not is_held_out(card)]
    earlier = [card for card in known if card.id in before and card.status == "archived"]
    tasks = {task.id: task for task in await cards.tasks.all() if task.task}
    asked = {card.id: _asked(card, tasks) for card in (*good, *earlier)}
    logged = {_told(task): task for task in tasks.values()}
    train = [
        Pair(key=card.id, asked=each, answer=lesson_of(card))
        for card in (*learned, *earlier)
        for each in (asked[card.id][:-1] or asked[card.id])[-TASKS_A_CARD:]  # the latest is for the replay
    ]
    warned = [
        Pair(key=card.id, asked=f"Is this right? {card.claim}", answer=warning_of(card))
        for card in known
        if card.status == "deprecated" and not card.flags
    ]
    keys = [card.id for card in learned]

    async def shown(card: Card) -> Pair:
        """Return a pair with the cards retrieved now, and those once the learned ones are archived."""
        latest = asked[card.id][-1]
        found = [each.card for each in await cards.retrieve(latest, MAX_SOURCE_CARDS)]
        left = [in_short(each) for each in found if each.id not in keys]
        now = [in_short(each) for each in found[:recall]]
        delta = left[: min(recall, DELTA)]
        made = Pair(key=card.id, asked=latest, answer=lesson_of(card), shown=now, delta=delta)
        if (task := logged.get(latest)) is None:
            return made
        approaches = [rule.pattern for rule in card.rules]
        return made.model_copy(update={"world": task.world, "posed": task.posed, "approaches": approaches})

    held_out = _some([card for card in good if is_held_out(card)], MAX_HELD_OUT, attrgetter("id"))
    again = [card for card in good if len(asked[card.id]) > 1 or is_held_out(card)]  # not trained on
    return Pairs(
        train=[*train, *warned],
        held_out=[await shown(card) for card in held_out],
        replays=[await shown(card) for card in _some(again, REPLAYS, attrgetter("id"))],
        keys=keys,
    )


def in_short(card: Card) -> str:
    """Return a card as it stands in a prompt: its claim and its rules."""
    return "; ".join([card.claim, *(f"when {rule.condition}: {rule.pattern}" for rule in card.rules)])


def _asked(card: Card, tasks: Mapping[str, TaskRecord]) -> list[str]:
    """Return the logged tasks that a card rests on, oldest first, or else what its conditions ask.

    What reads like an instruction to agents is left out, as flagged cards are.
    """
    logged = [tasks[each] for each in card.evidence.task_ids if each in tasks]
    return [each for each in map(_told, logged) if not any(CARD_GATE.doubts(each))] or [situation_of(card)]


def _told(task: TaskRecord) -> str:
    return "\n\n".join(filter(None, (task.task, task.material)))


async def memory_pairs(pool: MemoryPool, above: int, recall: int) -> Pairs:
    """Return a pool's memories above a threshold; every fifth answer is held out, with all its questions.

    Left out are near-duplicates of held-out pairs, pairs rated down, and pairs that read like an instruction.
    """
    known = [each async for each in pool.pairs() if each.pair.score > above and each.pair.prompt.strip()]
    good = [each for each in known if not (each.pair.is_rated_down or any(PAIR_GATE.doubts(each.pair.text)))]
    # By the answer's group: questions of one answer must not be on both sides.
    held = [each for each in good if int(group_of(each)[:8], 16) % HELD_OUT == 0]
    left_out = {each.key for each in held}
    said = [text for each in held for text in (each.pair.prompt, each.pair.answer)]
    train = [
        each
        for each in good
        if each.key not in left_out
        and not near_to_any(each.pair.prompt, said)
        and not near_to_any(each.pair.answer, said)
    ]
    shown = []
    for each in _some(held, MAX_HELD_OUT, attrgetter("key")):
        _, found = await chosen(pool, each.pair.asked, recall, without=each.pair.answer)
        examples = [f"{other.pair.prompt} -> {other.pair.answer}" for other in found]
        shown.append(_pair(each).model_copy(update={"shown": examples, "delta": examples}))
    return Pairs(
        train=[_pair(each) for each in train],
        held_out=shown,
        replays=shown[:REPLAYS],
        keys=[each.key for each in train],
    )


def _pair(memory: Pooled) -> Pair:
    pair = memory.pair
    does = load_agent(pair.agent).does if pair.agent in AGENTS else ""
    return Pair(key=memory.key, asked="\n\n".join(filter(None, [does, pair.asked])), answer=pair.answer)


def _some(among: Sequence[Item], most: int, key: Callable[[Item], str]) -> list[Item]:
    """Return at most `most` items, chosen by a hash of their keys: the same in each run, of any age."""
    return sorted(among, key=lambda each: hashlib.sha256(key(each).encode()).digest())[:most]
