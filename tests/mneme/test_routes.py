"""Every route of the server's own description, asked with no key, a wrong key and another user's ids."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.doubles.langgraph_server import ROOT, Guarded, Server
from tests.doubles.talking import remembered, said
from tests.mneme.routes import (
    NOT_OFFERED,
    OPEN,
    RULES,
    WORD,
    WRONG_KEY,
    Ask,
    Ids,
    answers,
    belongings,
    is_refused,
)

GRAPHS = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
pytestmark = pytest.mark.xdist_group("server")


@dataclass
class Asked:
    """A server, the keys of two of its users, and what Ann has on it."""

    server: Server
    ann: str
    bob: str
    ids: Ids


@pytest.fixture(scope="module")
def asked(guarded: Guarded) -> Asked:
    ann, bob = map(guarded.key, ("ann", "bob"))
    return Asked(guarded.server, ann, bob, asyncio.run(belongings(guarded.server.url, ann)))


async def answered(asked: Asked, key: str) -> list[tuple[Ask, int, str]]:
    found = await answers(asked.server.url, key, asked.ids)
    assert len(found) > 60
    return found


@pytest.mark.parametrize("key", ["", WRONG_KEY], ids=["without a key", "with a wrong key"])
async def test_without_a_right_key_no_route_answers(asked: Asked, key: str) -> None:
    let_in = [
        (ask[:2], status)
        for ask, status, text in await answered(asked, key)
        if (ask[1] not in OPEN and not is_refused(ask[1], status)) or WORD in text
    ]
    assert let_in == []


async def test_another_user_s_things_are_not_there(asked: Asked) -> None:
    before = await hers(asked)
    found = await answered(asked, asked.bob)
    assert [(ask[:2], text) for ask, _, text in found if WORD in text] == []
    assert [
        (ask, status, text) for ask, status, text in found if status >= 500 and status != NOT_OFFERED
    ] == []
    assert await hers(asked) == before


async def hers(asked: Asked) -> Any:
    """Return all that Ann has, to see that it stays."""
    async with asked.server.client(asked.ann) as client:
        threads = await client.threads.search(limit=100)
        state: Any = await client.threads.get_state(asked.ids["thread_id"])
        names = [each["name"] for each in await client.assistants.search(limit=100)]
        crons = [each["cron_id"] for each in await client.crons.search()]
        left = sorted(each["thread_id"] for each in threads), state["values"], sorted(names), crons
        return json.loads(json.dumps([left, await remembered(client, "ann")]))


async def test_what_the_store_cannot_do_is_the_asker_s_fault(asked: Asked) -> None:
    searches: list[dict[str, Any]] = [
        {"namespace_prefix": ["users", "ann"], "filter": {"$nonsense": 1}},
        {"namespace_prefix": ["users", "ann"], "filter": {"a": {"$gt": [1]}}, "query": "x"},
        {"namespace_prefix": ["users", "ann"], "filter": {'a"b': 1}},
        {"namespace_prefix": ["users", "ann"], "limit": -1},
        {"namespace_prefix": ["users", "ann"], "offset": -1},
        {"namespace_prefix": ["users", "ann"], "query": "x\u0000y", "limit": 100000},
        {"namespace_prefix": ["users", "ann", *"abcdefghijklmnopqrstuvw"]},
        {"namespace_prefix": "users"},
    ]
    put = {"namespace": ["users", "ann", "notes"], "key": "k", "value": {"a": 1}}
    async with httpx.AsyncClient(
        base_url=asked.server.url, headers={"x-api-key": asked.ann}, timeout=None
    ) as client:
        found = [(await client.post("/store/items/search", json=each)) for each in searches]
        found.append(await client.put("/store/items", json={**put, "ttl": 5}))
        found.append(await client.put("/store/items", json={**put, "key": ""}))
    assert [(each.status_code, each.text) for each in found if each.status_code >= 500] == []
    assert 400 <= found[0].status_code < 500
    assert "MnemeError" not in asked.server.log.read_text()


async def test_no_graph_takes_the_key_for_another_user_s(asked: Asked) -> None:
    async with httpx.AsyncClient(
        base_url=asked.server.url, headers={"x-api-key": asked.bob}, timeout=None
    ) as client:
        for name in GRAPHS:
            run = {"assistant_id": name, "input": {}, "context": {"user": "ann"}}
            refused = await client.post("/runs/wait", json=run)
            assert (name, refused.status_code) == (name, 403)
            assert "The key is bob's, not ann's" in refused.json()["detail"]
        own = {"graph_id": "chatbot", "context": {"user": "ann"}}
        assistant = (await client.post("/assistants", json=own)).json()["assistant_id"]
        given = {"assistant_id": assistant, "input": {"messages": said("I have a cat.")}}
        failed = await client.post("/runs/wait", json=given)
    assert "The key is bob's, not ann's" in failed.text


async def test_more_than_may_wait_is_refused_before_it_runs(asked: Asked) -> None:
    run = {"assistant_id": "chatbot", "input": {"messages": said("I have a dog. " * 200)}, "context": RULES}
    async with httpx.AsyncClient(
        base_url=asked.server.url, headers={"x-api-key": asked.bob}, timeout=None
    ) as client:
        thread = (await client.post("/threads", json={})).json()["thread_id"]
        for path in ("/runs", "/runs/wait", f"/threads/{thread}/runs/stream", f"/threads/{thread}/runs"):
            refused = await client.post(path, json=run)
            assert (path, refused.status_code) == (path, 429)
            assert "may wait" in refused.json()["detail"]
        assert (await client.get(f"/threads/{thread}/runs")).json() == []
    asked.server.environment["MNEME_KEY"] = asked.bob
    chat = asked.server.mneme("chat", stdin=f"{'I have a dog. ' * 200}\n")
    assert "may wait" in chat.stderr
