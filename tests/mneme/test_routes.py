"""Every route of the server's own description, asked with no key, a wrong key and another user's ids."""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from mneme.server.entrance import MOST_WRONG
from mneme.server.users import add_user
from tests.doubles.langgraph_server import Server, serving
from tests.doubles.waiting import eventually
from tests.mneme.test_server import RULES, remembered, said

pytestmark = pytest.mark.xdist_group("server")

WORD = "Zanzibar"
"""What Ann said, and nobody else may read."""
OPEN = {"/ok", "/docs", "/openapi.json", "/"}
METHODS = ("get", "post", "put", "patch", "delete")
SECONDS = 20.0
NOT_OFFERED = 501
"""The server's answer for the size of a thread's checkpoints, which it knows of its own checkpointer only."""


@dataclass
class Guarded:
    """A server with two users, and what Ann has on it."""

    server: Server
    ann: str
    bob: str
    ids: dict[str, Any]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    home = tmp_path_factory.mktemp("guarded")
    ann, bob = (add_user(home / "users.json", name) for name in ("ann", "bob"))
    with serving(home / "home", MNEME_AUTH=str(home / "users.json"), MNEME_WAITING_BYTES="2000") as server:
        yield Guarded(server, ann, bob, asyncio.run(belongings(server, ann)))
    assert "BlockingError" not in server.log.read_text()


async def belongings(server: Server, ann: str) -> dict[str, Any]:
    """Let Ann chat, keep an assistant and a schedule, and return what a request may name of hers."""
    async with server.client(ann) as client:
        thread = (await client.threads.create(metadata={"place": WORD}))["thread_id"]
        spoken: Any = {"messages": said(f"I live in {WORD}.")}
        run = await client.runs.create(thread, "chatbot", input=spoken, context=RULES)
        await client.runs.join(thread, run["run_id"])
        await eventually(lambda: remembered(client, "ann"))
        (memory,) = (await client.store.search_items(["users", "ann", "memories"]))["items"]
        assistant = await client.assistants.create("chatbot", name=WORD)
        cron: Any = await client.crons.create("chatbot", schedule="0 0 1 1 *", input=spoken)
        (state,) = await client.threads.get_history(thread, limit=1)
    return {
        "thread_id": thread,
        "run_id": run["run_id"],
        "assistant_id": assistant["assistant_id"],
        "cron_id": cron["cron_id"],
        "checkpoint_id": state["checkpoint"]["checkpoint_id"],
        "namespace": ["users", "ann", "memories"],
        "namespace_prefix": ["users", "ann"],
        "prefix": ["users", "ann"],
        "key": memory["key"],
        "thread_ids": [thread],
        "run_ids": [run["run_id"]],
        "ids": [thread],
    }


Ask = tuple[str, str, dict[str, Any], Any]
"""A method, a path, its query and its body."""
OURS: list[Ask] = [
    ("post", f"/mneme/{kind}", {}, {"owner": owner, "arguments": arguments})
    for owner in ("ann", "ann/team")
    for kind, arguments in (
        ("memories/list", {}),
        ("memories/export_lines", {}),
        ("memories/forget_everything", {"reason": "a test", "actor": "bob", "threads": True}),
        ("threads/named", {"name": "memory/ann"}),
        ("threads/list", {}),
        ("threads/delete", {"name": "memory/ann"}),
        ("teams/list", {}),
        ("discussions/list", {}),
        ("sharing/pools", {}),
    )
]
"""Routes of the command line, which the description does not have."""
LINUX = sys.platform == "linux"
"""There, every address that begins with 127 is this machine's."""


def asks(described: dict[str, Any], ids: dict[str, Any]) -> Iterator[Ask]:
    """Yield requests for every route: with an empty body, and with Ann's ids wherever one can be named."""
    for path, methods in described["paths"].items():
        for method in (each for each in METHODS if each in methods):
            about = methods[method]
            query = {
                each["name"]: ids.get(each["name"], "1")
                for each in about.get("parameters", [])
                if each.get("in") == "query" and (each.get("required") or each["name"] in ids)
            }
            filled = path
            for name in (part.split("}")[0] for part in path.split("{")[1:]):
                filled = filled.replace(f"{{{name}}}", str(ids.get(name, "memories")))
            content = about.get("requestBody", {}).get("content", {}).get("application/json")
            yield method, filled, query, None if content is None else {}
            if content is not None:
                yield method, filled, query, filled_in(content.get("schema", {}), described, ids)


def filled_in(schema: dict[str, Any], described: dict[str, Any], ids: dict[str, Any]) -> Any:
    """Return a body of the schema's form that names Ann's things."""
    while "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return filled_in(schema[choice][0], described, ids)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    if kind == "array":
        return [filled_in(schema.get("items", {}), described, ids)]
    if kind != "object":
        return {"string": "ann", "integer": 1, "number": 1, "boolean": False}.get(str(kind))
    fields, needed = schema.get("properties", {}), schema.get("required", ())
    return {
        name: ids[name] if name in ids else filled_in(of, described, ids)
        for name, of in fields.items()
        if name in ids or name in needed
    }


