"""Who may do what on the server: keys, one person alone, and everybody's own things.

What the handlers decide is tested here; that the server asks them, in the test of the server.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest
from langgraph.checkpoint.base import CheckpointMetadata, empty_checkpoint
from langgraph_sdk import Auth

from mneme.core.settings import settings
from mneme.server import auth
from mneme.server.auth import MAX_BUSY, MAX_FIELD_BYTES
from mneme.server.users import add_user, remove_user
from mneme.stores.access import SOLE_PERSON
from mneme.stores.checkpoints.checkpointer import checkpointer

HERE = {b"host": b"127.0.0.1:2024"}
Refused = Auth.exceptions.HTTPException


@pytest.fixture(autouse=True)
def idle_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand for the server that is asked how many runs are under way: none."""
    client = AsyncMock()
    client.threads.count.return_value = 0
    monkeypatch.setattr("mneme.server.auth.get_client", lambda **_: client)


@pytest.fixture(autouse=True)
def fresh_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("MNEME_HOME", str(tmp_path))
    monkeypatch.delenv("MNEME_AUTH", raising=False)
    settings.cache_clear()
    yield
    settings.cache_clear()


async def who(headers: dict[bytes, bytes], client: str = "127.0.0.1") -> str:
    found = await auth.identify(headers, {"client": (client, 50000)})
    return str(found["identity"])


async def refusal(headers: dict[bytes, bytes], client: str = "127.0.0.1") -> int:
    with pytest.raises(Refused) as refused:
        await who(headers, client)
    return int(refused.value.status_code)


HANDLERS: dict[str, Any] = {
    "threads": auth.own_threads,
    "crons": auth.own_crons,
    "assistants": auth.own_assistants,
    "store": auth.own_store,
}


async def decided(name: str, resource: str, action: str, value: dict[str, Any], *permissions: str) -> Any:
    """Return what is decided about a request of a user's; the request's value may be changed by it."""
    user = SimpleNamespace(identity=name)
    context = SimpleNamespace(user=user, permissions=list(permissions), resource=resource, action=action)
    return await HANDLERS[resource](ctx=context, value=value)


async def test_a_key_comes_in_either_header(users: Path) -> None:
    key = add_user(users, "alice").encode()
    assert await who({b"x-api-key": key}) == "alice"
    assert await who({b"authorization": b"Bearer " + key}) == "alice"
    assert await who({b"authorization": b"bearer " + key, b"x-api-key": b""}, "192.0.2.7") == "alice"


async def test_without_a_key_of_somebody_nobody_is_let_in(users: Path) -> None:
    key = add_user(users, "alice").encode()
    assert await refusal({}) == 401
    assert await refusal({b"x-auth-scheme": b"langsmith"}) == 401
    assert await refusal({b"authorization": b"Basic " + key}) == 401
    assert await refusal({b"x-api-key": b"\xff\x00"}) == 401
    remove_user(users, "alice")
    assert await refusal({b"x-api-key": key}) == 401


@pytest.mark.parametrize("spoil", [lambda file: file.write_text("{"), Path.unlink])
async def test_a_broken_or_lost_file_of_users_lets_nobody_in(users: Path, spoil: Any) -> None:
    key = add_user(users, "alice").encode()
    spoil(users)
    assert await refusal({b"x-api-key": key}) == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:2024", "127.0.0.1", "127.3.2.1:80", "[::1]:2024"])
