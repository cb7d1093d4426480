"""Write imported items into memory: verbatim, or through the memory agent like new messages.

The same command continues either after a kill: keys of records and ids of messages are derived from the
source, so nothing is written twice.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime, timedelta

from pydantic import BaseModel

from mneme.api.memories import Memories
from mneme.client.workflows import GraphRun, Session, Values, open_session
from mneme.importing.item import Item, State
from mneme.models.asking.counting import NOTHING, Asked, sum_counts
from mneme.stores.ledger.records import Change, Source, user_namespace
from mneme.stores.ledger.transfer import Line
from mneme.stores.users.inbox import Message, MessageOutcome
from mneme.stores.users.memory import Memory

MEMORIES_PER_CALL = 200
"""Maximum number of memories in one call."""
MEMORIES_PER_PAGE = 1000
MESSAGES_IN_A_RUN = 20
"""Number of messages in one run of the memory agent: at most these are unfinished after a kill."""


class MemoryCounts(BaseModel):
    """Counts of memories that were written verbatim."""

    memories: int
    imported: int = 0
    known: int = 0
    """Imported before."""
    differing: int = 0
    """Number of those that differ from their source, since one of the two was changed."""
    forgotten: int = 0
    """Imported before and erased here; they stay erased."""
    refused: list[str] = []

    @property
    def done(self) -> int:
        """The number of memories handled."""
        return self.known + self.imported + len(self.refused)


async def write(items: Sequence[Item], program: str, memories: Memories) -> AsyncIterator[MemoryCounts]:
    """Write memories of a program, and yield the progress; existing memories stay unchanged."""
    here, user = await _here(memories), await memories.whoami()
    fresh = [each for each in items if each.id not in here]
    done = MemoryCounts(memories=len(items), known=len(items) - len(fresh))
    done.differing = sum(here.get(each.id, each.text) != each.text for each in items)
    for start in range(0, len(fresh), MEMORIES_PER_CALL):
        batch = [
            (each, line)
            for each in fresh[start : start + MEMORIES_PER_CALL]
            for line in _lines(each, program, user)
        ]
        report = await memories.import_([line.model_dump_json() for _, line in batch])
        refused = {batch[each.line - 1][0].id: each.reason for each in report.refused}
        done.refused += refused.values()
        done.imported += len({each.id for each, _ in batch}) - len(refused)
        yield done
    if fresh:  # an import passes over what was forgotten here, and does not say so
        here = await _here(memories)
        done.imported = sum(each.id in here for each in fresh)
        done.forgotten = len(fresh) - done.imported - len(done.refused)
    yield done


async def _here(memories: Memories) -> dict[str, str]:
    """Return the text of every memory of the user, by its key."""
    count, found = await memories.count(include_retired=True), dict[str, str]()
    for start in range(0, count, MEMORIES_PER_PAGE):
        page = await memories.list(MEMORIES_PER_PAGE, offset=start, include_retired=True)
        found |= {each.key: each.memory.content for each in page}
    return found


def _lines(item: Item, program: str, user: str) -> Iterator[Line]:
    """Yield the versions of a memory in the form of an export, each later than the one before."""
    states = [*item.earlier, State(item.text, item.since or item.time)]
    # No later than now: the clock of a source may be wrong.
    created = at = min(states[0].time or item.time or datetime.now(UTC), datetime.now(UTC))
    for number, state in enumerate(states, start=1):
        if number > 1:
            at = max(state.time or at, at + timedelta(microseconds=1))
        told = state.time.isoformat(timespec="seconds") if state.time else ""
        memory = Memory(content=state.text, kind=item.kind, thread=item.thread, time=told)
        reason = f"{'changed in' if number > 1 else 'imported from'} {program} ({item.thread})"
        yield Line(
            namespace=user_namespace(user, "memories"),
            key=item.id,
            version=number,
            event="insert" if number == 1 else "update",
            value=memory.model_dump(),
            text=state.text,
            at=at,
            created=created,
            change=Change(reason=reason, actor="import", source=Source(thread=item.thread)),
            live=True,
            of=len(states),
        )


class FailedMessage(BaseModel):
    """A message that waits for another attempt, or is set aside, and why."""

    message_id: str
    error: str


class MessageCounts(BaseModel):
    """Counts of messages by outcome so far; each is counted once."""

    messages: int
    remembered: int = 0
    """Messages that wrote or changed a memory."""
    nothing: int = 0
    """There was nothing to remember, or nothing new."""
    known: int = 0
    """Handled in an earlier run, even if the result has been erased since."""
    failed: list[FailedMessage] = []
    stopped: str = ""
    """Reason why the rest was not tried: no model is available."""
    asked: Asked = NOTHING
    earlier: set[str] = set()
    """The ids of messages that an earlier run handled."""
    outcomes: dict[str, MessageOutcome] = {}
    """Known outcomes of messages, by their ids."""
    underway: int = 0
    """Number of messages in the current batch that the memory agent has read."""

    @property
    def done(self) -> int:
        """The number of messages handled."""
        return self.remembered + self.nothing + self.known + len(self.failed) + self.underway


def message_of(item: Item) -> Message:
    """Return an item as a message that was said at its time."""
    return Message(
        message=item.text,
        message_id=item.id,
        preceding=[*item.before],
        time=item.time.isoformat(timespec="seconds") if item.time else "",
        thread=item.thread,
    )


async def send(messages: Sequence[Message], user: str, context: Values) -> AsyncIterator[MessageCounts]:
    """Let the memory agent read messages, in their order; yield the progress. Raises MnemeError.

    A message is stored in the inbox before the memory agent reads it.
    """
    report = MessageCounts(messages=len(messages))
    async with open_session(user) as session:
        for start in range(0, len(messages), MESSAGES_IN_A_RUN):
            async for each in _send(session, messages[start : start + MESSAGES_IN_A_RUN], context, report):
                yield each
            if report.stopped:
                return
        yield report


async def _send(
    session: Session, batch: Sequence[Message], context: Values, report: MessageCounts
) -> AsyncIterator[MessageCounts]:
    known = await _outcomes(session, [each["message_id"] for each in batch])
    report.outcomes |= known
    report.earlier |= known.keys()
    fresh = [each for each in batch if each["message_id"] not in known]
    report.known += len(batch) - len(fresh)
    if fresh:
        config, whose = await session.background(), context | {"user": session.user, "reread": False}
        run = GraphRun(session.flows, "remember", {"messages": fresh}, config, whose, "updates")
        async for step in run:
            # The graph's step `count` follows each message, with how many it has remembered.
            read = int((step.get("count") or {}).get("remembered", report.underway))
            report.underway = min(read, len(fresh))
            yield report
        report.underway, report.asked = 0, sum_counts(report.asked, run.values.get("asked", NOTHING))
        await _settle(session, [each["message_id"] for each in fresh], report)
    yield report


async def _outcomes(session: Session, ids: Sequence[str]) -> dict[str, MessageOutcome]:
    found = await asyncio.gather(*map(session.inbox.outcome, ids))
    return {name: outcome for name, outcome in zip(ids, found, strict=True) if outcome}


async def _settle(session: Session, fresh: Sequence[str], report: MessageCounts) -> None:
    """Count the outcomes of messages, with those that failed before, which each run tries again."""
    ids = [*(each.message_id for each in report.failed), *fresh]
    found = await _outcomes(session, ids)
    report.outcomes |= found
    for outcome in found.values():
        if any(each["event"] != "discard" for each in outcome["operations"]):
            report.remembered += 1
        else:
            report.nothing += 1
    open_ = [each for each in ids if each not in found]
    letters = {each["message_id"]: each for each in await session.inbox.list()} if open_ else {}
    left = [letters[each] for each in open_ if each in letters]
    report.known += len(open_) - len(left)  # the inbox takes no message again that was erased
    report.failed = [FailedMessage(message_id=each["message_id"], error=each["error"]) for each in left]
    # Without a try the reason was external, such as a model that is away: all others would fail, too.
    report.stopped = next((each["error"] for each in left if each["error"] and not each["tries"]), "")
