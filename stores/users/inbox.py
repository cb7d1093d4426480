"""The inbox: messages to be remembered, from their arrival until their outcome is known.

A pending message is a live record under its message id; closing it retires the record and puts the outcome in
place of the text. A message is added only once, even if its text was forgotten since. A message that the
model failed on is retried, then set aside with the reason until a person decides. Messages are not searched.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import add
from socket import gethostname
from typing import Annotated, Any, Literal, cast
from uuid import uuid4

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from mneme.core.errors import BadInput, Conflict, NotFound, TooMany, first_fault
from mneme.core.settings import settings
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.reading import heads_of
from mneme.stores.ledger.records import (
    Change,
    Source,
    Value,
    Version,
    check_name,
    make_write,
    record_id,
    unescaped,
    user_namespace,
)

ACTOR = "inbox"
PRECEDING = 6
"""Number of earlier messages that the memory agent sees, to resolve references in a message."""


class Circumstances(TypedDict, total=False):
    """Circumstances of a message: its metadata beside the text."""

    message_id: Annotated[
        str,
        Field(
            "", description="Its own id: the same is remembered once; empty: one is made.", examples=["m-1"]
        ),
    ]
    preceding: Annotated[
        list[str],
        Field([], description="The turns before it, oldest first.", examples=[["user: I have a sister."]]),
    ]
    time: Annotated[
        str,
        Field(
            "", description="When it was said, in ISO 8601; empty: now.", examples=["2026-11-20T09:30:00Z"]
        ),
    ]
    thread: Annotated[str, Field("", description="The conversation that it is from.", examples=["main"])]
    rereads: Annotated[
        str,
        Field("", description="The key of the memory that it is read again for.", examples=["0197f3c2"]),
    ]
    told_in: Annotated[
        str, Field("", description="The id of the message that it repeats, where it does.", examples=["m-1"])
    ]


class Message(Circumstances):
    """One user message to be remembered; only its text is required."""

    message: Annotated[
        str, Field(description="What the user said.", examples=["My sister lives in Portland."])
    ]


MESSAGE = TypeAdapter(Message)


class OperationNote(TypedDict):
    """A note on one operation on a memory, without its content, so that forgetting the memory is enough."""

    event: Literal["insert", "update", "retire", "restore", "discard"]
    key: str
    version: int
    reason: str


class MessageOutcome(TypedDict):
    """The outcome of a message: whether it was stored, why, who decided, what was done, and in which run.

    It is also part of a graph's state, to which each step adds its operations. `trace` is the run's page in
    LangSmith; empty if tracing was off.
    """

    route: Literal["store", "discard", "forget"]
    rationale: str
    model: str
    operations: Annotated[list[OperationNote], add]
    run_id: str
    trace: str


def _discarded(rationale: str) -> MessageOutcome:
    """Return the outcome of a message that no run decided on."""
    return MessageOutcome(route="discard", rationale=rationale, model="", operations=[], run_id="", trace="")


FORGOTTEN = _discarded("It was forgotten, and stays so.")


MAX_TRIES = 5
"""Maximum runs of the memory agent in which a message may fail before it is set aside."""
CLAIMED_FOR = timedelta(hours=1)
"""How long a process's claim on a message lasts; on this host, it also ends when the process ends."""
MAX_REPLY_CHARS = 2000
"""Maximum characters kept of an unusable reply."""


class Trouble(TypedDict):
    """The failures to remember a message: their number, the last reason, and the unusable reply."""

    tries: int
    error: str
    reply: str


class Letter(TypedDict):
    """A message in the inbox: waiting, or set aside after it failed too often."""

    message_id: str
    message: str
    time: str
    status: Literal["waiting", "set aside"]
    tries: int
    error: str
    reply: str


