"""The ledger on a server: writers that die half-way, refusals, addresses, and the wire itself."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from qdrant_client import AsyncQdrantClient, models

from mneme.core.errors import BadInput, Conflict, LedgerMismatch, NotFound, StorageFailure
from mneme.stores.ledger.addresses import address_of
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change, Version, Write
from mneme.stores.ledger.reembedding import reembed
from tests.doubles.embedding import WordEmbedder
from tests.doubles.qdrant_double import QdrantDouble
from tests.doubles.qdrant_server import at

ALICE = ("users", "alice", "memories")
SAID = Change(reason="said so", actor="agent")


async def put(ledger: Ledger, text: str, **more: Any) -> Version:
    return await ledger.insert(ALICE, {"content": text}, text=text, change=SAID, **more)


@pytest.fixture(params=["double", "qdrant"])
def location(request: pytest.FixtureRequest) -> str:
    """Name a new ledger on the double, and on a real server."""
    return str(request.getfixturevalue(f"{request.param}_location"))


@pytest.fixture
async def ledger(location: str, embedder: WordEmbedder) -> AsyncIterator[Ledger]:
    made = await open_ledger(location, embedder)
    yield made
    await made.close()


class Death:
    """While it is near, a writer dies between claiming a version and settling it."""

    near = False


@pytest.fixture
def death(monkeypatch: pytest.MonkeyPatch) -> Death:
    death, settle = Death(), AsyncQdrantClient.batch_update_points

    async def settle_or_die(*given: Any, **named: Any) -> Any:
        if death.near:
            raise ConnectionError("killed")
        return await settle(*given, **named)

    monkeypatch.setattr(AsyncQdrantClient, "batch_update_points", settle_or_die)
    return death


class TestHalfWayDeaths:
    async def half_written(self, death: Death, ledger: Ledger) -> None:
        """Leave a claimed update of `k`, and a claimed insert of `new`, unsettled."""
        await put(ledger, "Max is four", key="k")
        death.near = True
        with pytest.raises(StorageFailure):
            await ledger.update(ALICE, "k", {}, text="Max is five", change=SAID, expected_version=1)
        with pytest.raises(StorageFailure):
            await put(ledger, "tea", key="new", idempotency_key="task")
        death.near = False

    async def whole(self, ledger: Ledger) -> None:
        assert [version.text for version in await ledger.records(ALICE)] == ["Max is five", "tea"]
        found = await ledger.search(ALICE, "five", mode="bm25")
        assert [(hit.version.text, hit.version.version) for hit in found] == [("Max is five", 2)]
        for key, versions in (("k", 2), ("new", 1)):
            history = await ledger.history(ALICE, key)
            assert len(history) == versions
            assert await ledger.get(ALICE, key) == history[-1]

    async def test_the_next_process_settles_what_was_claimed(
        self, death: Death, ledger: Ledger, location: str, embedder: WordEmbedder
    ) -> None:
        await self.half_written(death, ledger)
        again = await open_ledger(location, embedder)
        await self.whole(again)
        await again.close()

    async def test_reading_by_key_settles(self, death: Death, ledger: Ledger) -> None:
        await self.half_written(death, ledger)
        read = [await ledger.get(ALICE, key) for key in ("k", "new")]
        assert [version.text for version in read if version] == ["Max is five", "tea"]
        await self.whole(ledger)

    async def test_the_next_writer_settles_and_gets_a_conflict(self, death: Death, ledger: Ledger) -> None:
        await self.half_written(death, ledger)
        with pytest.raises(Conflict, match="at version 2"):
            await ledger.update(ALICE, "k", {}, text="Max is six", change=SAID, expected_version=1)
        assert (await put(ledger, "tea", key="new", idempotency_key="task")).version == 1
        await self.whole(ledger)

    async def test_forgetting_takes_unsettled_versions_too(
        self, death: Death, ledger: Ledger, location: str
    ) -> None:
        await self.half_written(death, ledger)
        await ledger.forget(ALICE, "k", reason="", actor="")
        await ledger.forget(ALICE, "new", reason="", actor="")
        assert await ledger.count(include_retired=True) == 0
        with pytest.raises(NotFound):
            await put(ledger, "tea", key="new", idempotency_key="task")
        async with at(location) as (client, name):
            records, _ = await client.scroll(name, limit=100)
        assert not any("event" in (record.payload or {}) for record in records)

    async def test_a_batch_stores_what_does_not_refuse(self, ledger: Ledger) -> None:
        await put(ledger, "taken", key="k")
        fresh = Write(event="insert", namespace=ALICE, value={}, text="fresh", change=SAID)
        with pytest.raises(Conflict):
            await ledger.write([fresh, fresh.model_copy(update={"key": "k"}), fresh])
        assert await ledger.count() == 3


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
        assert await reembed(location, other, progress=lambda copied: None) == 1
        again = await open_ledger(location, other)
        assert [line async for line in again.export()] == lines
        assert [hit.version for hit in await again.search(ALICE, "tea")] == [made]
        await again.close()
        with pytest.raises(LedgerMismatch):
            await open_ledger(location, embedder)

    async def test_there_must_be_a_ledger_to_reembed(self, location: str, embedder: WordEmbedder) -> None:
        with pytest.raises(LedgerMismatch):
            await reembed(location, embedder, progress=print)

    async def test_a_collection_of_something_else_is_left_alone(
        self, location: str, embedder: WordEmbedder
    ) -> None:
        async with at(location) as (client, name):
            size = models.VectorParams(size=2, distance=models.Distance.DOT)
            await client.create_collection(name, vectors_config=size)
        with pytest.raises(LedgerMismatch, match="nothing was touched"):
            await open_ledger(location, embedder)

    async def test_a_server_that_is_too_old_is_refused(self, embedder: WordEmbedder) -> None:
        with QdrantDouble(version="1.15.4") as double, pytest.raises(StorageFailure, match=r"1\.15\.4"):
            await open_ledger(double.url, embedder)

    async def test_a_wrong_key_is_said(self, embedder: WordEmbedder) -> None:
        with QdrantDouble(api_key="right") as double, pytest.raises(StorageFailure, match="401") as refused:
            await open_ledger(double.url, embedder)
        assert "MNEME_LEDGER_API_KEY" in refused.value.hint

    async def test_a_server_that_is_not_there_is_said(self, embedder: WordEmbedder) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        with pytest.raises(StorageFailure, match="does not answer"):
            await open_ledger(f"http://127.0.0.1:{port}", embedder)


class TestAddresses:
    def test_an_address_says_how_the_collection_is_laid_out(self) -> None:
        assert address_of("https://host:6333/qdrant?collection=team&shards=4&replicas=2") == (
            ("https://host:6333",),
            "qdrant",
            "team",
            4,
            2,
            None,
        )
        assert address_of("http://host") == (("http://host",), None, "mneme", None, None, None)

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
        await ledger.forget(ALICE, made.key, reason="", actor="")
        assert len(await ledger.records(ALICE, include_retired=True)) == 1
        assert (await ledger.info()).kind == "server"
        again = await open_ledger(location, embedder)
        assert await again.count() == 1
        await again.close()

    async def test_a_new_collection_gets_its_indexes(self, embedder: WordEmbedder) -> None:
        with QdrantDouble() as double:
            await (await open_ledger(double.url, embedder)).close()
            assert double.requests.count("PUT /collections/mneme-000001/index") == 3

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
