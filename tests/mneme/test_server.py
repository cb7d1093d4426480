"""A real `langgraph dev`: what a client of the server sees, and what survives its death."""

import asyncio
import json
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from statistics import mean, median
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError

from mneme.api.operation import API_PATH, PROBLEM_TYPE
from mneme.client.workflows import GraphRun, ServerGraph, Workflows
from mneme.core.errors import Conflict
from mneme.prompts.chat.chatbot import reply
from mneme.prompts.chat.memory_agent.comparing import compare_memories
from mneme.prompts.chat.memory_agent.reading import read_message
from mneme.prompts.chat.memory_agent.rewriting import rewrite_memory
from mneme.server.auth import MAX_BUSY
from mneme.server.users import add_user
from mneme.stores.access import known_id
from tests.doubles.command_line import failed
from tests.doubles.langgraph_server import ROOT, Server, serving
from tests.doubles.ollama import Answer, Json, OllamaDouble, Reply, by_rules
from tests.doubles.talking import RULES, remembered, said, say
from tests.doubles.waiting import eventually


@pytest.mark.xdist_group("server")
class TestAlone:
    """One person, one machine."""

    async def test_every_graph_shows_its_schemas(self, client: LangGraphClient) -> None:
        graphs = set(json.loads((ROOT / "langgraph.json").read_text())["graphs"])
        assert {each["graph_id"] for each in await client.assistants.search(limit=100)} == graphs
        for graph in graphs:
            (assistant,) = await client.assistants.search(graph_id=graph)
            schemas: Any = await client.assistants.get_schemas(assistant["assistant_id"])
            context = schemas["context_schema"]["properties"]
            assert all(field["description"] for field in context.values())
            assert schemas["input_schema"]["properties"]

    async def test_a_reply_streams_and_is_remembered_for_other_threads(self, client: LangGraphClient) -> None:
        user = uuid4().hex
        await say(client, "My sister Emily lives in Portland.", user=user)
        await eventually(lambda: remembered(client, user))
        _, pieces = await say(client, "Where does my sister Emily live?", user=user)

        assert len(pieces) > 3
        assert "Portland" in "".join(pieces)

    async def test_a_new_run_begins_at_once(self, server: Server, client: LangGraphClient) -> None:
        for _ in range(5):
            await say(client, "Good morning.", user=uuid4().hex)
        log = re.sub(r"\x1b\[[0-9;]*m", "", await asyncio.to_thread(server.log.read_text))
        waited = re.findall(r"Starting background run .*graph_id=chatbot .*run_queue_ms=(\d+)", log)[-5:]
        assert median(map(int, waited)) < 400, "without being woken, the queue takes 500 ms to a second"

    async def test_the_memory_agent_runs_by_itself(self, client: LangGraphClient) -> None:
        context = {**MEMORY, "user": uuid4().hex}
        outcome: Any = await client.runs.wait(
            None, "memory_agent", input={"message": "I live in Austin."}, context=context
        )
        assert [each["event"] for each in outcome["operations"]] == ["insert"]

    async def test_a_bad_context_is_refused(self, client: LangGraphClient) -> None:
        told: Any = await client.runs.wait(
            None,
            "memory_agent",
            input={"message": "I live in Austin."},
            context={**MEMORY, "memory_agent": "nobody"},
            raise_error=False,
        )
        said = "'nobody' names no model and no responder."
        assert told["__error__"] == {"error": "BadInput", "message": said}

    async def test_a_rollback_of_a_running_turn_leaves_the_server_well(self, client: LangGraphClient) -> None:
        user = uuid4().hex
        thread = (await client.threads.create())["thread_id"]
        for text in ("I live in Austin.", "I live in Denver."):
            await client.runs.create(
                thread,
                "chatbot",
                input={"messages": said(text)},
                context={**RULES, "user": user},
                multitask_strategy="rollback",
            )
        await eventually(lambda: remembered(client, user))
        assert [run["status"] for run in await client.runs.list(thread)] == ["success"]

    async def test_the_command_line_goes_through_the_server(self, server: Server) -> None:
        user = uuid4().hex
        chat = server.mneme("chat", "--user", user, "--json", stdin="I live in Austin.\nI moved to Denver.\n")
        assert chat.returncode == 0, chat.stderr
        listed = server.mneme("memories", "list", "--user", user, "--json")
        assert [json.loads(line)["memory"]["content"] for line in listed.stdout.splitlines()]
        assert "Denver" in listed.stdout
        assert "Denver" in server.mneme("memories", "search", "Denver", "--user", user).stdout
        key = json.loads(listed.stdout.splitlines()[0])["key"]
        assert server.mneme("memories", "history", key[:8], "--user", user).returncode == 0
        missing = server.mneme("memories", "show", "zz", "--user", user)
        assert missing.returncode == 1
        assert missing.stderr.startswith(f"mneme: {user} has no memory zz."), missing.stderr
        chat = server.mneme("chat", "--user", user, stdin="/history zz\n/memories\n")
        assert "has no memory zz" in chat.stderr and "Denver" in chat.stdout, "the chat goes on"
        unheard_of = server.mneme("memories", "diff", key, "1", "99", "--user", user)
        assert "`mneme memories history" in unheard_of.stderr
        doctor = server.mneme("doctor").stdout.replace("\n", " ")
        assert "served by" in doctor and "64 runs at once" in doctor

    async def test_a_pruned_thread_shows_all_that_was_said(
        self, server: Server, client: LangGraphClient
    ) -> None:
        user = uuid4().hex
        context = {**RULES, "user": user}
        thread = (await client.threads.create())["thread_id"]
        for number in range(4):
            given = {"messages": said(f"I have {number} cats.")}
            await client.runs.wait(thread, "chatbot", input=given, context=context)
        before: Any = await client.threads.get_state(thread)
        pruned = server.mneme("threads", "prune", thread, "--turns", "2", "--user", user, "--json")
        assert json.loads(pruned.stdout)["checkpoints"] > 5, pruned.stderr
        history: list[Any] = await client.threads.get_history(thread, limit=100)
        assert [each["metadata"]["source"] for each in history].count("input") == 2
        assert len(before["values"]["messages"]) == 8
        assert (await client.threads.get_state(thread))["values"] == before["values"]
        told: Any = await client.runs.wait(
            thread, "chatbot", input={"messages": said("I have a dog.")}, context=context
        )
        assert [each["type"] for each in told["messages"]] == ["human", "ai"] * 5

    @pytest.mark.long
    async def test_a_python_script_goes_through_the_server(self, server: Server) -> None:
        user = uuid4().hex
        command = [sys.executable, "-c", SCRIPT, user]
        done = await asyncio.to_thread(
            subprocess.run, command, env=server.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "Austin" in done.stdout and user in done.stdout
        assert "Austin" in server.mneme("memories", "list", "--user", user).stdout

    @pytest.mark.long
    async def test_a_file_is_remembered_through_the_server(
        self, server: Server, client: LangGraphClient, tmp_path: Path
    ) -> None:
        file, user = tmp_path / "talk.txt", uuid4().hex
        file.write_text("user: I have a cat.\nassistant: Nice.\nuser: My cat is called Zoe.\n")
        first = server.mneme("remember", str(file), "--user", user, "--json")
        again = server.mneme("remember", str(file), "--user", user, "--json")
        assert json.loads(first.stdout)["remembered"] == 2, first.stderr
        assert json.loads(again.stdout)["remembered"] == 0
        assert any("Zoe" in each for each in await remembered(client, user))

    def test_a_discussion_that_nobody_reads_any_more_ends_quietly(
        self, server: Server, tmp_path: Path
    ) -> None:
        words = [sys.executable, "-m", "mneme", "discuss", "Plan a pipeline for orders.", "--agents", "rules"]
        how: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": tmp_path}
        with subprocess.Popen(words, env=server.environment, **how) as process:
            assert process.stdout is not None and process.stderr is not None
            assert process.stdout.readline().startswith(b"discussion ")
            process.stdout.close()
            assert (process.stderr.read(), process.wait()) == (b"", 1)

    async def test_a_run_that_is_cancelled_before_it_begins_is_called_stopped(
        self, client: LangGraphClient
    ) -> None:
        thread = await client.threads.create(graph_id="chatbot")
        config = RunnableConfig(configurable={"thread_id": thread["thread_id"]})
        flows = Workflows({"chatbot": Cancelled("chatbot", client=client)}, httpx.AsyncClient(), client)
        with pytest.raises(Conflict, match="The run was stopped"):
            await GraphRun(flows, "chatbot", {}, config, {}).end()

    async def test_wrong_requests_to_the_memories_route_are_refused(self, server: Server) -> None:
        async with httpx.AsyncClient(base_url=f"{server.url}{API_PATH}", timeout=None) as client:
            broken = await client.post("/memories", content=b"{broken")
            assert (broken.status_code, broken.headers["content-type"]) == (400, PROBLEM_TYPE)
            assert "not valid" in broken.json()["detail"]
            assert (await client.post("/memories", json={"nonsense": 1})).status_code == 400
            assert (await client.get("/memories", params={"nonsense": 1})).status_code == 400
            assert (await client.get("/memories/none")).json()["type"] == "urn:mneme:NotFound"
            assert (await client.get("/nonsense")).status_code == 404

    async def test_other_hosts_names_are_refused(self, server: Server) -> None:
        async with httpx.AsyncClient(headers={"host": "evil.example"}, timeout=None) as stranger:
            assert (await stranger.get(f"{server.url}{API_PATH}/memories")).status_code == 403


class Cancelled(ServerGraph):
    """A graph on a server whose runs are cancelled before they begin."""

    async def astream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        for each in list[Any]():
            yield each


MEMORY: dict[str, Any] = {"memory_agent": "rules"}
SCRIPT = """
import asyncio, sys
from mneme.client.workflows import GraphRun, open_session

async def main(user):
    async with open_session(user) as session:
        assert session.is_served
        thread = await session.conversation("a script")
        assert await session.flows.left_at("chatbot", thread) == ((), {})
        said = {"messages": [{"role": "user", "content": "I live in Austin."}]}
        context = {"user": user, "chatbot": "rules", "memory_agent": "rules", "debounce": 0}
        await GraphRun(session.flows, "chatbot", said, thread, context).end()
        while await session.inbox.waiting():
            await asyncio.sleep(0.1)
        print(session.user, [each.memory.content for each in await session.memories.list()])

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.long
@pytest.mark.xdist_group("server")
async def test_two_users_see_nothing_of_one_another(tmp_path: Path) -> None:
    file = tmp_path / "users.json"
    ann, bob = (add_user(file, name) for name in ("ann", "bob"))
    with serving(tmp_path / "home", MNEME_AUTH=str(file)) as server:
        async with server.client(bob) as bobs:
            await take_threads_of_ann(bobs)
        async with server.client(ann) as anns, server.client(bob) as bobs, server.client() as strangers:
            with pytest.raises(APIStatusError) as refusal:
                await say(anns, "I live in Austin.", user="bob")
            assert refusal.value.status_code == 403
            thread, _ = await say(anns, "I live in Austin.")
            await eventually(lambda: remembered(anns, "ann"))
            assert await remembered(anns, "ann") == ["I live in Austin."], "the key decides"
            remembering: Any = await anns.threads.get_state(server.thread("memory/ann", key=ann))
            assert remembering["metadata"]["owner"] == "ann", "so the gate knows whose work it is"
            await bob_finds_nothing(bobs, thread)
            with pytest.raises(APIStatusError) as refusal:
                await strangers.threads.search()
            assert refusal.value.status_code in {401, 403}
        refused, about = await listed_for_ann(server, key=bob)
        assert refused == 403 and "bob's, not ann's" in about["detail"]
        assert (await listed_for_ann(server, key=""))[0] in {401, 403}
        server.environment["MNEME_KEY"] = ann
        for command in (("chat",), ("memories", "list")):
            failed(server.mneme(*command, "--user", "bob"), "The key is ann's, not bob's")
        as_herself = server.mneme("chat", "--user", "ann", stdin="I work as a hatter.\n")
        assert as_herself.returncode == 0, as_herself.stderr
        assert "hat" in server.mneme("memories", "list").stdout, "the key says who it is"
        server.environment["MNEME_KEY"] = bob
        as_himself = server.mneme("chat", stdin="I own a harp.\n")
        assert as_himself.returncode == 0, as_himself.stderr
        assert "hat" not in server.mneme("memories", "list").stdout
        assert f"no thread {thread}" in server.mneme("threads", "prune", thread).stderr
        for wrong in ("wrong", "mneme-147ee022…"):
            server.environment["MNEME_KEY"] = wrong
            failed(server.mneme("memories", "list"), "MNEME_KEY", "mneme users add")
        server.environment["MNEME_KEY"] = ann
        listed = server.mneme("memories", "list", "--json")
        assert "Austin" in listed.stdout, listed.stderr
        assert json.loads(server.mneme("threads", "prune", thread, "--json").stdout)["threads"] == 1
        teams_of_one_name_are_two(server, ann, bob)


async def take_threads_of_ann(bobs: LangGraphClient) -> None:
    """Let Bob make the threads whose ids everybody can work out, and run a graph on them, as if he were Ann.

    The rest of the test shows that Ann's turns and her memories are none the worse.
    """
    for name, graph in (("memory/ann", "remember"), ("chat/ann/default", "chatbot")):
        thread = known_id(name)
        await bobs.threads.create(thread_id=thread, metadata={"owner": "ann"})
        pretence: Any = {"metadata": {"owner": "ann"}}
        context = RULES if graph == "chatbot" else MEMORY
        given: Any = {"messages": said("Where am I?") if graph == "chatbot" else []}
        await bobs.runs.wait(thread, graph, input=given, context=context, config=pretence, raise_error=False)


def teams_of_one_name_are_two(server: Server, ann: str, bob: str) -> None:
    """Let Ann's team learn something, and look at Bob's team of the same name."""
    task = ("learn", "--suite", "sql_tuning", "--count", "1", "--rows", "20000", "--agents", "rules")
    server.environment["MNEME_KEY"] = ann
    assert server.mneme(*task, "--team", "tuners").returncode in {0, 1}
    server.environment["MNEME_KEY"] = bob
    assert server.mneme("cards", "list", "--team", "tuners", "--json").stdout == ""
    again = server.mneme(*task, "--team", "tuners", "--json")
    assert json.loads(again.stdout.splitlines()[0])["packet"], "Bob's team has done nothing of it yet"
    server.environment["MNEME_KEY"] = ann
    assert server.mneme("cards", "list", "--team", "tuners", "--json").stdout != ""


async def bob_finds_nothing(bobs: LangGraphClient, anns_thread: str) -> None:
    assert (await bobs.store.search_items(["users", "bob"]))["items"] == []
    his: Any = await bobs.threads.search(limit=100)
    assert {each["metadata"]["owner"] for each in his} == {"bob"}
    forbidden = (
        bobs.store.search_items(["users", "ann", "memories"]),
        bobs.threads.get(anns_thread),
        bobs.threads.get_state(anns_thread),
        bobs.runs.list(anns_thread),
    )
    for each in forbidden:
        with pytest.raises(APIStatusError):
            await each
    _, pieces = await say(bobs, "Where do I live?")
    assert "Austin" not in "".join(pieces)


async def listed_for_ann(server: Server, key: str) -> tuple[int, Any]:
    """Ask the route of the command line for Ann's memories, with a key."""
    headers = {"x-api-key": key} if key else {}
    async with httpx.AsyncClient(headers=headers, timeout=None) as client:
        answer = await client.get(f"{server.url}{API_PATH}/memories", params={"user": "ann"})
    return answer.status_code, answer.json()


@pytest.mark.long
@pytest.mark.xdist_group("server")
async def test_many_replies_to_one_user_keep_no_other_waiting(tmp_path: Path) -> None:
    """A model answers a question in two seconds, one at a time; one user asks for too many at once."""
    file, seconds = tmp_path / "users.json", 2.0
    ann, bob = (add_user(file, name) for name in ("ann", "bob"))
    with OllamaDouble(brain=by_rules(reply), seconds=seconds) as double:
        ollama = {"MNEME_OLLAMA_URL": double.url, "MNEME_PARALLEL": "1", "MNEME_AUTH": str(file)}
        with serving(tmp_path / "home", workers="64", **ollama) as server:
            async with server.client(ann) as anns, server.client(bob) as bobs:
                asked: dict[str, Any] = {"input": {"messages": said("I like tea.")}}
                asked["context"] = RULES | {"chatbot": "ollama:llama3.1:8b", "debounce": 3600}
                alone = [await seconds_of(say(bobs, "I like milk.", **asked["context"])) for _ in range(2)]

                async def ask() -> int:
                    thread = (await anns.threads.create())["thread_id"]
                    try:
                        await anns.runs.create(thread, "chatbot", **asked)
                    except APIStatusError as refusal:
                        return refusal.status_code
                    return 200

                told = await asyncio.gather(*(ask() for _ in range(60)))
                assert sorted(told) == [200] * MAX_BUSY + [429] * (60 - MAX_BUSY)
                await eventually(lambda: gate_is_full(double))
                beside = []
                for part in range(3):  # of a call: he comes at any time of one
                    await asyncio.sleep(part / 3 * seconds)
                    beside.append(await seconds_of(say(bobs, "I like milk.", **asked["context"])))
                assert mean(beside) - mean(alone) < seconds, "he waits for half a call or so to end"


async def seconds_of(work: Awaitable[object]) -> float:
    """Return how long something takes."""
    before = time.monotonic()
    await work
    return time.monotonic() - before


async def gate_is_full(double: OllamaDouble) -> bool:
    """Tell whether the model has been asked for a reply."""
    return len(double.chats) > 2


@pytest.mark.long
@pytest.mark.xdist_group("server")
async def test_what_was_pending_when_the_server_died_is_remembered_once(tmp_path: Path) -> None:
    """Let the model answer nothing but the chat until the server dies, so that all is still pending.

    Everybody gets a reply meanwhile, though as many wait to be remembered as the server has workers.
    """
    prompts = (reply, read_message, compare_memories, rewrite_memory)
    context: dict[str, Any] = {
        "chatbot": "ollama:llama3.1:8b",
        "memory_agent": "ollama:llama3.1:8b",
        "debounce": 1,
    }
    with OllamaDouble(brain=talks) as double:
        environment = {"MNEME_OLLAMA_URL": double.url}
        with serving(tmp_path / "home", workers="2", **environment) as server:
            async with server.client() as client:
                await say(client, "I live in Austin.", **context)
                await eventually(lambda: asks_to_remember(double))
                await say(client, "I have a cat called Zoe.", **context)
                for user in ("ann", "bob"):
                    await say(client, "I own a harp.", **context, user=user)
            server.kill()
        double.brain = by_rules(*prompts)
        with serving(tmp_path / "home", workers="1", **environment) as server:
            async with server.client() as client:
                await eventually(lambda: all_is_done(client))
                assert len(await remembered(client, "local")) == 2
                await eventually(lambda: remembered(client, "ann"))
                await eventually(lambda: remembered(client, "bob"))
            tells_of_its_single_worker(server)


def tells_of_its_single_worker(server: Server) -> None:
    found = [json.loads(line) for line in server.mneme("doctor", "--json").stdout.splitlines()]
    (about,) = [each for each in found if each["what"] == "server"]
    assert about["state"] == "warning" and "--n-jobs-per-worker" in about["fix"]
    assert server.log.read_text().count("This server runs one thing at a time") == 1


def talks(body: Json) -> Answer:
    """Answer in the chat, and leave every other question unanswered."""
    is_chat = body["messages"][0]["content"] == reply.system
    return by_rules(reply)(body) if is_chat else Reply(seconds=3600)


async def asks_to_remember(double: OllamaDouble) -> bool:
    """Tell whether a memory agent waits for the model."""
    return any(each.body["messages"][0]["content"] != reply.system for each in double.chats)


async def all_is_done(client: LangGraphClient) -> bool:
    """Tell whether both things said were remembered and nothing else is left to do."""
    threads = await client.threads.search(limit=100)
    left = [each for each in threads if each["status"] == "busy"]
    return not left and len(await remembered(client, "local")) >= 2
