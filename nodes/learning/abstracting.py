"""What makes a team's cards abstract: what its worlds say in public, and the names in its logged tasks."""

import asyncio
from collections.abc import Sequence

from mneme.core.errors import BadInput
from mneme.environments.worlds import WorldKind, find_world
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.sharing import Abstraction


async def abstraction_of(cards: KnowledgeCards, private: Sequence[str] = ()) -> Abstraction:
    """Return what abstracts a team's cards; `private` are further names that must not be told."""
    tasks = await cards.tasks.all()
    scopes = {card.scope for card in await cards.records.list()} | {task.domain for task in tasks}
    kinds = await asyncio.to_thread(lambda: {scope: kind for scope in scopes if (kind := _kind(scope))})
    names = {
        name for task in tasks if task.domain in kinds for name in kinds[task.domain].names(task.material)
    }
    public = [*kinds, *(kind.vocabulary for kind in kinds.values())]
    return Abstraction(public, {*names, *private})


def _kind(scope: str) -> WorldKind | None:
    """Return the world that a scope is the name of; scopes are free words where there is no world."""
    try:
        return find_world(scope) if scope else None
    except BadInput:
        return None
