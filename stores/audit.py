"""Access notes: the audit of a shared team, and the readings of a user's memories.

A team's audit says who read its memory or shared something with it, a user's readings which program was shown
which memories. Questions are not stored. Versions written by a server's run name the user who started it.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from weakref import WeakKeyDictionary

from pydantic import BaseModel

from mneme.core.errors import MnemeError
from mneme.stores.access import Asker, is_own, roles
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.reading import Order, heads_of
from mneme.stores.ledger.records import (
    Change,
    Version,
    Write,
    make_write,
    microseconds,
    record_id,
    team_namespace,
    user_namespace,
)
from mneme.stores.shelf import Shelf, kind_of, readable

SHARED_REASON = "shared"
"""The reason in a note that somebody shared something with a team."""


class Seen(BaseModel):
    """A note that somebody read a shared team's memory or shared something: who and how, never what."""

    by: str
    what: str


async def asker_of(ledger: Ledger, caller: str | None, user: str, teams: Sequence[str]) -> Asker:
    """Return the asker with the teams' stored names, and note the reading in the audits of shared teams."""
    opened = roles().opened(teams)
    read = dict.fromkeys([*teams, *(each.team for each in opened)])
    if notes := [note for team in read for note in audited(ledger, caller, team, "recall")]:
        await ledger.write(notes)
    return Asker(user, tuple(teams), opened)


class StartedLedger(Ledger):
    """The ledger of a run that a server's user started: everything written names that user."""

    __slots__ = ("_user",)

    def __init__(self, ledger: Ledger, user: str) -> None:
        self.__dict__ = ledger.__dict__  # the same ledger, with the same caches
        self._user = user

    async def write(self, writes: Sequence[Write]) -> list[Version]:
        """Store a batch as `Ledger.write` does."""
        said = [each.change for each in writes]
        by = [each.model_copy(update={"actor": ", ".join({self._user: 1, each.actor: 1})}) for each in said]
        told = zip(writes, by, strict=True)
        return await super().write([each.model_copy(update={"change": change}) for each, change in told])


async def audit(ledger: Ledger, user: str | None, team: str, what: str) -> None:
    """Note in a shared team's audit that somebody read its memory."""
    if writes := audited(ledger, user, team, what):
        await ledger.write(writes)


def audited(ledger: Ledger, user: str | None, team: str, what: str, reason: str = "read") -> Sequence[Write]:
    """Return the note of a user's action in a shared team's audit; a user's own team has none."""
    if user is None or is_own(user, team):
        return []
    shelf = Shelf[Seen, Seen](ledger, team_namespace(team, "audit"), kind_of(Seen))
    return [shelf.write(None, Seen(by=user, what=what), Change(reason=reason, actor=user))]


READINGS = "readings"
"""Section of a user's namespace with the notes about which program was shown which memories."""
READINGS_KEPT_FOR = timedelta(days=90)
READINGS_DROPPED_EVERY = timedelta(days=1)
GATHERING_SECONDS = 0.25
_gathered: WeakKeyDictionary[Ledger, list[tuple[str, str, list[str]]]] = WeakKeyDictionary()
"""Notes that are not written yet: the owner, the program shown the memories, and their keys."""


class Reading(BaseModel):
    """A note that a program was shown memories, and when."""

    at: datetime
    by: str
    keys: list[str]

    @classmethod
    def of(cls, note: Version) -> "Reading":
        """Read a note back from its version."""
        return cls.model_validate({"at": note.at, "by": note.change.actor, "keys": note.value.get("keys")})


def was_shown(ledger: Ledger, user: str, by: str, keys: Iterable[str]) -> None:
    """Note in the background which memories a program was shown; a failure does not reach the caller."""
    if shown := [*keys]:
        waiting = _gathered.setdefault(ledger, [])
        waiting.append((user, by, shown))
        if len(waiting) == 1:  # else a note that is on its way takes this one along
            ledger.begin(_note(ledger))


async def _note(ledger: Ledger) -> None:
    """Write the notes of a short time as one batch, since after each entry searches read the log again."""
    await asyncio.sleep(GATHERING_SECONDS)
    shown, left = _gathered.pop(ledger), list[Write]()
    with suppress(MnemeError):
        memories = {user: user_namespace(user, "memories") for user, _, _ in shown}
        ids = [record_id(memories[user], key) for user, _, keys in shown for key in keys]
        known = await ledger.read(heads_of, ids)  # without memories that were forgotten meanwhile
        for user, by, keys in shown:
            if kept := [key for key in keys if record_id(memories[user], key) in known]:
                place, change = user_namespace(user, READINGS), Change(reason="shown", actor=by)
                note = make_write(
                    event="insert", namespace=place, value={"keys": kept}, text="", change=change
                )
                left.append(note)
        if left:
            await ledger.write(left)
        for place in {each.namespace for each in left}:
            first = await ledger.records(place, limit=1)
            if first and datetime.now(UTC) - first[0].created > READINGS_KEPT_FOR + READINGS_DROPPED_EVERY:
                await drop_old_readings(ledger)  # without a server nothing else does


async def readings(ledger: Ledger, user: str, key: str, limit: int) -> list[Reading]:
    """Return which programs were shown a user's memories, or one of them, newest first."""
    of_one = {"keys": {"$in": [key]}} if key else {}
    recent = Order(descending=True, since=microseconds(datetime.now(UTC) - READINGS_KEPT_FOR))
    found = await ledger.records(user_namespace(user, READINGS), filter=of_one, limit=limit, order=recent)
    return readable(Reading.of, found)


async def drop_old_readings(ledger: Ledger) -> None:
    """Erase all users' notes that are over 90 days old."""
    until = Order(until=microseconds(datetime.now(UTC) - READINGS_KEPT_FOR))
    for place in await ledger.namespaces(("users",)):
        if place[2:] == (READINGS,) and (old := await ledger.records(place, limit=None, order=until)):
            await ledger.forget_records(dropped=old)
