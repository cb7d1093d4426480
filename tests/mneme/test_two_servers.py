"""Two servers on one Qdrant and one Postgres, one of which is killed under load."""

import asyncio
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from mneme.api.operation import API_PATH, ONCE
from mneme.server.users import add_user
from tests.doubles.langgraph_server import Server, serving
from tests.doubles.postgres import PostgresServer
from tests.doubles.qdrant_server import KEY, QdrantServer
from tests.doubles.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
USERS = ("ann", "bob", "cid")
RULES = {"chatbot": "rules", "memory_agent": "rules"}


class Client:
    """Sends a user's requests to the servers in turn, again with the same key where one gives no answer."""

    def __init__(self, servers: list[Server], key: str) -> None:
        self._urls, self._key, self._sent = [each.url for each in servers], key, 0
        self._http = httpx.AsyncClient(headers={"x-api-key": key}, timeout=120)
        self.kept: list[str] = []
        self.said: list[str] = []

    async def go_on(self) -> None:
        """Write memories and send messages, for ever."""
        while True:
            text = f"Fact {uuid4().hex}."
            await self.post("memories", {"content": text})
            self.kept.append(text)
            given = {"messages": [{"role": "user", "content": f"I own a boat called {uuid4().hex}."}]}
            sent = await self.post("memories/remember", {**given, "memory_agent": "rules", "seconds": 0})
            self.said.append(sent[0]["message_id"])

    async def post(self, path: str, body: Any) -> Any:
        once = {ONCE: uuid4().hex}
        while True:
            self._sent += 1
            url = self._urls[self._sent % len(self._urls)]
            try:
                answer = await self._http.post(f"{url}{API_PATH}/{path}", json=body, headers=once)
            except httpx.TransportError:
                continue
            if answer.is_success:
                return answer.json()

    def only_the_last(self) -> None:
        """Ask the last of the servers alone from now on, which lives."""
        self._urls = self._urls[-1:]

    async def close(self) -> None:
        await self._http.aclose()

    async def get(self, path: str, **asked: Any) -> Any:
        """Ask the last of the servers."""
        answer = await self._http.get(f"{self._urls[-1]}{API_PATH}/{path}", params=asked)
        return answer.raise_for_status().json()


async def test_a_server_that_dies_takes_nothing_with_it(
    tmp_path: Path,
    own_qdrant: QdrantServer,
    own_postgres: PostgresServer,
) -> None:
    users = tmp_path / "users.json"
    keys = [add_user(users, name) for name in USERS]
    shared = {
        "MNEME_LEDGER": own_postgres.url,
        "MNEME_INDEX": own_qdrant.url,
        "MNEME_LEDGER_API_KEY": KEY,
        "MNEME_CHECKPOINTS": own_postgres.url,
        "MNEME_AUTH": str(users),
    }
    with ExitStack() as stack:
        dies, lives = (stack.enter_context(serving(tmp_path / name, **shared)) for name in ("a", "b"))
        clients = [Client([dies, lives], key) for key in keys]
        await _converse_on_both(dies, lives, keys)
        async with asyncio.TaskGroup() as running:
            tasks = [running.create_task(each.go_on()) for each in clients]
            await _all_wrote(clients)
            dies.kill()
            await _all_wrote(clients)
            for task in tasks:
                task.cancel()
        for client in clients:
            await _nothing_is_lost_and_nothing_doubled(client)
            await client.close()


async def _all_wrote(clients: list[Client]) -> None:
    before = [len(each.said) for each in clients]
    await until(lambda: all(len(each.said) > n + 2 for each, n in zip(clients, before, strict=True)))


async def _converse_on_both(one: Server, other: Server, keys: list[str]) -> None:
    """Go on with a thread on another server, which Postgres has; a stranger is refused."""
    thread, ann, bob = str(uuid4()), keys[0], keys[1]
    for server, text in ((one, "My sister lives in Oslo."), (other, "Thanks.")):
        state = await _say(server, ann, thread, text)
        assert state.is_success, state.text
    assert [each["content"] for each in state.json()["messages"]][::2] == [
        "My sister lives in Oslo.",
        "Thanks.",
    ]
    elsewhere = str(uuid4())
    await _say(one, ann, elsewhere, "I like tea.")
    assert (await _say(other, bob, elsewhere, "hello")).status_code == 409


async def _say(server: Server, key: str, thread: str, text: str) -> httpx.Response:
    body = {"assistant_id": "chatbot", "if_not_exists": "create", "context": RULES}
    async with httpx.AsyncClient(timeout=120) as client:
        return await client.post(
            f"{server.url}/threads/{thread}/runs/wait",
            json={**body, "input": {"messages": [{"role": "user", "content": text}]}},
            headers={"x-api-key": key},
        )


async def _nothing_is_lost_and_nothing_doubled(client: Client) -> None:
    client.only_the_last()
    # What only the dead server would have looked at is taken with the user's next message.
    await client.post(
        "memories/remember", {"messages": [{"role": "user", "content": "Thanks!"}], "seconds": 0}
    )
    while await client.get("inbox/count"):  # noqa: ASYNC110
        await asyncio.sleep(0.5)
    found = await client.get("memories", limit=1000)
    times = Counter(each["memory"]["content"] for each in found)
    assert {text: times[text] for text in client.kept} == dict.fromkeys(client.kept, 1)
    assert max(times.values()) == 1
    for message in client.said:
        assert (await client.get(f"inbox/{message}/outcome"))["route"] == "store"
