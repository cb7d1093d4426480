"""MiTa through a real `langgraph dev`: an episode that its death interrupts goes on to the same end."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from mneme.api.operation import API_PATH
from tests.doubles.command_line import Running, run_mneme
from tests.doubles.langgraph_server import Guarded, Server, serving
from tests.doubles.waiting import eventually

CONTEXT: dict[str, Any] = {"member": "rules", "manager": "rules", "seed": 4}
TASK: dict[str, Any] = {"category": "Prepare Tea", "agents": 3, "seed": 4}
LIMIT: Any = {"recursion_limit": 2000}
ROUNDS = 4
"""Rounds after which the server is killed."""
SAME = ("success", "steps", "progress", "world", "members", "synopses", "counters", "episode")


async def new_thread(client: LangGraphClient) -> str:
    return str((await client.threads.create())["thread_id"])


async def values(client: LangGraphClient, thread: str) -> dict[str, Any]:
    return dict((await client.threads.get_state(thread))["values"])  # type: ignore[arg-type]


async def play_whole(client: LangGraphClient) -> dict[str, Any]:
    thread = await new_thread(client)
    await client.runs.wait(thread, "mita", input=TASK, context=CONTEXT, config=LIMIT)
    return await values(client, thread)


async def kill_in_the_middle(server: Server, client: LangGraphClient, thread: str) -> None:
    """Play until some rounds have been executed, and kill the server at that moment."""
    executed = 0
    told = client.runs.stream(thread, "mita", input=TASK, context=CONTEXT, config=LIMIT, stream_mode="custom")
    async for part in told:
        executed += part.event == "custom" and part.data["step"] == "execute"
        if executed == ROUNDS:
            break
    server.kill()
    assert executed == ROUNDS


async def go_on(client: LangGraphClient, thread: str) -> dict[str, Any]:
    """Go on from the checkpoint; where the server has taken the run up by itself, wait for that."""
    await client.threads.create(thread_id=thread, graph_id="mita", if_exists="do_nothing")
    state = await client.threads.get_state(thread)
    assert state["tasks"], "the episode was over before the server died"
    left = dict(state["values"])  # type: ignore[arg-type]
    assert not left["over"]
    if not await client.runs.list(thread, status="running") + await client.runs.list(
        thread, status="pending"
    ):
        await client.runs.wait(thread, "mita", input=None, context=CONTEXT, config=LIMIT)

    async def over() -> bool:
        return not (await client.threads.get_state(thread))["tasks"]

    await eventually(over)
    return await values(client, thread)


@pytest.mark.long
@pytest.mark.xdist_group("server")
async def test_an_episode_goes_on_from_its_checkpoint_after_the_server_was_killed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with serving(home) as server:
        async with server.client() as client:
            whole, thread = await play_whole(client), await new_thread(client)
            await kill_in_the_middle(server, client, thread)
    with serving(home) as server:
        async with server.client() as client:
            resumed = await go_on(client, thread)
        told = server.mneme(
            *("household", "run", "--task", TASK["category"], "--members", "3", "--seed", "4"),
            *("--agents", "rules", "--json"),
        )
    assert {name: resumed[name] for name in SAME} == {name: whole[name] for name in SAME}
    assert whole["success"]
    ended = json.loads(told.stdout.splitlines()[-1])
    assert (ended["steps"], ended["progress"]) == (whole["steps"], whole["progress"]), told.stderr
    assert "BlockingError" not in server.log.read_text()


PLAY = ("household", "run", "--task", "Wash Dishes", "--seed", "3", "--agents", "rules")


def steps_of(server: Server, run: str) -> list[dict[str, Any]]:
    """Return the steps of a run in their order."""
    told = server.mneme("household", "replay", run, "--json").stdout.splitlines()
    return [line for line in map(json.loads, told) if line["kind"] == "step"]


async def kill_the_client(server: Server, client: LangGraphClient, *words: str) -> str:
    """Begin a run, kill its client after a few steps, and return the thread that the server plays on."""
    with Running((*words, "--json"), server.environment, piped=True) as command:
        for _ in range(3):
            assert await asyncio.to_thread(command.output.readline)
    (thread,) = await client.threads.search(status="busy")
    return str(thread["thread_id"])


@pytest.mark.long
@pytest.mark.xdist_group("server")
async def test_what_the_server_played_without_its_client_is_told_all_the_same(server: Server) -> None:
    assert server.mneme(*PLAY, "--id", "whole").returncode == 0
    async with server.client() as client:
        thread = await kill_the_client(server, client, *PLAY, "--id", "killed")

        async def is_over() -> bool:
            return not (await client.threads.get_state(thread))["tasks"]

        await eventually(is_over)
    again = server.mneme(*PLAY, "--id", "killed")
    assert again.returncode == 0 and "killed continues" in again.stdout, again.stderr
    assert "is over" in server.mneme(*PLAY, "--id", "killed").stderr
    told = [server.mneme("household", "replay", name) for name in ("killed", "whole")]
    assert steps_of(server, "killed") == steps_of(server, "whole")
    assert told[0].stdout == told[1].stdout
    assert not told[0].stderr


@pytest.mark.xdist_group("server")
def test_a_run_played_with_a_key_is_its_player_s_alone(guarded: Guarded) -> None:
    hedy, ian = guarded.key("hedy"), guarded.key("ian")
    words = ("household", "run", "--task", "Prepare Tea", "--seed", "24", "--id", "keyed", "--json")
    told = run_mneme((*words, "--agents", "rules"), {**guarded.server.environment, "MNEME_KEY": hedy})
    ended = json.loads(told.stdout.splitlines()[-1])

    def got(key: str, run: str = "") -> httpx.Response:
        return httpx.get(f"{guarded.server.url}{API_PATH}/household/runs{run}", headers={"x-api-key": key})

    assert [(each["run"], each["at_least"]) for each in got(hedy).json()] == [("keyed", ended["bound"])]
    replayed = got(hedy, "/keyed").json()
    assert len(replayed["steps"]) == ended["steps"] + 1 and replayed["missing"] == []
    assert got(ian).json() == [] and got(ian, "/keyed").status_code == 404
