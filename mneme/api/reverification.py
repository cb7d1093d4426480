"""Reverification of a team's stale records: by the roles file they are tried, retired, or wait for a person.

A card is tried on the latest tasks that it served, which its world opens again from the log of tasks. Each
record is decided on its own and written at once, so that the next run continues a stopped one. Nothing is
locked while worlds and models work; a record that changed meanwhile is left for later.
"""

import asyncio
from contextlib import suppress

from mneme.core.errors import BadInput, Conflict, Forbidden
from mneme.environments.trial import Trial
from mneme.environments.worlds import Task
from mneme.models.asking.asking import resolve
from mneme.nodes.learning.dispute_resolution import is_about, tried
from mneme.nodes.learning.worlds import opened, refuse_outside
from mneme.prompts.learning.dispute_resolution import Guideline
from mneme.stores.access import roles, team_sees
from mneme.stores.cards.card import Card
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import MAJORITY, deprecated
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.reading import heads_of
from mneme.stores.ledger.records import Change, Version, team_namespace
from mneme.stores.provenance import as_now, pairs_in, stale
from mneme.stores.recall import kind_in
from mneme.stores.users.memory import RULES

REPLAYED_TASKS = 5
"""Maximum number of tasks on which a card is tried, the latest that it served."""
TRIED_NOTE = "It was tried again on {count} tasks that it served, and serves {served} of them."


async def reverify(ledger: Ledger, team: str, who: str, limit: int, actor: str) -> dict[str, Version]:
    """Apply the roles file to a team's stale records; return these records as they are now.

    At most `limit` cards are tried; `who` executes rules written as text. Raises BadAnswer.
    """
    heads = {each.record: each for each in await ledger.derived(team_namespace(team))}
    old, change = await stale(ledger, heads, team_sees(team)), Change(reason="", actor=actor)
    left, who = limit, await resolve(who)
    for record in old:
        head, kind = heads[record], kind_in(heads[record].namespace)
        policy = roles().when_stale(team, kind) if kind else "review"
        if policy == "retire":
            reason = change.model_copy(update={"reason": f"by the team's policy: {old[record]}"})
            with suppress(Conflict):  # changed meanwhile: left for the next run
                await ledger.retire(head.namespace, head.key, change=reason, expected_version=head.version)
        elif policy == "verify" and left:
            left -= await _reverified(ledger, head, KnowledgeCards(ledger, team), who, change)  # True is 1
    return await ledger.read(heads_of, [*old])


async def _reverified(ledger: Ledger, head: Version, cards: KnowledgeCards, who: str, change: Change) -> bool:
    """Try a card again: it holds as it is, or is deprecated. Return whether it cost anything to try."""
    card, resting = Card.of(head), await as_now(ledger, head, change)
    sources = [record for record, _ in pairs_in(resting.source.records)]
    if card.status not in ("provisional", "verified") or card.flags or await stale(ledger, sources):
        return False  # a dispute, a person, or what it was made from comes first
    trials = await _replayed(card, cards, who)
    served = [each.nearly_does for each in trials if each]
    if not served:  # nothing could be executed; with a model that was asked, it cost something all the same
        return bool(trials) and who != RULES
    said = resting.model_copy(update={"reason": TRIED_NOTE.format(count=len(served), served=sum(served))})
    holds = sum(served) > MAJORITY * len(served)
    write = cards.records.decided(
        head, lambda now: (now, said.reason) if holds else deprecated(now, said.reason), said
    )
    with suppress(Conflict):  # changed meanwhile: left for the next run
        await ledger.write([write] if write else [])
    return True


async def _replayed(card: Card, cards: KnowledgeCards, who: str) -> list[Trial | None]:
    """Try a card on the latest tasks that it served and that can be opened; None: it was not executed."""
    names = [each.task for each in card.evidence.recent if each.success]
    logged = [TaskRecord.of(each) for each in await cards.tasks.by_keys(names)]
    rules = [Guideline(condition=each.condition, pattern=each.pattern) for each in card.rules]
    trials = list[Trial | None]()
    for record in [each for each in logged if each.world][-REPLAYED_TASKS:]:
        task = Task(id=record.id, text=record.task, given=record.posed)
        with suppress(BadInput, Forbidden):  # a world that is gone, or is not to be opened here
            refuse_outside(record.world, record.posed)
            world = await asyncio.to_thread(opened, record.world, task)
            if rule := next((each for each in rules if is_about(each, world)), None):
                trials.append(await tried(world, task, rule, who))
    return trials