async def answered(guarded: Guarded, key: str) -> list[tuple[Ask, int, str]]:
    """Ask everything with a key; return each request with its status and what was told.

    Every few requests come from another address, so that a wrong key is looked at each time.
    """
    headers = {"x-api-key": key} if key else {}
    async with httpx.AsyncClient() as anybody:
        described = (await anybody.get(f"{guarded.server.url}/openapi.json")).json()
    every = [*asks(described, guarded.ids), *OURS]
    assert len(every) > 60
    found = []
    for start in range(0, len(every), MOST_WRONG):
        address = f"127.0.0.{10 + start // MOST_WRONG + 100 * bool(key)}" if LINUX else None
        through = httpx.AsyncHTTPTransport(local_address=address)
        async with httpx.AsyncClient(
            base_url=guarded.server.url, timeout=SECONDS, headers=headers, transport=through
        ) as client:
            found += [(each, *await told(client, each)) for each in every[start : start + MOST_WRONG]]
    return found


async def told(client: httpx.AsyncClient, ask: Ask) -> tuple[int, str]:
    method, path, query, body = ask
    text = ""
    async with client.stream(method, path, params=query, json=body) as answer:
        try:
            async with asyncio.timeout(3):
                async for part in answer.aiter_text():
                    text += part
        except TimeoutError:
            text += " (the stream is still open)"
    return answer.status_code, text


@pytest.mark.parametrize(
    "key", ["", f"mneme-{'0' * 16}-{'0' * 64}"], ids=["without a key", "with a wrong key"]
)
async def test_without_a_right_key_no_route_answers(guarded: Guarded, key: str) -> None:
    let_in = [
        (ask[:2], status)
        for ask, status, text in await answered(guarded, key)
        if (ask[1] not in OPEN and not is_refused(ask[1], status)) or WORD in text
    ]
    assert let_in == []


def _refused(path: str, status: int) -> bool:
    return status in {401, 403, 429} or (status == 404 and path.startswith("/internal"))


def is_refused(path: str, status: int) -> bool:
    closed = path.startswith(("/internal", "/deploy"))
    return status == 404 if closed else status in {401, 403, 429}


async def test_another_user_s_things_are_not_there(guarded: Guarded) -> None:
    before = await hers(guarded)
    found = await answered(guarded, guarded.bob)
    assert [(ask[:2], text) for ask, _, text in found if WORD in text] == []
    assert [
        (ask, status, text) for ask, status, text in found if status >= 500 and status != NOT_OFFERED
    ] == []
    assert await hers(guarded) == before


async def hers(guarded: Guarded) -> Any:
    """Return all that Ann has, to see that it stays."""
    async with guarded.server.client(guarded.ann) as client:
        threads = await client.threads.search(limit=100)
        state: Any = await client.threads.get_state(guarded.ids["thread_id"])
        names = [each["name"] for each in await client.assistants.search(limit=100)]
        crons = [each["cron_id"] for each in await client.crons.search()]
        left = sorted(each["thread_id"] for each in threads), state["values"], sorted(names), crons
        return json.loads(json.dumps([left, await remembered(client, "ann")]))


async def test_what_the_store_cannot_do_is_the_asker_s_fault(guarded: Guarded) -> None:
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
    async with httpx.AsyncClient(base_url=guarded.server.url, headers={"x-api-key": guarded.ann}) as client:
        found = [(await client.post("/store/items/search", json=each)) for each in searches]
        found.append(await client.put("/store/items", json={**put, "ttl": 5}))
        found.append(await client.put("/store/items", json={**put, "key": ""}))
    assert [(each.status_code, each.text) for each in found if each.status_code >= 500] == []
    assert 400 <= found[0].status_code < 500
    assert "MnemeError" not in guarded.server.log.read_text()


async def test_more_than_may_wait_is_refused_before_it_runs(guarded: Guarded) -> None:
    run = {"assistant_id": "chatbot", "input": {"messages": said("I have a dog. " * 200)}, "context": RULES}
    async with httpx.AsyncClient(base_url=guarded.server.url, headers={"x-api-key": guarded.bob}) as client:
        thread = (await client.post("/threads", json={})).json()["thread_id"]
        for path in ("/runs", "/runs/wait", f"/threads/{thread}/runs/stream", f"/threads/{thread}/runs"):
            refused = await client.post(path, json=run)
            assert (path, refused.status_code) == (path, 429)
            assert "may wait" in refused.json()["detail"]
        assert (await client.get(f"/threads/{thread}/runs")).json() == []
    guarded.server.environment["MNEME_KEY"] = guarded.bob
    chat = guarded.server.mneme("chat", stdin=f"{'I have a dog. ' * 200}\n")
    assert "may wait" in chat.stderr
