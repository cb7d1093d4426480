"""A Postgres server that crashes while chats run, and what its files hold after a vacuum."""

import asyncio
import itertools
import logging
from operator import add
from pathlib import Path
from typing import Annotated, Any

import psycopg
import pytest
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from mneme.core.errors import StorageFailure
from mneme.stores import postgres
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.ledger import open_ledger
from mneme.stores.ledger.records import Change
from mneme.stores.ledger.verifying import vacuum
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget
from tests.doubles.postgres import PostgresServer
from tests.doubles.qdrant_double import QdrantDouble
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


def tables_with(server: PostgresServer, word: bytes) -> list[Path]:
    """Return the files of the server's tables in which a word is, once all is written into them."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
    files = [each for each in (server._data / "base").glob("*/*") if each.is_file()]
    return [each for each in files if word in each.read_bytes().lower()]


async def test_what_was_forgotten_is_in_no_table_after_a_vacuum(
    own_postgres: PostgresServer, embedder: WordEmbedder
) -> None:
    secrets = ("ledger", "users", "ann"), b"zyxquartz"
    said = Change(reason="said", actor="me")
    with QdrantDouble() as double:
        location = f"{own_postgres.url}|{double.url}"
        ledger = await open_ledger(location, embedder)
        for number in range(20):
            await ledger.insert(
                secrets[0],
                {"content": f"zyxquartz {number}"},
                text="boat zyxquartz",
                key=str(number),
                change=said,
            )
        with psycopg.connect(own_postgres.url, autocommit=True) as connection:
            connection.execute("ANALYZE")  # Postgres takes samples, as it does by itself
        for number in range(19):
            await forget(ledger, secrets[0], str(number), reason="asked", actor="me")
        await ledger.insert(secrets[0], {"content": "kept"}, text="boat", key="kept", change=said)
        await forget(ledger, secrets[0], "19", reason="asked", actor="me")
        await ledger.close()
        async with open_checkpointer(own_postgres.url) as saver:
            graph = builder().compile(checkpointer=saver)
            await graph.ainvoke({"said": ["zyxquartz"]}, {"configurable": {"thread_id": "gone"}})
            await saver.adelete_thread("gone")
            assert tables_with(own_postgres, secrets[1])
            await vacuum(location, embedder)
            await saver.vacuum()
        assert tables_with(own_postgres, secrets[1]) == []
        ledger = await open_ledger(location, embedder)
        assert [hit.version.key for hit in await ledger.search(secrets[0], "boat")] == ["kept"]
        await ledger.close()


async def test_a_server_that_is_away_is_told_in_our_words_alone(
    own_postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(postgres, "POSTGRES_CONNECT_SECONDS", 1)
    own_postgres.kill()
    with caplog.at_level(logging.WARNING), pytest.raises(StorageFailure, match="Postgres at"):
        async with open_checkpointer(own_postgres.url):
            pass
    assert caplog.messages == []
    own_postgres.start()  # the fixture stops it
