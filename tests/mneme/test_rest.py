"""The routes of all operations: held to their own description, and what is said of them beside it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import hypothesis
import pytest
import requests
import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance
from starlette.types import Receive, Scope, Send

from mneme.api.cards import Cards
from mneme.api.discussions import TeamDiscussions
from mneme.api.inbox import Messages
from mneme.api.memories import Memories
from mneme.api.operation import API_PATH, ONCE, PROBLEM_TYPE
from mneme.api.pools import Pools
from mneme.api.server_state import ServerState
from mneme.client.remote import Remote
from mneme.core.errors import BadInput, MnemeError, NotFound
from mneme.core.settings import settings
from mneme.server import completions, opened
from mneme.server.routes import SERVED_OPERATIONS, api_of
from mneme.stores import answers
from mneme.stores.answers import drop_old_answers
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.shelf import Shelf
from tests.doubles.ledger_files import files_with

API = api_of(ServerState(), None, lambda _: nullcontext())
"""All operations, without the LangGraph server and its runs."""
WORD = "Zanzibarrow"


async def local(scope: Scope, receive: Receive, send: Send) -> None:
    """Ask the routes from this machine; their store is opened at the first request."""
    headers = [each for each in scope["headers"] if each[0] != b"host"]
    here = {"client": ("127.0.0.1", 1), "headers": [*headers, (b"host", b"localhost")]}
    await API({**scope, **here}, receive, send)


@pytest.fixture(autouse=True)
def own_store(own_home: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give each test a server's ledger of its own."""
    monkeypatch.setattr(opened, "_opened", [])
    yield
    asyncio.run(ended())


async def ended() -> None:
    """End the server, as far as its ledger knows."""
    while opened._opened:
        await opened._opened.pop().ledger.close()


@asynccontextmanager
async def asking(**more: Any) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(local)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", **more) as client:
        yield client


async def post(client: httpx.AsyncClient, path: str, key: str = "", **body: Any) -> httpx.Response:
    headers = {ONCE: key} if key else {}
    return await client.post(f"{API_PATH}/{path}", json=body, headers=headers)


@pytest.mark.filterwarnings(
    "ignore::hypothesis.errors.HypothesisWarning"
)  # schemathesis has formats of its own
class TestDescription:
    """What is sent and answered is what the description says."""

    @pytest.mark.parametrize("kind", [each.__name__ for each in SERVED_OPERATIONS])
    def test_every_answer_is_as_described(self, kind: str) -> None:
        for operation in operations(tag=kind):
            try_out(operation, schemathesis.GenerationMode.POSITIVE)

    @pytest.mark.long
    def test_what_is_not_allowed_is_refused(self) -> None:
        """A few are enough: the same code reads all, and to think of wrong requests takes seconds."""
        for name in ("memories_recall", "memories_list"):
            for operation in operations(operation_id=name):
                try_out(operation, schemathesis.GenerationMode.NEGATIVE)


def operations(**wanted: str) -> list[Any]:
    schema: Any = schemathesis.openapi.from_dict(API.openapi())
    found = [each.ok() for each in schema.include(**wanted).get_all_operations()]
    assert found
    return found


def try_out(operation: Any, mode: schemathesis.GenerationMode, examples: int = 5) -> None:
    """Send a few requests that its description allows, or that it does not.

    What it allows may be refused all the same, as an id that nothing has, or lines that are no export.
    """

    @hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        derandomize=True,
        suppress_health_check=[*hypothesis.HealthCheck],
    )
    @hypothesis.given(case=operation.as_strategy(generation_mode=mode))
    def answered(case: Any) -> None:
        case.validate_response(asyncio.run(sent(case)), excluded_checks=[positive_data_acceptance])

    answered()


async def sent(case: Any) -> httpx.Response:
    """Send a request as it was made up; the client that schemathesis would take leaves things open."""
    made = requests.Request(**case.as_transport_kwargs("http://localhost")).prepare()
    headers = [(name.encode(), str(value).encode("latin-1")) for name, value in made.headers.items()]
    async with asking() as client:
        body: Any = made.body
        return await client.request(str(made.method), str(made.url), headers=headers, content=body)


