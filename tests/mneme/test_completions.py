"""Chat completions with a memory, through a real `mneme serve` in front of a model server."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from mneme.api.operation import API_PATH
from mneme.server.users import add_user
from tests.doubles.command_line import failed, run_mneme
from tests.doubles.own_server import ChatServer, OwnServer, chat, chat_server, own_server, user

OSLO = "I live in Oslo."


@pytest.fixture(scope="module")
def model() -> Iterator[ChatServer]:
    with chat_server() as running:
        yield running


@pytest.fixture
def served(tmp_path: Path, model: ChatServer) -> Iterator[OwnServer]:
    with own_server(tmp_path, MNEME_UPSTREAM=model.url) as server:
        yield server


def test_what_is_said_in_one_chat_is_known_in_the_next(served: OwnServer, model: ChatServer) -> None:
    first = chat(served, user(OSLO))
    assert first.json()["choices"][0]["message"]["content"] == model.reply
    assert first.headers["x-mneme-recalled"] == "0"
    assert model.asked[-1]["messages"] == [user(OSLO)], "nothing is added where nothing is known"
    assert served.memories() == [OSLO]
    second = chat(served, {"role": "system", "content": "Be brief."}, user("Where do I live?"))
    assert second.headers["x-mneme-recalled"] == "1"
    assert model.shown().startswith("Be brief.\n\nWhat is remembered")
    assert OSLO in model.shown()


def test_a_stream_and_tools_are_passed_through_and_a_repetition_is_remembered_once(
    served: OwnServer, model: ChatServer
) -> None:
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    said = {"role": "user", "content": [{"type": "text", "text": "I have a dog."}, image]}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]}
    found = {"role": "tool", "tool_call_id": "1", "content": "I live in Paris."}
    answer = chat(served, said, tools=tools, stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    lines = [each.removeprefix("data: ") for each in answer.text.splitlines() if each]
    parts = [json.loads(each)["choices"][0]["delta"]["content"] for each in lines[:-1]]
    assert ("".join(parts), lines[-1]) == (model.reply, "[DONE]")
    assert model.asked[-1]["tools"] == tools
    assert model.asked[-1]["messages"][-1] == said
    assert len(served.memories()) == 1
    chat(served, said, call, found, tools=tools)
    assert [each["role"] for each in model.asked[-1]["messages"]][-3:] == ["user", "assistant", "tool"]
    assert len(served.memories()) == 1, "the same message, and never what a tool returned"


def test_a_header_switches_memory_off_and_chores_of_a_chat_page_are_nobody_s_words(
    served: OwnServer, model: ChatServer
) -> None:
    chat(served, user(OSLO))
    assert served.memories() == [OSLO]
    for headers, shown in (({"x-mneme-memory": "off"}, "0"), ({"x-mneme-memory": "read"}, "1")):
        answer = chat(served, user("I live in Oslo no more, I live in Rome."), headers=headers)
        assert answer.headers["x-mneme-recalled"] == shown
    chat(served, user("### Task:\nWrite a title for: I live in Oslo."))
    assert "remembered" not in model.shown()
    assert served.memories() == [OSLO]
    chat(served, user("I have a cat."), headers={"x-mneme-user": "bob"})
    assert served.memories() == [OSLO]


def test_what_cannot_be_answered_says_so_and_what_was_said_is_kept(tmp_path: Path) -> None:
    with own_server(tmp_path, MNEME_UPSTREAM="http://127.0.0.1:9/v1") as server:
        refused = chat(server, user(OSLO))
        assert refused.status_code == 503
        assert "MNEME_UPSTREAM" in refused.json()["error"]["message"]
        assert server.memories() == [OSLO]
        broken = rb'{"messages": [{"role": "user", "content": "I like \ud800 tea."}]}'
        for body in (b"{", b"[]", b'{"messages": []}', b'{"messages": ["hi"]}', broken, b"[" * 100_000):
            wrong = httpx.post(f"{server.url}/v1/chat/completions", content=body)
            assert (wrong.status_code, wrong.json()["error"]["type"]) == (400, "invalid_request_error")
        assert httpx.get(f"{server.url}/v1/models").status_code == 503


@pytest.mark.parametrize(
    ("wrong", "told"),
    [({"MNEME_UPSTREAM": "nonsense"}, "MNEME_UPSTREAM"), ({"MNEME_ROLES": "gone.yaml"}, "roles")],
)
def test_a_server_that_cannot_start_says_why_in_a_line(
    tmp_path: Path, wrong: dict[str, str], told: str
) -> None:
    environment = {**os.environ, "MNEME_HOME": str(tmp_path), **wrong}
    failed(run_mneme(("serve", "--port", "0"), environment), told)


def test_a_users_file_that_is_not_there_lets_nobody_in_and_is_named(tmp_path: Path) -> None:
    users = tmp_path / "nofile.json"
    key = {"x-api-key": add_user(users, "ann")}
    users.unlink()
    with own_server(tmp_path / "home", MNEME_AUTH=str(users)) as server:
        assert httpx.get(f"{server.url}{API_PATH}/memories").status_code == 401
        assert httpx.get(f"{server.url}{API_PATH}/memories", headers=key).status_code == 403
        complaints = server.running.complaints()
    assert "every request is refused" in complaints and "nofile.json" in complaints


def test_a_server_that_listens_for_others_without_users_says_what_they_get(tmp_path: Path) -> None:
    with own_server(tmp_path, "--host", "0.0.0.0") as server:
        complaints = server.running.complaints()
    assert "Other machines get 403" in complaints and "mneme users add" in complaints


def test_with_keys_each_user_has_a_memory_and_nobody_the_provider_s_key(
    tmp_path: Path, model: ChatServer
) -> None:
    users = tmp_path / "users.json"
    ann, bob = (add_user(users, name) for name in ("ann", "bob"))
    given = {"MNEME_AUTH": str(users), "MNEME_UPSTREAM": model.url, "MNEME_UPSTREAM_KEY": "sk-provider"}
    with own_server(tmp_path / "home", **given) as server:
        assert chat(server, user(OSLO)).status_code == 401
        keys = {name: {"authorization": f"Bearer {key}"} for name, key in (("ann", ann), ("bob", bob))}
        chat(server, user(OSLO), headers=keys["ann"])
        assert model.keys[-1] == "Bearer sk-provider"
        of_bob = chat(server, user("Where do I live?"), headers=keys["bob"])
        assert of_bob.headers["x-mneme-recalled"] == "0"
        assert chat(server, user("Hi"), headers={**keys["bob"], "x-mneme-user": "ann"}).status_code == 403
        failed(server.mneme("memories", "list"), "has users, and no key is set")
        server.environment["MNEME_KEY"] = bob
        added = server.mneme("add", "I own a harp.", "--json")
        key = json.loads(added.stdout)["key"]
        written = json.loads(server.mneme("memories", "history", key, "--json").stdout)
        assert written["change"]["actor"] == "bob", "the key says who wrote it, too"
        assert "harp" in server.mneme("memories", "list").stdout
        failed(server.mneme("remember", "I own a harp."), "runs no workflows for commands")
        server.environment["MNEME_KEY"] = ann
        assert "harp" not in server.mneme("memories", "list").stdout, "the key says whose memory it is"
    failed(server.mneme("add", "I own a harp."), "no server runs that knows whose key it is")
