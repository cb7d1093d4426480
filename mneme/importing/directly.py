"""Write memories that another program made as records of the ledger, as they are.

They come in as `mneme memories import` takes them, with their times and what they said before. A record's key
follows from the memory's id at its source, so each is written once.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel

from mneme.api.memories import Memories
from mneme.importing.item import Item, State
from mneme.stores.ledger.namespaces import user_namespace
from mneme.stores.ledger.records import Change, Source
from mneme.stores.ledger.transfer import Line
from mneme.stores.users.memories import Memory

ACTOR = "import"
AT_ONCE = 200
"""Memories in one call."""
PAGE = 1000


class Written(BaseModel):
    """What became of memories that were written directly."""

    memories: int
    imported: int = 0
    known: int = 0
    """Imported before."""
    differing: int = 0
    """Those of them that say something else here than at their source, since one of both was changed."""
    forgotten: int = 0
    """Imported before and erased here; they stay erased."""
    refused: list[str] = []

    @property
    def done(self) -> int:
        """The number of memories dealt with."""
        return self.known + self.imported + len(self.refused)


async def write(items: Sequence[Item], program: str, memories: Memories) -> AsyncIterator[Written]:
    """Write memories of a program, and yield how far it has come; what is here already stays as it is."""
    here, user = await _here(memories), await memories.whoami()
    fresh = [each for each in items if each.id not in here]
    done = Written(memories=len(items), known=len(items) - len(fresh))
    done.differing = sum(here.get(each.id, each.text) != each.text for each in items)
    for start in range(0, len(fresh), AT_ONCE):
        batch = [
            (each, line) for each in fresh[start : start + AT_ONCE] for line in _lines(each, program, user)
        ]
        report = await memories.import_([line.model_dump_json() for _, line in batch])
        refused = {batch[each.line - 1][0].id: each.reason for each in report.refused}
        done.refused += refused.values()
        done.imported += len({each.id for each, _ in batch}) - len(refused)
        yield done
    if fresh:
        here, refused_all = await _here(memories), len(done.refused)
        done.imported = sum(each.id in here for each in fresh)
        done.forgotten = len(fresh) - done.imported - refused_all
    yield done


async def _here(memories: Memories) -> dict[str, str]:
    """Return what every memory of the user says, by its key."""
    count, found = await memories.count(include_retired=True), dict[str, str]()
    for start in range(0, count, PAGE):
        page = await memories.list(PAGE, offset=start, include_retired=True)
        found |= {each.key: each.memory.content for each in page}
    return found


def _lines(item: Item, program: str, user: str) -> Iterator[Line]:
    """Yield the versions of a memory as an export has them, each later than the one before."""
    states = [*item.earlier, State(item.text, item.since or item.time)]
    created = at = min(states[0].time or item.time or datetime.now(UTC), datetime.now(UTC))
    for number, state in enumerate(states, start=1):
        if number > 1:
            at = max(state.time or at, at + timedelta(microseconds=1))
        yield Line(
            namespace=user_namespace(user, "memories"),
            key=item.id,
            version=number,
            event="insert" if number == 1 else "update",
            value=_value(item, state),
            text=state.text,
            at=at,
            created=created,
            change=Change(
                reason=f"{'changed in' if number > 1 else 'imported from'} {program} ({item.thread})",
                actor=ACTOR,
                source=Source(thread=item.thread),
            ),
            live=True,
            of=len(states),
        )


def _value(item: Item, state: State) -> dict[str, object]:
    told = state.time.isoformat(timespec="seconds") if state.time else ""
    return Memory(content=state.text, kind=item.kind, thread=item.thread, time=told).model_dump()