class TestOnce:
    """Requests with an idempotency key."""

    async def test_a_repeated_request_is_done_once_and_answered_alike(self) -> None:
        async with asking() as client:
            first = await post(client, "memories", "k", content="Ann has a dog.")
            await ended()  # and begun again
            again = await post(client, "memories", "k", content="Ann has a dog.")
            assert (again.status_code, again.content) == (200, first.content)
            assert again.headers["idempotency-replayed"] == "true"
            another = await post(client, "memories", "k", content="Ann has a cat.")
            assert (another.status_code, another.headers["content-type"]) == (422, PROBLEM_TYPE)
            of_bob = await client.post(
                f"{API_PATH}/memories?user=bob", json={"content": "A."}, headers={ONCE: "k"}
            )
            assert of_bob.status_code == 200, "another owner's keys are others"
            assert len((await client.get(f"{API_PATH}/memories")).json()) == 1
            undone = [(await post(client, "memories/undo", "u")).json()["live"] for _ in range(2)]
            assert undone == [False, False]

    async def test_what_is_refused_can_be_tried_again(self) -> None:
        async with asking() as client:
            key = (await post(client, "memories", content="Ann has a dog.")).json()["key"]
            edit = {"content": "Ann has a cat.", "expected_version": 2}
            assert (await post(client, f"memories/{key}/update", "k", **edit)).status_code == 409
            await post(client, f"memories/{key}/update", content="Ann has a cow.")
            edited = await post(client, f"memories/{key}/update", "k", **edit)
            assert edited.json()["version"] == 3
            assert (await post(client, f"memories/{key}/update", "k", **edit)).json() == edited.json()

    async def test_of_two_at_once_one_is_done(self) -> None:
        async with asking() as client:
            both = [post(client, "memories", "k", content="Ann has a dog.") for _ in range(2)]
            statuses = sorted([each.status_code for each in await asyncio.gather(*both)])
            assert statuses[0] == 200 and statuses[1] in {200, 409}
            assert len((await client.get(f"{API_PATH}/memories")).json()) == 1

    async def test_a_kept_answer_holds_no_forgotten_word(self) -> None:
        async with asking() as client:
            added = await post(client, "memories", "k", content=f"Emily lives in {WORD}.")
            path = f"memories/{added.json()['key']}/forget"
            erased = await post(client, path, "f")
            assert files_with(settings().home, WORD) == []
            assert (await post(client, path, "f")).json() == erased.json()
            again = await post(client, "memories", "k", content=f"Emily lives in {WORD}.")
            assert again.status_code == 409, "it is not done again"
            await post(client, "memories", "l", content=f"Emily lives in {WORD}.")
            assert files_with(settings().home, WORD)
            gone = await post(client, "memories/forget-everything", "e")
            assert (await post(client, "memories/forget-everything", "e")).json() == gone.json()
            assert files_with(settings().home, WORD) == []
            assert gone.json()["records"] == 1, "kept answers are none of a user's records"

    async def test_answers_are_kept_for_a_day(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async with asking() as client:
            await post(client, "memories", "k", content=f"Emily lives in {WORD}.")
            ledger = (await opened.store()).ledger
            assert await drop_old_answers(ledger) == 0
            monkeypatch.setattr(answers, "ANSWER_LIFETIME", timedelta(0))
            assert await drop_old_answers(ledger) == 1
            assert await ledger.namespaces(("answers",), include_retired=True) == []
            assert await ledger.forgotten() == [], "nor is there a note of it"

    async def test_an_answer_given_while_something_is_forgotten_keeps_no_text(self) -> None:
        async with asking() as client:
            await post(client, "memories", content="Ann has a dog.")
        ledger: Ledger = (await opened.store()).ledger
        memories = Memories(ledger, "local")
        claim = await memories.answers.claim("k", b"")
        assert isinstance(claim, answers.Claim)
        await memories.forget((await memories.list())[0].key)
        await memories.answers.keep(claim, answers.Answer(200, WORD), erases=False)
        assert files_with(settings().home, WORD) == []

    async def test_the_client_repeats_what_it_does_not_know_of(self) -> None:
        async with asking(event_hooks={"response": [Lost()]}) as client:
            memories: Any = Remote(client, Memories, "ann")
            await memories.add("Ann has a dog.")
            assert len(await memories.list()) == 1


class Lost:
    """A connection that ends before the first answer to a change has arrived."""

    def __init__(self) -> None:
        self._is_lost = False

    async def __call__(self, answer: httpx.Response) -> None:
        if answer.request.method == "POST" and not self._is_lost:
            self._is_lost = True
            raise httpx.ReadError("lost", request=answer.request)


async def test_what_was_said_is_taken_as_the_library_takes_it_and_deleted_as_others_delete() -> None:
    async with asking() as client:
        for said in ("I sail.", ["I sail.", {"role": "assistant", "content": "Do you?"}]):
            answer = await post(client, "memories/remember", "", messages=said, seconds=0)
            assert [each["status"] for each in answer.json()] == ["waiting"], answer.text
        for wrong in (5, [], [5], "x" * 40_000):
            answer = await post(client, "memories/remember", "", messages=wrong)
            assert (answer.status_code, ": :" in answer.text) == (400, False)
        key = (await post(client, "memories", "", content="Ann sails.")).json()["key"]
        place = f"{API_PATH}/memories/{key}"
        assert (await client.delete(place, params={"user": "bob"})).status_code == 404
        gone = await client.delete(place, params={"reason": "wrong"}, headers={ONCE: "d"})
        assert (gone.json()["records"], gone.json()["reason"]) == (1, "wrong")
        assert (
            await client.delete(place, params={"reason": "wrong"}, headers={ONCE: "d"})
        ).json() == gone.json()
        assert (await client.get(f"{API_PATH}/memories")).json() == []


async def test_times_that_cannot_be_are_refused_and_months_are_days() -> None:
    async with asking() as client:
        for since, until in (("2027-13", ""), ("2027-02-31", ""), ("2028", "2027")):
            answer = await post(client, "memories", "", content="Rent is 900.", since=since, until=until)
            assert answer.status_code == 400 and (since in answer.text), answer.text
        assert (await post(client, "memories", "", content="Rent is 900.", until="2027-02")).is_success
        for at, count in (("2027-02", 1), ("2027-03", 0), ("2028", 0)):
            found = await client.get(f"{API_PATH}/memories", params={"at": at})
            assert len(found.json()) == count, found.text
        assert len((await client.get(f"{API_PATH}/memories", params={"as_of": "2100"})).json()) == 1
        assert (await client.get(f"{API_PATH}/memories", params={"as_of": "2100-13"})).status_code == 400


async def test_a_parameter_of_an_earlier_version_is_refused_with_its_present_name() -> None:
    async with asking() as client:
        answer = await post(client, "pools/poems/retriever/rollback", to=0)
        assert (answer.status_code, answer.json()["detail"]) == (400, "`to` is `to_version` now.")
        pools: Any = Pools((await opened.store()).ledger, "local")
        for operations in (pools, Remote(client, Pools, "local")):
            with pytest.raises(BadInput, match="`to` is `to_version` now"):
                await operations.rollback("poems", to=0)


async def test_a_chat_that_no_model_answers_is_kept_once_also_where_it_is_sent_again_after_the_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
            return at

    monkeypatch.setenv("MNEME_UPSTREAM", "http://127.0.0.1:9/v1")
    settings.cache_clear()
    monkeypatch.setattr(completions, "datetime", Clock)
    asked = {"model": "any", "messages": [{"role": "user", "content": "I live in Oslo."}]}
    async with asking() as client:
        for minute, kept in ((0, 1), (1, 1), (90, 2)):
            at = datetime(2026, 11, 20, 9, 59, 50, tzinfo=UTC) + timedelta(minutes=minute)
            assert (await client.post("/v1/chat/completions", json=asked)).status_code == 503
            letters = (await client.get(f"{API_PATH}/inbox")).json()
            assert len(letters) == kept, "a conversation of another hour is another one"


async def test_pages_are_linked() -> None:
    async with asking() as client:
        for number in range(5):
            await post(client, "memories", content=f"Ann has {number} dogs.")
        path, found = httpx.URL(f"http://localhost{API_PATH}/memories?user=local&limit=2"), []
        while True:
            page = await client.get(path)
            found += [each["memory"]["content"] for each in page.json()]
            if "next" not in page.links:
                break
            path = path.join(page.links["next"]["url"])
        assert found == [f"Ann has {number} dogs." for number in range(5)]
        before = await client.get(path.join(page.links["prev"]["url"]))
        assert [each["memory"]["content"] for each in before.json()] == found[2:4]


NAMES = ["a/b", "/", "..", ".", "a/../b", "%2F", "a b?c#d", "Zoë 東京", "", " ", "\x00", "\ud800", "x" * 300]


@pytest.mark.parametrize("name", NAMES, ids=ascii)
async def test_any_name_in_a_path_fails_as_it_does_without_a_server(name: str) -> None:
    """Where it does not fail, it answers the same."""
    async with asking() as client:
        ledger = (await opened.store()).ledger
        for kind, operation, more in (
            (Memories, "show", ()),
            (Memories, "history", ()),
            (Messages, "get", ()),
            (Messages, "outcome", ()),
            (Cards, "get", ()),
            (Pools, "pairs", ()),
            (Pools, "rubric", ()),
            (TeamDiscussions, "get", ()),
            (TeamDiscussions, "memory_now", (name,)),
        ):
            there: Any = Remote(client, kind, "ann")
            here: Any = kind(ledger, "ann")
            assert await outcome(there, operation, name, *more) == await outcome(here, operation, name, *more)


async def outcome(operations: Any, operation: str, *names: str) -> Any:
    """Return a result, or the class of its error, which must be one of two."""
    try:
        return operation, await getattr(operations, operation)(*names)
    except MnemeError as error:
        assert type(error) in (BadInput, NotFound), error
        return operation, type(error)


class TestProblems:
    """What goes wrong is told in one form."""

    async def test_what_is_unexpected_is_not_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError(WORD)

        async with asking() as client:
            await post(client, "memories", content="Ann has a dog.")
            monkeypatch.setattr(Shelf, "insert", broken)
            answer = await post(client, "memories", content="Ann has a cat.")
            assert (answer.status_code, answer.headers["content-type"]) == (500, PROBLEM_TYPE)
            assert WORD not in answer.text and "ZeroDivision" not in answer.text

    async def test_below_our_path_everything_is_a_problem(self) -> None:
        async with asking() as client:
            asked = {
                ("GET", f"{API_PATH}/nonsense"): 404,
                ("GET", f"{API_PATH}/memories/a/b"): 404,
                ("DELETE", f"{API_PATH}/memories"): 405,
                ("POST", f"{API_PATH}/memories"): 400,
                ("GET", f"{API_PATH}/memories?nonsense=1"): 400,
            }
            for (method, path), status in asked.items():
                answer = await client.request(method, path, content=b"\xff{")
                assert (path, answer.status_code) == (path, status)
                assert answer.headers["content-type"] == PROBLEM_TYPE
                assert answer.json()["status"] == status
            assert (await client.delete(f"{API_PATH}/memories")).headers["allow"] == "GET, POST"
            assert (await client.get("/elsewhere")).json() == {"detail": "Not Found"}

    async def test_the_entrance_speaks_so_too(self) -> None:
        headers = {"origin": "https://example.com"}
        async with asking(headers=headers) as client:
            answer = await client.get(f"{API_PATH}/memories")
            assert (answer.status_code, answer.headers["content-type"]) == (403, PROBLEM_TYPE)
            assert answer.headers["access-control-allow-origin"] == "*"
            assert answer.json()["type"] == "urn:mneme:Forbidden"
            assert "type" not in (await client.get("/threads")).json()
