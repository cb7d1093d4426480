"""A Postgres server that crashes while chats run."""

import asyncio
import itertools
from operator import add
from typing import Annotated, Any

import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from mneme.core.errors import StorageFailure
from mneme.stores import postgres
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from tests.doubles.postgres import PostgresServer
from tests.doubles.waiting import until


class Talk(TypedDict):
    said: Annotated[list[str], add]


async def reply(state: Talk) -> dict[str, list[str]]:
    return {"said": [f"reply to {state['said'][-1]}"]}


def builder() -> StateGraph[Talk]:
    return StateGraph(Talk).add_node(reply).add_edge(START, "reply")


class Chat:
    """Somebody who says one thing after another, and goes on after a failure."""

    def __init__(self, graph: Any, name: str) -> None:
        self.graph, self.config = graph, {"configurable": {"thread_id": name}}
        self.acknowledged: list[str] = []
        self.failures: list[StorageFailure] = []

    async def go_on(self) -> None:
        for turn in itertools.count():
            try:
                await self.graph.ainvoke({"said": [f"turn {turn}"]}, self.config)
                self.acknowledged += [f"turn {turn}", f"reply to turn {turn}"]
            except StorageFailure as failure:
                self.failures.append(failure)

    async def kept(self) -> list[str]:
        """Return what was acknowledged and is in the thread, in the thread's order."""
        said = (await self.graph.aget_state(self.config)).values["said"]
        return [each for each in said if each in self.acknowledged]


async def test_a_crash_loses_nothing_that_was_acknowledged_and_chats_go_on(
    own_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "POSTGRES_CONNECT_SECONDS", 1)
    async with open_checkpointer(own_postgres.url) as saver:
        graph = builder().compile(checkpointer=saver)
        chats = [Chat(graph, f"chat {number}") for number in range(6)]
        async with asyncio.TaskGroup() as running:
            talking = [running.create_task(chat.go_on()) for chat in chats]
            await all_went_on(chats)
            await asyncio.to_thread(own_postgres.kill)
            await until(lambda: all(chat.failures for chat in chats))
            await asyncio.to_thread(own_postgres.start)
            await all_went_on(chats)
            for task in talking:
                task.cancel()
        for chat in chats:
            assert await chat.kept() == chat.acknowledged
            assert all(failure.hint and "\n" not in str(failure) for failure in chat.failures)


async def all_went_on(chats: list[Chat]) -> None:
    before = [len(chat.acknowledged) for chat in chats]
    await until(lambda: all(len(chat.acknowledged) > n for chat, n in zip(chats, before, strict=True)))
