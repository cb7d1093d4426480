"""What is refused before the routes: too many wrong keys, and strangers on routes without a guard."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from mneme.core.settings import settings
from mneme.models.asking.gate import asking_for
from mneme.server.entrance import MAX_BODY, MAX_WRONG_KEYS, WRONG_KEY_SECONDS, Entrance, WrongKeys
from mneme.server.users import add_user

TOO_LARGE = '{{"detail":"A request may have {} MB here. Send it in parts."}}'
WRONG = f"mneme-{'0' * 16}-{'0' * 64}"


class Time:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Time:
    return Time()


def entering(clock: Time, address: str = "192.0.2.7") -> Any:
    """Return how to ask, from an address, with a key: it returns the answer."""
    routes = [Route(each, told) for each in ("/info", "/internal/truncate", "/ok")]
    app = Entrance(Starlette(routes=routes), WrongKeys(clock))

    async def ask(path: str, key: str = "", address: str = address) -> httpx.Response:
        through = httpx.ASGITransport(app, client=(address, 5000))
        headers = {"x-api-key": key} if key else {}
        async with httpx.AsyncClient(transport=through, base_url="http://mneme", headers=headers) as client:
            return await client.get(path)

    return ask


async def told(_: Request) -> Response:
    return PlainTextResponse("told")


async def test_wrong_keys_are_looked_at_a_few_times_in_a_window(users: Path, clock: Time) -> None:
    alice, bob, ask = add_user(users, "alice"), add_user(users, "bob"), entering(clock)
    guess = alice[:-1] + ("0" if alice[-1] != "0" else "1")
    for _ in range(MAX_WRONG_KEYS):
        assert (await ask("/info", guess)).status_code == 401
        clock.now += 1
    refused = await ask("/info", guess)
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) == WRONG_KEY_SECONDS - MAX_WRONG_KEYS
    assert refused.json()["type"] == "urn:mneme:TooMany"
    assert (await ask("/info", alice)).status_code == 429, "not even the right one is looked at"
    assert (await ask("/info", bob)).status_code == 200, "another user's is"
    assert (await ask("/info", alice, "192.0.2.8")).status_code == 200, "and one from elsewhere"
    clock.now = WRONG_KEY_SECONDS
    assert (await ask("/info", alice)).status_code == 200


async def test_keys_of_nobody_keep_no_user_out(users: Path, clock: Time) -> None:
    alice, ask = add_user(users, "alice"), entering(clock)
    for number in range(MAX_WRONG_KEYS + 1):
        answer = await ask("/info", f"{WRONG[:6]}{number:016x}{WRONG[22:]}" if number % 2 else "nonsense")
    assert answer.status_code == 429
    assert (await ask("/info", alice)).status_code == 200


async def test_what_the_server_does_not_guard_asks_for_a_key(users: Path, clock: Time) -> None:
    alice, ask = add_user(users, "alice"), entering(clock)
    assert [(await ask(path)).status_code for path in ("/info", "/info/", "/ok")] == [401, 401, 200]
    assert (await ask("/info", alice)).text == "told"
    for path in ("/internal/truncate", "/ui", "/ui/a", "/ui/a/b"):
        assert (await ask(path, alice)).status_code == 404


async def test_whose_request_it_is_is_known_while_it_is_answered(users: Path) -> None:
    async def whose(_: Request) -> Response:
        return PlainTextResponse(asking_for.get())

    alice = add_user(users, "alice")
    through = httpx.ASGITransport(Entrance(Starlette(routes=[Route("/store/items", whose)])))
    async with httpx.AsyncClient(transport=through, base_url="http://mneme") as client:
        assert (await client.get("/store/items", headers={"x-api-key": alice})).text == "alice"


async def test_without_users_only_this_machine_is_answered(clock: Time) -> None:
    settings.cache_clear()
    ask = entering(clock)
    assert (await ask("/info")).status_code == 403
    assert (await ask("/info", address="127.0.0.1")).status_code == 403, "by another name of the host"
    assert (await ask("/ok")).status_code == 200
    assert (await ask("/internal/truncate")).status_code == 404


@pytest.mark.parametrize("is_announced", [True, False])
@pytest.mark.parametrize(("size", "status"), [(MAX_BODY, 200), (MAX_BODY + 1, 413)])
async def test_a_body_is_bounded_as_announced_or_as_it_comes(
    size: int, status: int, *, is_announced: bool
) -> None:
    async def read(request: Request) -> Response:
        return PlainTextResponse(str(len(await request.body())))

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, size, 1 << 20):
            yield b"a" * min(1 << 20, size - start)

    app = Entrance(Starlette(routes=[Route("/info", read, methods=["POST"])]))
    through = httpx.ASGITransport(app, client=("127.0.0.1", 5000))
    async with httpx.AsyncClient(transport=through, base_url="http://127.0.0.1") as client:
        headers = {"content-length": str(size)} if is_announced else {}
        answer = await client.post("/info", content=pieces(), headers=headers)
    assert answer.status_code == status
    assert answer.text == (str(size) if status == 200 else TOO_LARGE.format(16))


@pytest.mark.parametrize(("path", "room"), [("/mneme/mcp", 1), ("/mneme/v1/memories", 16)])
async def test_a_body_that_is_too_large_is_told_how_large_it_may_be(path: str, room: int) -> None:
    through = httpx.ASGITransport(Entrance(Starlette()), client=("127.0.0.1", 5000))
    async with httpx.AsyncClient(transport=through, base_url="http://127.0.0.1") as client:
        answer = await client.post(path, content=b"a" * ((room << 20) + 1))
    told = answer.json()
    assert f"A request may have {room} MB here." in told["detail"]
    assert "Send it in parts." in (told["hint"] if "hint" in told else told["detail"])
