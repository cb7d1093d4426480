"""The index on a Qdrant server: written while it is away, refusals, addresses, and the wire itself."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from qdrant_client import models

from mneme.core.errors import BadInput, Conflict, LedgerMismatch, NotFound, StorageFailure
from mneme.stores.ledger.addresses import Address, address_of, place_of
from mneme.stores.ledger.ledger import Ledger, open_ledger, reembed
from mneme.stores.ledger.records import Change, Version, make_write
from mneme.stores.ledger.verifying import repair, verify
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget
from tests.doubles.qdrant_double import QdrantDouble
from tests.doubles.qdrant_server import at

ALICE = ("users", "alice", "memories")
SAID = Change(reason="said so", actor="agent")


async def put(ledger: Ledger, text: str, **more: Any) -> Version:
    return await ledger.insert(ALICE, {"content": text}, text=text, change=SAID, **more)


@pytest.fixture(params=["double", "team"])
def location(request: pytest.FixtureRequest) -> str:
    """Name a new ledger whose index is on a server, with its log in a folder and in Postgres."""
    return str(request.getfixturevalue(f"{request.param}_location"))


@pytest.fixture
async def ledger(location: str, embedder: WordEmbedder) -> AsyncIterator[Ledger]:
    made = await open_ledger(location, embedder)
    yield made
    await made.close()


class Away:
    """While it is `now`, no write reaches the server."""

    now = False


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Away:
    away = Away()
    request = httpx.Client.request

    def or_not(client: httpx.Client, method: str, url: Any, **given: Any) -> httpx.Response:
        if away.now and (method, url.rpartition("/")[2]) in (("PUT", "points"), ("POST", "delete")):
            raise httpx.ConnectError("gone")
        return request(client, method, url, **given)

    monkeypatch.setattr(httpx.Client, "request", or_not)
    return away


class TestAServerThatIsAway:
    async def test_what_is_written_is_safe_and_found_later(self, away: Away, ledger: Ledger) -> None:
        made = await put(ledger, "Max is four", key="k")
        away.now = True
        await ledger.update(ALICE, "k", {}, text="Max is five", change=SAID, expected_version=1)
        await put(ledger, "tea", key="new")
        assert [each.text for each in await ledger.history(ALICE, "k")] == ["Max is four", "Max is five"]
        with pytest.raises(StorageFailure):
            await ledger.search(ALICE, "five")
        away.now = False
        hits = await ledger.search(ALICE, "five tea", mode="bm25")
        assert {hit.version.text for hit in hits} == {"Max is five", "tea"}
        assert made.version == 1

    async def test_another_process_finds_it_too(
        self, away: Away, ledger: Ledger, location: str, embedder: WordEmbedder
    ) -> None:
        away.now = True
        await put(ledger, "tea")
        away.now = False
        again = await open_ledger(location, embedder)
        assert [hit.version.text for hit in await again.search(ALICE, "tea", mode="bm25")] == ["tea"]
        await again.close()

    async def test_a_ledger_is_opened_read_and_written_without_it(
        self, ledger: Ledger, location: str, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await put(ledger, "tea")
        await ledger.close()
        with monkeypatch.context() as away:

            def gone(*given: Any, **named: Any) -> httpx.Response:
                raise httpx.ConnectError("gone")

            away.setattr(httpx.Client, "request", gone)
            again = await open_ledger(location, embedder)
            await put(again, "more tea")
            assert await again.count() == 2
            for asks_it in (again.search(ALICE, "tea"), again.info()):
                with pytest.raises(StorageFailure, match="does not answer"):
                    await asks_it
            await again.close()
            found = await verify(location)
            assert found.versions == 2
            assert ["does not answer" in each for each in found.problems] == [True]
        again = await open_ledger(location, embedder)
        assert len(await again.search(ALICE, "tea", mode="bm25")) == 2
        await again.close()

    async def test_what_is_forgotten_is_found_by_nobody_and_removed_later(
        self, away: Away, ledger: Ledger, location: str
    ) -> None:
        for key in ("k", "other"):
            await put(ledger, "a secret", key=key, idempotency_key=key)
        away.now = True
        await forget(ledger, ALICE, "k", reason="", actor="")
        away.now = False
        assert [hit.version.key for hit in await ledger.search(ALICE, "secret", mode="bm25")] == ["other"]
        with pytest.raises(NotFound):
            await put(ledger, "a secret", key="k", idempotency_key="k")
        assert len(await points(location)) == 1

    async def test_a_writer_that_comes_late_brings_nothing_back(
        self, ledger: Ledger, location: str, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The record is forgotten by another process before the writer's point is sent."""
        another = f"{location}-other" if "?collection=" in location else f"{location}?collection=mneme"
        other = await open_ledger(another, embedder)  # an index of its own here
        index: Any = ledger._store.index
        send = index._upsert

        def late(*given: Any) -> None:
            monkeypatch.setattr(index, "_upsert", send)
            asyncio.run(forget(other, ALICE, "k", reason="", actor=""))
            send(*given)

        monkeypatch.setattr(index, "_upsert", late)
        await put(ledger, "a secret", key="k")
        assert await ledger.search(ALICE, "secret") == []
        assert await points(location) == []
        await other.close()

    async def test_a_batch_is_stored_as_a_whole_or_not_at_all(self, ledger: Ledger) -> None:
        await put(ledger, "taken", key="k")
        fresh, taken, other = (
            make_write(event="insert", namespace=ALICE, key=key, value={}, text="fresh", change=SAID)
            for key in (None, "k", None)
        )
        with pytest.raises(Conflict):
            await ledger.write([fresh, taken, other])
        assert await ledger.count() == 1


