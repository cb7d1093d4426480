"""Send what another program kept through the memory agent, message by message, as if it had just been said.

A message is safe in the inbox before the memory agent reads it, under an id that follows from the source. So
whatever is killed goes on with the same command, and what was remembered once is not sent again.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence

from pydantic import BaseModel

from mneme.client.session import PoliteSession, Session
from mneme.client.workflows import Values
from mneme.importing.item import Item
from mneme.models.asking.counting import NOTHING, Asked, added
from mneme.stores.users.inbox import Message, MessageOutcome

AT_ONCE = 20
"""Messages in one run; another process that waits for the memories gets them after each."""


class Failed(BaseModel):
    """A message that waits for another attempt, or is set aside, and why."""

    message_id: str
    error: str


class Sent(BaseModel):
    """What has become of messages so far; each is counted once."""

    messages: int
    remembered: int = 0
    """Some memory was written or changed."""
    nothing: int = 0
    """There was nothing to remember, or nothing new."""
    known: int = 0
    """Dealt with in an earlier run, also where that is erased by now."""
    failed: list[Failed] = []
    stopped: str = ""
    """Why the rest was not tried: no model can be asked."""
    asked: Asked = NOTHING
    underway: int = 0
    """Of the messages in hand, how many the memory agent has read."""

    @property
    def done(self) -> int:
        """The number of messages dealt with."""
        return self.remembered + self.nothing + self.known + len(self.failed) + self.underway


async def send(items: Sequence[Item], user: str, context: Values) -> AsyncIterator[Sent]:
    """Let the memory agent read items, in their order; yield how far it has come. Raises MnemeError."""
    report, polite = Sent(messages=len(items)), PoliteSession(user)
    try:
        for start in range(0, len(items), AT_ONCE):
            session = await polite.open()
            async for each in _send(session, items[start : start + AT_ONCE], context, report):
                yield each
            if report.stopped:
                return
            await polite.give_way()
        yield report
    finally:
        await polite.close()


async def _send(
    session: Session, batch: Sequence[Item], context: Values, report: Sent
) -> AsyncIterator[Sent]:
    known = await _outcomes(session, [each.id for each in batch])
    fresh = [each for each, outcome in zip(batch, known, strict=True) if outcome is None]
    report.known += len(batch) - len(fresh)
    if not fresh:
        yield report
        return
    config, whose = await session.background(), context | {"user": session.user, "reread": False}
    given = {"messages": [_message(each) for each in fresh]}
    async for step in session.flows.stream("remember", given, config, whose, "updates"):
        report.underway = min(int((step.get("count") or {}).get("remembered", report.underway)), len(fresh))
        yield report
    _, values = await session.flows.left_at("remember", config)
    report.underway, report.asked = 0, added(report.asked, values.get("asked", NOTHING))
    await _settle(session, [each.id for each in fresh], report)
    yield report


async def _outcomes(session: Session, ids: Sequence[str]) -> list[MessageOutcome | None]:
    return await asyncio.gather(*map(session.inbox.outcome, ids))


def _message(item: Item) -> Message:
    return Message(
        message=item.text,
        message_id=item.id,
        preceding=[*item.before],
        time=item.time.isoformat(timespec="seconds") if item.time else "",
        thread=item.thread,
    )


async def _settle(session: Session, fresh: Sequence[str], report: Sent) -> None:
    """Count what became of messages and of those that failed before, which each run tries again.

    Stop where one failed for no fault of its own: all others would.
    """
    ids, open_ = [*(each.message_id for each in report.failed), *fresh], list[str]()
    for name, outcome in zip(ids, await _outcomes(session, ids), strict=True):
        if outcome is None:
            open_.append(name)
        elif any(each["event"] != "discard" for each in outcome["operations"]):
            report.remembered += 1
        else:
            report.nothing += 1
    letters = {each["message_id"]: each for each in await session.inbox.list()} if open_ else {}
    left = [letters[each] for each in open_ if each in letters]
    report.known += len(open_) - len(left)  # the inbox takes no message again that was erased
    report.failed = [Failed(message_id=each["message_id"], error=each["error"]) for each in left]
    report.stopped = next((each["error"] for each in left if each["error"] and not each["tries"]), "")
