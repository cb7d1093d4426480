"""Result of an erasure from the ledger and threads, and the files that may still have the text."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from mneme.api.copies import backups_with
from mneme.core.settings import settings
from mneme.stores.audit import SHARED_REASON
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.reading import Order
from mneme.stores.ledger.records import Forgotten, Version, microseconds, team_namespace, unescaped

if TYPE_CHECKING:  # slow to import
    from mneme.api.threads import Cleaned

KIND_NOUNS = {"agreement": "discussion", "synopsis": "episode", "turns": "turn", "proposals": "proposal"}


class Erased(Forgotten):
    """The result of an erasure from the ledger and the user's threads, and what may still have the text.

    >>> import mneme
    >>> with mneme.open("ann") as memory:
    ...     wrong = memory.memories.add("Ann has a parrot.")
    ...     erased = memory.forget(wrong.key, reason="she asked for it")
    >>> erased.records, erased.reason
    (1, 'she asked for it')
    """

    records: int = 1
    kinds: Mapping[str, int] = {}
    """Number of erased records by kind: facts, discussions with their turns, household runs, cards, …"""
    turns: int = 0
    threads: Sequence[str] = ()
    """The threads from which something was taken, or which were deleted."""
    stopped: Sequence[str] = ()
    """Stopped runs: the command that began one continues it, without the erased texts."""
    left: Sequence[str] = ()
    """Files that may still contain the text, or paraphrases of it, with what to do."""
    backups: Sequence[str] = ()
    """Backups made by `mneme backup` that may still hold it."""


async def told_to(ledger: Ledger, made: Sequence[Version], owner: str) -> list[str]:
    """Return who else read a shared team's memory while it contained any of these records, by its audit."""
    since = dict[str, datetime]()
    for each in made:
        if each.namespace[0] == "teams":
            team = unescaped(each.namespace[1])  # who read it before the record was there has not seen it
            since[team] = min(each.created, since.get(team, each.created))
    found = list[str]()
    for team, begun in since.items():
        since_then = Order(since=microseconds(begun))
        notes = await ledger.records(team_namespace(team, "audit"), limit=None, order=since_then)
        who = sorted(
            {str(each.value["by"]) for each in notes if each.change.reason != SHARED_REASON} - {owner}
        )
        found += [f"{', '.join(who)}, who read the memory of {team}: their conversations stay"] if who else []
    return found


async def erased_of(
    mark: Forgotten, cleaned: "Cleaned", made: Sequence[Version], rest: Sequence[Version], names: Set[str]
) -> Erased:
    """Return the number of erased records by kind, the files left, and the backups with these names."""
    from mneme.stores.recall import kind_in  # noqa: PLC0415  (slow to import)

    places = [each.namespace for each in made]
    kinds = ["agent memory" if "agents" in each else kind_in(each) or each[-1] for each in places]
    counted = Counter(KIND_NOUNS.get(each, each) for each in kinds)
    counted["household run"] = sum(each.startswith("household/") for each in cleaned.threads)
    cleaned.add([f"{each.key}, made knowing it, in other words: see `mneme stale`" for each in rest])
    copies, keyed = await asyncio.to_thread(backups_with, names), settings().auth is not None
    named = (Path(each.file).name if keyed else each.file for each in copies)  # with keys without the folder
    backups = [f"{name} of {each.at:%Y-%m-%d %H:%M}" for name, each in zip(named, copies, strict=True)]
    told = mark.model_dump() | cleaned.model_dump()
    return Erased(**told, records=len(made), kinds=+counted, backups=backups)  # `+` drops counts of 0
