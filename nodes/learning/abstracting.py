"""What makes a team's cards abstract: what its worlds say in public, and the names in its logged tasks."""

import asyncio
from collections.abc import Iterable, Sequence

from mneme.core.errors import BadInput
from mneme.environments.worlds import WorldKind, find_world
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.sharing import Abstraction
from mneme.stores.cards.task_log import TaskRecord


async def abstraction_of(cards: KnowledgeCards, private: Sequence[str] = ()) -> Abstraction:
    """Return what abstracts a team's cards; `private` are further names that must not be told."""
    tasks = await cards.tasks.list()
    scopes = {card.scope for card in await cards.records.list()} | {task.domain for task in tasks}
    return await asyncio.to_thread(_made, scopes, tasks, private)


def _made(scopes: Iterable[str], tasks: Sequence[TaskRecord], private: Sequence[str]) -> Abstraction:
    kinds = {scope: kind for scope in scopes if (kind := _kind(scope))}
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
