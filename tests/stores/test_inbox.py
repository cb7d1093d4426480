"""A user's inbox: what is pending until its outcome is known."""

import asyncio
import os
from datetime import UTC, datetime
from unittest.mock import Mock

import pytest

from mneme.core.errors import NotFound, TooMany
from mneme.core.settings import settings
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.users.inbox import Inbox, Message, MessageOutcome, OperationNote
from tests.doubles.inbox import STORED


class TestInbox:
    async def test_a_message_is_pending_until_its_outcome_is_known(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger)
        message = Message(
            message_id="m1",
            thread="t1",
            message="I moved to Oslo",
            preceding=["user: hello", "assistant: hello"],
            time=datetime.now(UTC).isoformat(),
        )
        assert await inbox.add("alice", message) is None
        assert await inbox.add("alice", message) is None
        assert await inbox.pending("alice") == [message]
        assert await inbox.pending("bob") == []
        assert await inbox.users() == ["alice"]
        assert await inbox.outcome("alice", "m1") is None
        outcome: MessageOutcome = {
            **STORED,
            "operations": [OperationNote(event="insert", key="k", version=1, reason="new")],
        }
        assert await inbox.close("alice", "m1", outcome)
        assert not await inbox.close("alice", "m1", outcome)
        assert await inbox.outcome("alice", "m1") == outcome
        assert await inbox.pending("alice") == []
        assert await inbox.users() == []
        assert await inbox.add("alice", message) == outcome
        assert not await inbox.close("alice", "never there", outcome)

    async def test_messages_stay_in_order_and_are_not_found_by_search(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger)
        for n in range(10):
            await inbox.add("a.b", Message(message_id=f"m{n}", thread="t", message=f"tea {n}"))
        assert [each["message_id"] for each in await inbox.pending("a.b")] == [f"m{n}" for n in range(10)]
        assert await inbox.users() == ["a.b"]
        assert await ledger.search((), "tea") == []

    async def test_closing_at_once_counts_once(self, ledger: Ledger) -> None:
        inbox = Inbox(ledger)
        await inbox.add("alice", Message(message_id="m1", thread="t", message="tea"))
        closed = await asyncio.gather(*(inbox.close("alice", "m1", STORED) for _ in range(5)))
        assert sum(closed) == 1


@pytest.mark.parametrize(
    ("answer", "is_free"), [(None, False), (PermissionError(), False), (ProcessLookupError(), True)]
)
async def test_a_message_is_free_once_the_process_that_claimed_it_has_ended(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, answer: OSError | None, is_free: bool
) -> None:
    inbox, own = Inbox(ledger), os.getpid()
    await inbox.add("alice", Message(message_id="m1", thread="t", message="tea"))
    assert await inbox.claim("alice", "m1")
    monkeypatch.setattr(os, "kill", Mock(side_effect=answer))  # another user's process refuses the signal
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    assert await inbox.claim("alice", "m1") is is_free


async def test_only_so_much_of_one_user_s_may_wait(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEME_WAITING_MESSAGES", "2")
    monkeypatch.setenv("MNEME_WAITING_BYTES", "100")
    settings.cache_clear()
    inbox, first = Inbox(ledger), Message(message_id="m1", message="I have a cat.")
    await inbox.must_have_room("alice", [first, Message(message="I have a dog.")])
    for said in (first, Message(message_id="m2", message="I have a dog.")):
        await inbox.add("alice", said)
    with pytest.raises(TooMany, match="2 messages wait") as refused:
        await inbox.must_have_room("alice", [first, Message(message="I have a hen.")])
    assert "MNEME_WAITING_MESSAGES" in refused.value.hint
    await inbox.must_have_room("alice", [first])
    await inbox.must_have_room("bob", [Message(message="I have a hen.")])
    with pytest.raises(TooMany):
        await inbox.must_have_room("bob", [Message(message="ü" * 30, preceding=["user: " + "é" * 20])])
    await inbox.close("alice", "m1", STORED)
    await inbox.must_have_room("alice", [Message(message="I have a hen.")])


async def test_a_whole_id_names_its_message_though_others_begin_with_it(edge_ledger: Ledger) -> None:
    inbox = Inbox(edge_ledger)
    for number in (1, 10, 11):
        await inbox.add("alice", Message(message_id=f"m{number}", message=f"I have {number} cats."))
    assert (await inbox.letter("alice", "m1")).get("message") == "I have 1 cats."
    assert (await inbox.drop("alice", "m1")).get("message_id") == "m1"
    with pytest.raises(NotFound, match="Several messages begin with 'm1'"):
        await inbox.letter("alice", "m1")