@pytest.mark.parametrize("client", ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
async def test_alone_one_is_local(host: str, client: str) -> None:
    assert await who({b"host": host.encode()}, client) == "local"


@pytest.mark.parametrize("client", ["192.168.1.7", "8.8.8.8", "::ffff:8.8.8.8", "fe80::1", "testclient", ""])
async def test_another_machine_is_refused(client: str) -> None:
    assert await refusal(HERE, client) == 403


async def test_a_connection_from_nowhere_is_refused() -> None:
    with pytest.raises(Refused):
        await auth.identify(HERE, {"client": None})


@pytest.mark.parametrize(
    "host", ["", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "["]
)
async def test_a_name_that_was_made_to_point_here_is_refused(host: str) -> None:
    assert await refusal({b"host": host.encode()}) == 403


@pytest.mark.parametrize(
    ("origin", "trusted"),
    [
        ("https://smith.langchain.com", True),
        ("https://eu.smith.langchain.com", True),
        ("http://localhost:3000", True),
        ("http://127.0.0.1:2024", True),
        ("http://smith.langchain.com", False),
        ("https://smith.langchain.com.evil.example", False),
        ("https://evilsmith.langchain.com", False),
        ("https://evil.example", False),
        ("null", False),
        ("", False),
    ],
)
async def test_only_pages_that_a_person_here_opens_are_answered(origin: str, trusted: bool) -> None:
    headers = {**HERE, b"origin": origin.encode()}
    if trusted:
        assert await who(headers) == "local"
    else:
        assert await refusal(headers) == 403


@pytest.mark.parametrize("action", ["create", "update", "create_run"])
async def test_what_one_makes_is_one_s_own_whatever_one_says(action: str) -> None:
    value: dict[str, Any] = {"metadata": {"owner": "bob", "kept": 1}}
    filtered = await decided("alice", "threads", action, value)
    assert (filtered, value["metadata"]) == ({"owner": "alice"}, {"owner": "alice", "kept": 1})


@pytest.mark.parametrize("place", ["context", "config"])
async def test_a_run_that_names_another_user_is_refused(place: str) -> None:
    def run(user: str) -> dict[str, Any]:
        named = {"user": user}
        return {"metadata": {}, "kwargs": {place: named if place == "context" else {"configurable": named}}}

    for mine in ("alice", "local"):
        assert await decided("alice", "threads", "create_run", run(mine)) == {"owner": "alice"}
    with pytest.raises(Refused, match="The key is alice's, not bob's") as refused:
        await decided("alice", "threads", "create_run", run("bob"))
    assert refused.value.status_code == 403
    assert await decided("local", "threads", "create_run", run("bob"), SOLE_PERSON)


async def test_runs_that_come_at_once_are_counted_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    client, under_way = AsyncMock(), list[int]()

    async def count(**_: object) -> int:
        found = len(under_way)
        await asyncio.sleep(0.001)
        return found

    async def begin(number: int) -> None:
        await decided("alice", "threads", "create_run", {"metadata": {}, "kwargs": {}})
        under_way.append(number)

    client.threads.count = count
    monkeypatch.setattr("mneme.server.auth.get_client", lambda **_: client)
    told = await asyncio.gather(*map(begin, range(60)), return_exceptions=True)
    refused = [each.status_code for each in told if isinstance(each, Refused)]
    assert (len(under_way), refused) == (MAX_BUSY, [429] * (60 - MAX_BUSY))


@pytest.mark.parametrize(
    ("resource", "action", "field"),
    [
        ("threads", "create", "metadata"),
        ("threads", "update", "metadata"),
        ("threads", "create_run", "context"),
        ("assistants", "create", "config"),
        ("assistants", "update", "description"),
        ("crons", "create", "payload"),
        ("crons", "create", "metadata"),
    ],
)
async def test_what_a_resource_has_beside_its_input_is_bounded(
    resource: str, action: str, field: str
) -> None:
    def given(size: int) -> dict[str, Any]:
        value: dict[str, Any] = {field: {"x": "y" * size}}
        return {"kwargs": value} if action == "create_run" else value

    assert await decided("alice", resource, action, given(MAX_FIELD_BYTES - 100))
    with pytest.raises(Refused, match=f"`{field}` may have 64 kB here. Send long texts as") as refused:
        await decided("alice", resource, action, given(MAX_FIELD_BYTES))
    assert refused.value.status_code == 413


@pytest.mark.parametrize("action", ["read", "search", "delete"])
async def test_only_one_s_own_is_found_and_the_search_is_left_as_it_is(action: str) -> None:
    value: dict[str, Any] = {"metadata": {"owner": "bob"}}
    for resource in ("threads", "crons"):
        assert await decided("alice", resource, action, value) == {"owner": "alice"}
    assert value == {"metadata": {"owner": "bob"}}


async def test_a_graph_s_assistant_is_for_everybody_to_use_and_nobody_to_change() -> None:
    both = [{"owner": "alice"}, {"created_by": "system"}]
    for action in ("read", "search"):
        assert await decided("alice", "assistants", action, {}) == {"$or": both}
    for action in ("update", "delete"):
        assert await decided("alice", "assistants", action, {}) == {"owner": "alice"}


async def test_one_s_own_assistant_cannot_pass_for_a_graph_s() -> None:
    value: dict[str, Any] = {"metadata": {"created_by": "system", "owner": "bob"}}
    await decided("alice", "assistants", "create", value)
    assert value["metadata"] == {"created_by": "user", "owner": "alice"}


@pytest.mark.parametrize("action", ["get", "put", "delete", "search", "list_namespaces"])
async def test_only_one_s_own_namespace_is_open(action: str) -> None:
    assert await decided("alice", "store", action, {"namespace": ("users", "alice")})
    assert await decided("alice", "store", action, {"namespace": ("users", "alice", "memories")})
    for other in (("users", "bob"), ("users", "alice2"), ("teams",), ("alice",), ("Users", "alice")):
        assert not await decided("alice", "store", action, {"namespace": other})


@pytest.mark.parametrize("everything", [(), None, ("users",)])
async def test_a_search_of_everything_becomes_one_of_one_s_own(everything: tuple[str, ...] | None) -> None:
    for action in ("search", "list_namespaces"):
        value: dict[str, Any] = {"namespace": everything}
        assert await decided("alice", "store", action, value)
        assert value["namespace"] == ("users", "alice")
    for action in ("get", "put", "delete"):
        assert not await decided("alice", "store", action, {"namespace": everything})


async def test_alone_one_sees_the_whole_store_and_a_user_called_local_does_not() -> None:
    value: dict[str, Any] = {"namespace": ("teams", "red")}
    assert await decided("local", "store", "search", value, SOLE_PERSON)
    assert value == {"namespace": ("teams", "red")}
    assert not await decided("local", "store", "search", value)


async def test_a_kind_of_thing_that_nobody_thought_of_is_refused() -> None:
    handler: Any = auth.auth._global_handlers[-1]
    assert await handler(ctx=SimpleNamespace(), value={}) is False


@pytest.fixture
async def lost_thread() -> AsyncIterator[str]:
    """Give the id of a thread of alice's that the checkpoints remember and the server does not."""
    thread = str(uuid4())
    async with checkpointer() as saver:
        described = cast(CheckpointMetadata, {"source": "loop", "step": 0, "owner": "alice"})
        place = {"thread_id": thread, "checkpoint_ns": ""}
        await saver.aput({"configurable": place}, empty_checkpoint(), described, {})
        yield thread


async def test_a_lost_thread_is_its_owner_s_to_make_again(lost_thread: str) -> None:
    for action, more in (("create", {}), ("create_run", {"if_not_exists": "create"})):
        value: dict[str, Any] = {"thread_id": lost_thread, "metadata": {}, **more}
        assert await decided("alice", "threads", action, value) == {"owner": "alice"}
        with pytest.raises(Refused) as refused:
            await decided("bob", "threads", action, value)
        assert refused.value.status_code == 409
    fresh: dict[str, Any] = {"thread_id": str(uuid4()), "metadata": {}}
    assert await decided("bob", "threads", "create", fresh) == {"owner": "bob"}