@dataclass(frozen=True)
class Inbox:
    """The durable list of messages to remember, of all users."""

    ledger: Ledger

    async def add(self, user: str, message: Message) -> MessageOutcome | None:
        """Add a message once; return its outcome if it was added and closed before.

        Raises BadInput for a message without text.
        """
        waiting = complete(message)
        namespace, key = user_namespace(user, "inbox"), waiting["message_id"]
        if head := await self.ledger.get(namespace, key):
            return outcome_of(head)
        change = Change(
            reason="to be remembered", actor=ACTOR, source=Source(thread=waiting["thread"], messages=[key])
        )
        value = cast(Value, waiting)
        try:
            await self.ledger.insert(namespace, value, text="", change=change, key=key, idempotency_key=key)
        except NotFound:  # its text was forgotten: a replayed write is refused
            return FORGOTTEN
        return None

    async def knows(self, user: str, message_id: str) -> bool:
        """Return whether the inbox has a message, open or closed; False if it was forgotten."""
        return await self.ledger.get(user_namespace(user, "inbox"), message_id) is not None

    async def must_have_room(self, user: str, messages: Sequence[Message]) -> None:
        """Raise TooMany if more of a user's messages would wait, with these, than the settings allow."""
        namespace, limits = user_namespace(user, "inbox"), settings()
        waits = [cast(Message, head.value) for head in await self.ledger.records(namespace, limit=None)]
        ids = [record_id(namespace, each.get("message_id", "")) for each in messages]
        known = await self.ledger.read(heads_of, ids)
        # What was added before needs no room, so that a batch can be sent again.
        fresh = [each for each, record in zip(messages, ids, strict=True) if record not in known]
        together = [*waits, *fresh]
        texts = [text for each in together for text in (each["message"], *each.get("preceding", []))]
        size = sum(len(text.encode()) for text in texts)
        if fresh and (len(together) > limits.waiting_messages or size > limits.waiting_bytes):
            raise TooMany(
                f"{len(waits)} messages wait to be remembered, and {len(fresh)} more have no room: at most "
                f"{limits.waiting_messages}, or {limits.waiting_bytes} bytes, may wait.",
                "Wait, send less at once, or see `mneme inbox list`. "
                "MNEME_WAITING_MESSAGES and MNEME_WAITING_BYTES are the limits.",
            )

    async def pending(self, user: str) -> list[Message]:
        """Return one user's open messages, oldest first, without those that are set aside."""
        heads = await self.ledger.records(user_namespace(user, "inbox"), limit=None)
        waiting = [head.value for head in heads if trouble_of(head.value)["tries"] < MAX_TRIES]
        return [cast(Message, untroubled(value)) for value in waiting]

    async def letters(self, user: str) -> list[Letter]:
        """Return all open messages of a user, oldest first, with their failures so far."""
        heads = await self.ledger.records(user_namespace(user, "inbox"), limit=None)
        return [_letter(head) for head in heads]

    async def letter(self, user: str, message_id: str) -> Letter:
        """Return one open message, by its id or its beginning. Raises NotFound, BadInput."""
        return _letter(await self._find(user, message_id))

    async def standing(self, user: str, message_id: str) -> tuple[MessageOutcome | None, Trouble]:
        """Return a message's outcome (None while it is open) and its failures, from one read.

        Raises NotFound for a message that was never added, or was forgotten.
        """
        head = await self.ledger.get(user_namespace(user, "inbox"), message_id)
        if head is None:
            raise NotFound(f"No message in the inbox is called {message_id!r}.", "See `mneme inbox list`.")
        return outcome_of(head), trouble_of(head.value)

    async def claim(self, user: str, message_id: str) -> bool:
        """Claim an open message for this process until it is closed or fails; False if it is not free."""
        head = await self.ledger.get(user_namespace(user, "inbox"), message_id)
        if head is None or not head.live:
            return False
        claimed = cast(dict[str, Any], head.value.get("claim") or {"until": ""})
        is_valid = claimed["until"] > datetime.now(UTC).isoformat()  # both in UTC: texts in the order of time
        # Whether a process on another host still runs cannot be seen here, so its claim holds.
        if is_valid and (claimed["host"] != gethostname() or _is_another(claimed["pid"])):
            return False
        # A process that stalls loses its claim after a while; one that ends loses it at once.
        until = (datetime.now(UTC) + CLAIMED_FOR).isoformat()
        claim: Value = {"host": gethostname(), "pid": os.getpid(), "until": until}
        return await self._write(head, {**head.value, "claim": claim}, "a memory agent reads it")

    async def fail(
        self, user: str, message_id: str, error: str, reply: str = "", *, counts: bool = True
    ) -> None:
        """Note that remembering a message failed; after MAX_TRIES failures that count, it is set aside."""
        head = await self.ledger.get(user_namespace(user, "inbox"), message_id)
        if head is None or not head.live:
            return
        before = trouble_of(head.value)
        # A failure of the server does not count: it is no fault of the message.
        trouble = Trouble(tries=before["tries"] + counts, error=error, reply=reply[:MAX_REPLY_CHARS])
        if trouble != before or "claim" in head.value:  # else there would be a version with nothing new
            await self._write(head, untroubled(head.value) | {"trouble": cast(Value, trouble)}, error)

    async def retry(self, user: str, message_id: str) -> Letter:
        """Let a message that was set aside wait again. Raises NotFound."""
        head = await self._find(user, message_id)
        trouble = cast(Value, trouble_of(head.value) | {"tries": 0})
        await self._write(head, untroubled(head.value) | {"trouble": trouble}, "to be tried again")
        return await self.letter(user, head.key)

    async def drop(self, user: str, message_id: str) -> Letter:
        """Close a message without remembering it. Raises NotFound."""
        head = await self._find(user, message_id)
        await self.close(user, head.key, _discarded("Dropped by the user."))
        return _letter(head)

    async def _find(self, user: str, message_id: str) -> Version:
        check_name(message_id, "message's id")
        heads = await self.ledger.records(user_namespace(user, "inbox"), limit=None)
        whole = [head for head in heads if head.key == message_id]  # `m1` is also how `m10` begins
        found = whole or [head for head in heads if head.key.startswith(message_id)]
        if len(found) != 1:
            many = "Several messages begin" if found else "No message in the inbox begins"
            raise NotFound(f"{many} with {message_id!r}.", "See `mneme inbox list`.")
        return found[0]

    async def _write(
        self, head: Version, value: Value, reason: str, event: Literal["update", "retire"] = "update"
    ) -> bool:
        """Rewrite an open message; False if another process claimed, closed or forgot it in the meantime."""
        write = make_write(
            event=event,
            namespace=head.namespace,
            key=head.key,
            value=value,
            text="",
            change=Change(reason=reason, actor=ACTOR, source=head.change.source),
            expected_version=head.version,  # so of two processes that claim it at once, one gets it
        )
        try:
            await self.ledger.write([write])
        except (Conflict, NotFound):
            return False
        return True

    async def users(self) -> list[str]:
        """Return the users who have open messages."""
        namespaces = await self.ledger.namespaces(("users",))
        return [unescaped(namespace[1]) for namespace in namespaces if namespace[2:] == ("inbox",)]

    async def close(self, user: str, message_id: str, outcome: MessageOutcome) -> bool:
        """Replace the message by its outcome; return False if it is closed or forgotten already."""
        head = await self.ledger.get(user_namespace(user, "inbox"), message_id)
        if head is None or not head.live:
            return False
        emptied = untroubled(head.value) | {"message": "", "preceding": [], "outcome": cast(Value, outcome)}
        return await self._write(head, emptied, outcome["rationale"], "retire")

    async def outcome(self, user: str, message_id: str) -> MessageOutcome | None:
        """Return a message's outcome; None while it is open, and after a memory of the user was forgotten."""
        head = await self.ledger.get(user_namespace(user, "inbox"), message_id)
        return None if head is None else outcome_of(head)


