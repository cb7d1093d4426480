"""Answers to requests that change something, kept for a day: a request repeated with its key runs once.

Of a request only hashes are kept: of its key, and of its content, which nobody can guess without the key. The
answer is kept unchanged. It may contain a memory's text, so it is erased when anything of its owner is
forgotten; a repetition is then refused, and still not executed again.

A request whose server ended before the answer stays open, since nobody knows how far it came.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from mneme.core.errors import Conflict, KeyReused, NotFound, StillRunning
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Namespace, Value, Version
from mneme.stores.shelf import Shelf, kind_of

ANSWERS_ROOT = "answers"
ANSWER_LIFETIME = timedelta(days=1)
MAX_BODY_CHARS = 1_000_000
"""Maximum characters of a stored answer; of a longer one only its status is kept."""
ANSWER_CHANGE = Change(reason="for a repetition of the request", actor="server")
again_on_conflict = retry(
    retry=retry_if_exception_type((Conflict, NotFound)), stop=stop_after_attempt(5), reraise=True
)
"""Retry decorator: a concurrent erasure for the same owner may rewrite or drop a claim."""


class Answer(NamedTuple):
    """The status and the text of an answer."""

    status: int
    body: str


class StoredAnswer(BaseModel):
    """A request that was begun, with its answer once there is one; without text if erased or too long."""

    model_config = ConfigDict(frozen=True)

    request: str
    since: datetime
    status: int = 0
    body: str | None = None


class Claim(NamedTuple):
    """A request that only this process is executing."""

    name: str
    kept: StoredAnswer
    at: datetime


class KeptAnswers:
    """The stored answers of one owner of data, given by its namespace: `("users", "ann")`."""

    def __init__(self, ledger: Ledger, owner: Namespace) -> None:
        self._ledger, self._owner = ledger, owner
        self._shelf = Shelf(ledger, (ANSWERS_ROOT, *owner), kind_of(StoredAnswer))

    async def claim(self, key: str, request: bytes) -> Answer | Claim:
        """Return the stored answer, or claim the request: then call `keep` or `release`.

        Raises StillRunning, KeyReused, and Conflict if the answer's text was erased or was too long to keep.
        """
        name, asked = _hash(key.encode()), _hash(key.encode(), request)
        head = await self._ledger.get(self._shelf.namespace, name)
        if head is not None and head.live and not _is_old(head):
            return _given(self._shelf.kind.read(head), asked)
        kept = StoredAnswer(request=asked, since=datetime.now(UTC))
        write = self._shelf.write(name, kept, ANSWER_CHANGE)
        if head is not None and not head.live:
            write = write.model_copy(update={"event": "restore", "expected_version": head.version})
        elif head is not None:  # too old: an update would keep its text in the history
            await self._ledger.forget_records(dropped=[head])
        try:
            [taken] = await self._ledger.write([write])
        except (Conflict, NotFound) as other:  # the same request came twice at once
            raise _running() from other
        return Claim(name, kept, taken.at)

    async def release(self, claim: Claim) -> None:
        """Release a request that changed nothing, so that it can be tried again."""
        head = await self._ledger.get(self._shelf.namespace, claim.name)
        if head is not None:
            await self._shelf.retire(claim.name, change=ANSWER_CHANGE, expected_version=head.version)

    async def keep(self, claim: Claim, answer: Answer, *, erases: bool) -> None:
        """Store an answer, without its text if something of the owner was forgotten meanwhile.

        A request that `erases` keeps its answer, which has no erased text.
        """
        body = answer.body if len(answer.body) <= MAX_BODY_CHARS else None
        kept = claim.kept.model_copy(update={"status": answer.status, "body": body})
        await again_on_conflict(self._shelf.put)(claim.name, kept, change=ANSWER_CHANGE)
        marks = [] if erases else await self._ledger.forgotten(self._owner)
        # Looked up after the answer is stored: an erasure either finds it there, or is found here.
        if any(mark.at >= claim.at for mark in marks):
            await self._ledger.forget_records(rewritten=await self.without_texts())

    async def all(self) -> Sequence[Version]:
        """Return all stored answers."""
        return await self._shelf.heads(include_retired=True)

    async def without_texts(self) -> Sequence[tuple[Version, Value]]:
        """Return the answers with a text, and their values without it, for `Ledger.forget_records`."""
        return [
            (each, {**each.value, "body": None})
            for each in await self.all()
            if each.value["body"] is not None
        ]


async def drop_old_answers(ledger: Ledger) -> int:
    """Erase all owners' answers that are older than a day; return their number."""
    kept = await ledger.records((ANSWERS_ROOT,), limit=None, include_retired=True)
    old = [each for each in kept if _is_old(each)]
    if old:
        await ledger.forget_records(dropped=old)
    return len(old)


def _given(kept: StoredAnswer, asked: str) -> Answer:
    if kept.request != asked:
        raise KeyReused("Another request had this idempotency key.", "Give each request a key of its own.")
    if not kept.status:
        raise _running()
    if kept.body is None:
        raise Conflict("This was done already; its answer is not kept any more.", "Read what it changed.")
    return Answer(kept.status, kept.body)


def _running() -> StillRunning:
    return StillRunning(
        "The request with this idempotency key is still being done, or its server ended before it answered.",
        "Ask again in a moment. If that does not help, look whether it was done, and use another key.",
    )


def _is_old(head: Version) -> bool:
    return datetime.fromisoformat(str(head.value["since"])) < datetime.now(UTC) - ANSWER_LIFETIME


def _hash(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8) + part)  # else ("a", "bc") would have the hash of ("ab", "c")
    return digest.hexdigest()
