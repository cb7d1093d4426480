"""What is still to be remembered: every user message, from its arrival until its outcome is known.

A pending message is a live record under its message id; closing it retires the record and leaves the
outcome in place of the text. A message that was added once is never added again, not even after its
text has been forgotten. Nothing here is found by search.
"""

from collections.abc import Set
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from mneme.errors import Conflict, NotFound
from stores.ledger import Ledger
from stores.records import Change, Source, Value, Version, make_write, user_namespace, user_of

ACTOR = "inbox"


class Pending(BaseModel):
    """A user message that waits to be remembered, with the turns before it."""

    model_config = ConfigDict(frozen=True)

    message_id: str
    thread: str
    message: str
    preceding: list[str] = []
    time: str = ""


class Operation(BaseModel):
    """One thing that was done with the memories because of a message."""

    model_config = ConfigDict(frozen=True)

    event: Literal["insert", "update", "retire", "restore", "discard"]
    key: str = ""
    version: int = 0
    reason: str = ""


class Outcome(BaseModel):
    """What became of a message."""

    model_config = ConfigDict(frozen=True)

    route: Literal["store", "discard"]
    rationale: str
    model: str = ""
    operations: list[Operation] = []


class Traces(NamedTuple):
    """Inbox records to forget, and records that stay with a new value."""

    gone: list[Version]
    rewritten: list[tuple[Version, Value]]


class Inbox:
    """The durable list of messages to remember, of all users."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def add(self, user: str, pending: Pending) -> bool:
        """Take a message in; return False where it has been taken in before, open, closed or forgotten."""
        namespace, key = user_namespace(user, "inbox"), pending.message_id
        if await self._ledger.get(namespace, key):
            return False
        source = Source(thread=pending.thread, messages=[key])
        change = Change(reason="to be remembered", actor=ACTOR, source=source)
        try:
            await self._ledger.insert(
                namespace, pending.model_dump(), text="", change=change, key=key, idempotency_key=key
            )
        except NotFound:  # its text was forgotten: it stays so
            return False
        return True

    async def pending(self, user: str) -> list[Pending]:
        """Return one user's open messages, oldest first."""
        namespace = user_namespace(user, "inbox")
        count = await self._ledger.count(namespace)
        return [_pending(version) for version in await self._ledger.records(namespace, limit=count)]

    async def users(self) -> list[str]:
        """Return the users who have open messages."""
        namespaces = await self._ledger.namespaces(("users",))
        return [user_of(namespace[1]) for namespace in namespaces if namespace[2:] == ("inbox",)]

    async def close(self, user: str, message_id: str, outcome: Outcome) -> bool:
        """Put the outcome in place of the message; return False where it is closed or forgotten already.

        Here a unit of work ends: everything about the message survives a power cut from now on.
        """
        namespace = user_namespace(user, "inbox")
        head = await self._ledger.get(namespace, message_id)
        if head is None or not head.live:
            return False
        kept = Pending.model_validate(head.value).model_copy(update={"message": "", "preceding": []})
        write = make_write(
            event="retire",
            namespace=namespace,
            key=message_id,
            value={**kept.model_dump(), "outcome": outcome.model_dump()},
            change=Change(reason=outcome.rationale, actor=ACTOR, source=head.change.source),
            expected_version=head.version,
        )
        try:
            await self._ledger.write([write])
        except (Conflict, NotFound):  # somebody else closed it, or it was forgotten, a moment ago
            return False
        await self._ledger.flush()
        return True

    async def outcome(self, user: str, message_id: str) -> Outcome | None:
        """Return what became of a message; None while it is open, and after it is forgotten."""
        head = await self._ledger.get(user_namespace(user, "inbox"), message_id)
        return None if head is None or head.live else Outcome.model_validate(head.value["outcome"])

    async def traces(self, user: str, messages: Set[str], quotes: Set[str]) -> Traces:
        """Find what the inbox still holds of these messages, so that they can be forgotten with a memory.

        Closed messages are only a record of work that is done, so all of them go, with the turns
        that stood before them. A message that is still open stays, without the turns in question.
        """
        namespace = user_namespace(user, "inbox")
        count = await self._ledger.count(namespace, include_retired=True)
        heads = await self._ledger.records(namespace, limit=count, include_retired=True)
        gone = [head for head in heads if not head.live or head.key in messages]
        known = [await self._ledger.history(namespace, head.key) for head in gone if head.key in messages]
        texts = {str(versions[0].value["message"]) for versions in known} | quotes
        stays = [(head, _without(head.value, texts)) for head in heads if head not in gone]
        return Traces(gone, [(head, value) for head, value in stays if value != head.value])


def _pending(version: Version) -> Pending:
    return Pending.model_validate(version.value)


def _without(value: Value, texts: Set[str]) -> Value:
    kept = [
        turn
        for turn in Pending.model_validate(value).preceding
        if not any(text in turn for text in texts if text)
    ]
    return {**value, "preceding": [*kept]}
