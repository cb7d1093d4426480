"""What went on with a user's memories: which program was shown which, and how many changed on each day.

Of what a program asked nothing is kept.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from mneme.core.errors import MnemeError
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.reading import Order
from mneme.stores.ledger.records import (
    Change,
    Version,
    Write,
    make_write,
    microseconds,
    record_id,
    user_namespace,
)
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.unreadable import readable

PLACE = "readings"
KEPT_FOR = timedelta(days=90)
DROPPED_EVERY = timedelta(days=1)
GATHERING_SECONDS = 0.25
_waiting: WeakKeyDictionary[Ledger, list[Write]] = WeakKeyDictionary()
DID = {"insert": "added", "update": "changed", "restore": "changed", "retire": "retired"}


class Reading(BaseModel):
    """That a program was shown memories, and when."""

    at: datetime
    by: str
    keys: list[str]

    @classmethod
    def of(cls, note: Version) -> "Reading":
        """Read a note back from its version."""
        return cls.model_validate({"at": note.at, "by": note.change.actor, "keys": note.value.get("keys")})


class Day(BaseModel):
    """How many memories were added, changed, retired and forgotten on a day of the server's calendar."""

    day: date
    added: int = 0
    changed: int = 0
    retired: int = 0
    forgotten: int = 0


def was_shown(ledger: Ledger, user: str, by: str, keys: Iterable[str]) -> None:
    """Note what a program is shown, beside what the caller goes on with, which does not fail with it."""
    if not (shown := [*keys]):
        return
    note = make_write(
        event="insert",
        namespace=user_namespace(user, PLACE),
        value={"keys": shown},
        text="",
        change=Change(reason="shown", actor=by),
    )
    waiting = _waiting.setdefault(ledger, [])
    waiting.append(note)
    if len(waiting) == 1:
        ledger.begin(_note(ledger))


async def _note(ledger: Ledger) -> None:
    """Write what has gathered for a moment at once: with each entry, searches read the log anew."""
    await asyncio.sleep(GATHERING_SECONDS)
    notes = _waiting.pop(ledger)
    with suppress(MnemeError):
        if left := await _of_what_is_left(ledger, notes):
            await ledger.write(left)
        for place in {each.namespace for each in left}:
            first = await ledger.records(place, limit=1)
            if first and datetime.now(UTC) - first[0].created > KEPT_FOR + DROPPED_EVERY:
                await drop_old_readings(ledger)  # where no server does that


async def _of_what_is_left(ledger: Ledger, notes: Sequence[Write]) -> list[Write]:
    """Return the notes without what was forgotten meanwhile."""

    def record_of(note: Write, key: str) -> str:
        return record_id((*note.namespace[:-1], "memories"), key)

    keys: list[tuple[Write, list[str]]] = [(each, cast(Any, each.value)["keys"]) for each in notes]
    known = await ledger.by_ids([record_of(note, key) for note, shown in keys for key in shown])
    left = [(note, [key for key in shown if record_of(note, key) in known]) for note, shown in keys]
    return [note.model_copy(update={"value": {"keys": shown}}) for note, shown in left if shown]


async def readings(ledger: Ledger, user: str, key: str, limit: int) -> list[Reading]:
    """Return which programs were shown memories, or one of them, the newest first."""
    of_one = {"keys": {"$in": [key]}} if key else {}
    recent = Order(descending=True, since=microseconds(datetime.now(UTC) - KEPT_FOR))
    found = await ledger.records(user_namespace(user, PLACE), filter=of_one, limit=limit, order=recent)
    return readable(Reading.of, found)


async def drop_old_readings(ledger: Ledger) -> None:
    """Erase what is over 90 days old, of all users."""
    until = Order(until=microseconds(datetime.now(UTC) - KEPT_FOR))
    for place in await ledger.namespaces(("users",)):
        if place[2:] == (PLACE,) and (old := await ledger.records(place, limit=None, order=until)):
            await ledger.forget_records(dropped=old)


async def by_day(kept: UserMemories, days: int) -> list[Day]:
    """Return the days on which anything changed, of the last so many, the oldest first."""
    since = datetime.now().astimezone() - timedelta(days=days)
    changed = Order("updated", since=microseconds(since))
    counts = defaultdict[date, Counter[str]](Counter)
    for head in await kept.heads(include_retired=True, order=changed):
        for version in await kept.changes(head):
            counts[version.at.astimezone().date()][DID[version.event]] += version.at >= since
    for note in await kept.ledger.forgotten(kept.namespace):
        counts[note.at.astimezone().date()]["forgotten"] += note.at >= since
    return [Day(day=day, **of) for day, of in sorted(counts.items()) if any(of.values())]
