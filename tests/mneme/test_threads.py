"""The ids of named threads: always the same for their owner, known to nobody else."""

from typing import Any, cast
from uuid import uuid4

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointMetadata, empty_checkpoint

from mneme.api.threads import Threads
from mneme.client.workflows import open_workflows
from mneme.core.errors import NotFound
from mneme.core.settings import settings
from mneme.stores.access import known_id, thread_id
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import user_namespace
from mneme.stores.users.traces import Origins


async def test_an_id_is_its_owner_s_and_stays(ledger: Ledger) -> None:
    first = await thread_id(ledger, "a.b", "memory/a.b")
    assert await thread_id(ledger, "a.b", "memory/a.b") == first
    others = [
        await thread_id(ledger, "a.b", "chat"),
        await thread_id(ledger, "bob", "memory/a.b"),
        known_id("memory/a.b"),
    ]
    assert len({first, *others}) == 4
    await ledger.forget_all(user_namespace("a.b"), reason="a test", actor="test")
    assert await thread_id(ledger, "a.b", "memory/a.b") == first
    assert await ledger.records(("users",)) == [], "a user's own part of the store does not show it"


async def test_a_thread_of_an_earlier_version_is_found_again() -> None:
    async with open_checkpointer(settings().checkpoints_location) as saver:
        await keep_something(saver, known_id("chat/local/old"))
    async with open_workflows("chatbot") as flows:
        old, new = [await flows.thread(f"chat/local/{name}", "chatbot") for name in ("old", "new")]
        again = await flows.thread("chat/local/new", "chatbot", owner="local")
    assert old["configurable"]["thread_id"] == known_id("chat/local/old")
    assert new["configurable"]["thread_id"] != known_id("chat/local/new")
    assert again["configurable"] == new["configurable"]


async def test_a_user_s_threads_are_found_by_name_and_by_id(edge_ledger: Ledger) -> None:
    """Those of an earlier version too, which have no name."""
    known, other = known_id("chat/ann/old"), str(uuid4())
    async with open_checkpointer(settings().checkpoints_location) as saver:
        await keep_something(saver, known, owner="ann")
        await keep_something(saver, other, owner="ann", thread_name="chat/ann/new")
        await keep_something(saver, str(uuid4()), owner="bob")
    threads = Threads(edge_ledger, "ann")
    assert [each.id for each in await threads.list()] == [known, other]
    for name, found in (("old", known), ("new", other), ("chat/ann/new", other), (other[:9], other)):
        assert (await threads.find(name)).id == found
    for wrong in ("", "nothing"):
        with pytest.raises(NotFound):
            await threads.delete(wrong)
    await threads.delete("old")
    assert [each.id for each in await threads.list()] == [other]
    async with threads.erasing(Origins(), [], everything=True) as deleted:
        assert deleted.threads == [other]
    assert await threads.list() == []
    assert len(await Threads(edge_ledger, "bob").list()) == 1


async def keep_something(saver: BaseCheckpointSaver[Any], thread: str, **noted: str) -> None:
    described = cast(CheckpointMetadata, {"source": "loop", "step": 0, **noted})
    place: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
    await saver.aput(place, empty_checkpoint(), described, {})