def complete(message: Message) -> Message:
    """Return a message with an id and a time, made if it has none. Raises BadInput without text."""
    try:  # a graph's input is not checked, and what waits in the inbox is read again and again
        message = MESSAGE.validate_python(message)
    except ValidationError as error:
        raise BadInput(
            first_fault(error, "the message"), "Give texts, as the graph's input schema says."
        ) from error
    if not str(message.get("message", "")).strip():
        raise BadInput("The message is empty.", "Give the words that are to be remembered.")
    completed = Message(
        message_id=message.get("message_id") or uuid4().hex,
        thread=message.get("thread", ""),
        message=message["message"],
        preceding=message.get("preceding", []),
        time=message.get("time") or datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if rereads := message.get("rereads", ""):
        completed.update({"rereads": rereads, "told_in": message.get("told_in", "")})
    return completed


def is_new(message: Message) -> bool:
    """Return whether the user said the message, and it is not an old one read again for a memory."""
    return not message.get("rereads")


def outcome_of(head: Version) -> MessageOutcome | None:
    """Return a message's outcome; None while it is open."""
    if head.live:
        return None
    earlier = {"run_id": "", "trace": ""}  # earlier versions did not keep them
    return cast(MessageOutcome, earlier | cast(Value, head.value["outcome"]))


NO_TROUBLE = Trouble(tries=0, error="", reply="")


def untroubled(value: Value) -> Value:
    """Return a message without its failures and its claim."""
    return {name: each for name, each in value.items() if name not in {"trouble", "claim"}}


def _is_another(pid: int) -> bool:
    """Return whether another process with this id runs on this host."""
    try:
        os.kill(pid, 0)  # signal 0 only tests that the process exists
    except PermissionError:
        return True  # it is another user's
    except OSError:
        return False  # the process has ended
    return pid != os.getpid()  # its own run that was cancelled takes it up again


def trouble_of(value: Value) -> Trouble:
    """Return the failures of a message so far."""
    return cast(Trouble, value.get("trouble") or NO_TROUBLE)


def _letter(head: Version) -> Letter:
    message, trouble = cast(Message, head.value), trouble_of(head.value)
    return Letter(
        message_id=head.key,
        message=message["message"],
        time=message["time"],
        status="waiting" if trouble["tries"] < MAX_TRIES else "set aside",
        **trouble,
    )