async def points(location: str) -> list[str]:
    """Return the ids of the records in the index."""
    async with at(location) as (client, name):
        records, _ = await client.scroll(name, limit=1000, with_payload=True)
    return [str(record.id) for record in records if "scope" in (record.payload or {})]


class TestVerifying:
    async def test_an_index_that_lost_something_is_told_and_built_anew(
        self, ledger: Ledger, location: str, embedder: WordEmbedder
    ) -> None:
        for number in range(5):
            await put(ledger, f"tea {number}")
        assert (await verify(location)).problems == []
        async with at(location) as (client, name):
            await client.delete(name, models.PointIdsList(points=[(await points(location))[0]]))
        assert "lacks 1 record" in (await verify(location)).problems[0]
        await repair(location, embedder)
        assert (await verify(location)).problems == []
        assert len(await ledger.search(ALICE, "tea")) == 5

    async def test_nobody_waits_while_an_index_is_built(
        self, ledger: Ledger, location: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for key in ("kept", "changed", "forgotten"):
            await put(ledger, f"tea {key}", key=key)
        index: Any = ledger._store.index
        send, is_building, goes_on = index._upsert, threading.Event(), threading.Event()

        def slowly(name: str, *given: Any) -> None:
            if name != index.name and not is_building.is_set():
                is_building.set()
                assert goes_on.wait(60)
            send(name, *given)

        monkeypatch.setattr(index, "_upsert", slowly)
        building = asyncio.create_task(asyncio.to_thread(ledger.rebuild_index))
        try:
            await asyncio.to_thread(is_building.wait, 60)
            async with asyncio.timeout(30):
                await put(ledger, "tea new", key="new")
                await ledger.update(ALICE, "changed", {}, text="milk", change=SAID, expected_version=1)
                await forget(ledger, ALICE, "forgotten", reason="", actor="")
                found = await ledger.search(ALICE, "tea", mode="bm25")
            assert {hit.version.key for hit in found} == {"kept", "new"}
            assert not building.done()
        finally:
            goes_on.set()
            await building
        found = await ledger.search(ALICE, "tea milk", mode="bm25")
        assert {hit.version.key for hit in found} == {"kept", "new", "changed"}
        assert (await verify(location)).problems == []

    async def test_no_text_is_on_the_server(self, ledger: Ledger, location: str) -> None:
        await put(ledger, "Zanzibarrow")
        async with at(location) as (client, name):
            records, _ = await client.scroll(name, limit=10, with_payload=True)
        assert "Zanzibarrow" not in str(records)


class TestRefusals:
    async def test_another_embedder_is_refused_and_reembedding_mends_it(
        self, ledger: Ledger, location: str, embedder: WordEmbedder
    ) -> None:
        made = await put(ledger, "tea", idempotency_key="1")
        retired = await put(ledger, "coffee")
        await ledger.retire(ALICE, retired.key, change=SAID, expected_version=1)
        lines = [line async for line in ledger.export()]
        other = WordEmbedder("test:other", 32)
        with pytest.raises(LedgerMismatch, match="test:words") as refused:
            await open_ledger(location, other)
        assert "mneme memories reembed" in refused.value.hint
        await ledger.close()
        assert await reembed(location, other, progress=lambda copied: None) == 1
        again = await open_ledger(location, other)
        assert [line async for line in again.export()] == lines
        assert [hit.version for hit in await again.search(ALICE, "tea")] == [made]
        await again.close()
        with pytest.raises(LedgerMismatch):
            await open_ledger(location, embedder)

    async def test_a_collection_of_something_else_is_left_alone(
        self, location: str, embedder: WordEmbedder
    ) -> None:
        async with at(location) as (client, name):
            size = models.VectorParams(size=2, distance=models.Distance.DOT)
            await client.create_collection(name, vectors_config=size)
        with pytest.raises(LedgerMismatch, match="nothing was touched"):
            await open_ledger(location, embedder)

    async def test_a_server_that_is_too_old_is_refused(self, embedder: WordEmbedder, tmp_path: Path) -> None:
        with QdrantDouble(version="1.15.4") as double, pytest.raises(StorageFailure, match=r"1\.15\.4"):
            await open_ledger(f"{tmp_path / 'log'}|{double.url}", embedder)

    async def test_a_wrong_key_is_said(self, embedder: WordEmbedder, tmp_path: Path) -> None:
        with QdrantDouble(api_key="right") as double, pytest.raises(StorageFailure, match="401") as refused:
            await open_ledger(f"{tmp_path / 'log'}|{double.url}", embedder)
        assert "MNEME_LEDGER_API_KEY" in refused.value.hint

    async def test_a_server_that_is_not_there_is_said(self, embedder: WordEmbedder, tmp_path: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with pytest.raises(StorageFailure, match="does not answer") as failure:
            await open_ledger(f"{tmp_path / 'log'}|http://ann:secret@127.0.0.1:{port}", embedder)
        assert "secret" not in str(failure.value)

    @pytest.mark.parametrize("location", ["http://host:6333", "postgresql://host/db"])
    async def test_a_log_and_an_index_are_needed(self, location: str) -> None:
        with pytest.raises(BadInput) as refused:
            place_of(location)
        assert "MNEME_INDEX" in refused.value.hint


class TestAddresses:
    def test_an_address_says_how_the_collection_is_laid_out(self) -> None:
        assert address_of("https://host:6333/qdrant?collection=team&shards=4&replicas=2") == Address(
            urls=("https://host:6333/qdrant",), collection="team", shards=4, replicas=2
        )
        assert address_of("http://host") == Address(urls=("http://host",), collection="mneme")

    def test_the_nodes_of_a_cluster_stand_side_by_side(self) -> None:
        found = address_of("http://a:6333,http://b:6333?replicas=3")
        assert (found.urls, found.majority) == (("http://a:6333", "http://b:6333"), 2)

    @pytest.mark.parametrize("nodes", ["http://a:1,b:2", "http://a/x,http://b", "http://a,"])
    def test_nodes_that_cannot_be_read_are_refused(self, nodes: str) -> None:
        with pytest.raises(BadInput, match="cannot be read"):
            address_of(nodes)

    @pytest.mark.parametrize(
        "options", ["shard=2", "shards=two", "shards=0", "replicas=-1", "writes=2", "replicas=2&writes=3"]
    )
    def test_options_that_mean_nothing_are_refused(self, options: str) -> None:
        with pytest.raises(BadInput):
            address_of(f"http://host:6333?{options}")


class TestTheWire:
    async def test_every_operation_goes_over_http(
        self, ledger: Ledger, location: str, embedder: WordEmbedder
    ) -> None:
        made = await put(ledger, "Max is a Labrador mix", idempotency_key="1")
        await ledger.update(ALICE, made.key, {"n": 1}, text="Max is five", change=SAID, expected_version=1)
        await put(ledger, "The user drinks tea")
        for mode in ("dense", "bm25", "hybrid", "blend"):
            hits = await ledger.search(ALICE, "Max", mode=mode, filter={"n": {"$gte": 1}})
            assert [hit.version.text for hit in hits] == ["Max is five"]
        assert [len(await ledger.history(ALICE, made.key)), await ledger.count()] == [2, 2]
        assert await ledger.namespaces() == [ALICE]
        assert len([json.loads(line) async for line in ledger.export()]) == 3
        await forget(ledger, ALICE, made.key, reason="", actor="")
        assert len(await ledger.records(ALICE, include_retired=True)) == 1
        assert (await ledger.info()).kind == "server"
        again = await open_ledger(location, embedder)
        assert await again.count() == 1
        await again.close()

    async def test_processes_make_one_ledger_at_the_same_moment(
        self, location: str, embedder: WordEmbedder
    ) -> None:
        ledgers = await asyncio.gather(*(open_ledger(location, embedder) for _ in range(8)))
        made = await asyncio.gather(*(put(each, f"tea {n}") for n, each in enumerate(ledgers)))
        assert {version.key for version in await ledgers[0].records(ALICE)} == {each.key for each in made}
        await asyncio.gather(*(each.close() for each in ledgers))

    def test_it_serves_several_event_loops(self, location: str, embedder: WordEmbedder) -> None:
        ledger = asyncio.run(open_ledger(location, embedder))
        made = [asyncio.run(put(ledger, f"tea {n}")) for n in range(3)]
        assert asyncio.run(ledger.records(ALICE)) == made
        asyncio.run(ledger.close())

    async def test_two_processes_share_one_ledger(
        self, ledger: Ledger, location: str, embedder: WordEmbedder
    ) -> None:
        second = await open_ledger(location, embedder)
        made = await put(ledger, "start")
        tried = await asyncio.gather(
            *(
                each.update(ALICE, made.key, {}, text="changed", change=SAID, expected_version=1)
                for each in (ledger, second) * 4
            ),
            return_exceptions=True,
        )
        assert sum(isinstance(outcome, Version) for outcome in tried) == 1
        assert sum(isinstance(outcome, Conflict) for outcome in tried) == 7
        assert len(await second.history(ALICE, made.key)) == 2
        await second.close()
