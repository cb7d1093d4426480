"""A real Qdrant server that is killed, asked with a wrong key, and searched for what was forgotten."""

import asyncio
import random

import pytest

from mneme.core.errors import Conflict, StorageFailure
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change, Version
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledger_files import files_with
from tests.doubles.ledgers import forget
from tests.doubles.qdrant_server import KEY, QdrantServer
from tests.doubles.waiting import until

ALICE = ("users", "alice", "memories")
SAID = Change(reason="said so", actor="agent")
KEYS = ["a", "b", "c"]

pytestmark = pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection")  # to 127.0.0.1


async def opened(server: QdrantServer, embedder: WordEmbedder) -> Ledger:
    return await open_ledger(f"{server.folder / 'log'}|{server.url}", embedder, api_key=KEY)


class Writer:
    """One of several that change the same records."""

    def __init__(self, ledger: Ledger, name: int) -> None:
        self.ledger, self.chance = ledger, random.Random(name)
        self.acknowledged: list[Version] = []

    async def go_on(self) -> None:
        while True:
            try:
                await self.change(self.chance.choice(KEYS))
            except Conflict:
                continue

    async def change(self, key: str) -> None:
        head = await self.ledger.get(ALICE, key)
        assert head is not None
        text = self.chance.randbytes(8).hex()  # no stem of another: shards weigh words each by themselves
        done = await self.ledger.update(
            ALICE, key, {"said": text}, text=text, change=SAID, expected_version=head.version
        )
        self.acknowledged.append(done)


async def all_wrote(writers: list[Writer]) -> None:
    before = [len(writer.acknowledged) for writer in writers]
    await until(lambda: all(len(w.acknowledged) > n for w, n in zip(writers, before, strict=True)))


async def test_kills_lose_nothing_that_eight_writers_were_told_is_kept(
    own_qdrant: QdrantServer, embedder: WordEmbedder
) -> None:
    writers = [Writer(await opened(own_qdrant, embedder), name) for name in range(8)]
    for key in KEYS:
        await writers[0].ledger.insert(ALICE, {}, text="start", change=SAID, key=key)
    async with asyncio.TaskGroup() as running:
        tasks = [running.create_task(writer.go_on()) for writer in writers]
        for _ in range(3):
            await all_wrote(writers)
            own_qdrant.kill()
            await all_wrote(writers)  # the log is enough to write; only a search needs the server
            with pytest.raises(StorageFailure) as failure:
                await writers[0].ledger.search(ALICE, "start")
            assert failure.value.hint
            await asyncio.to_thread(own_qdrant.start)
        await all_wrote(writers)
        for task in tasks:
            task.cancel()
    own_qdrant.kill()
    own_qdrant.start()
    again = await opened(own_qdrant, embedder)
    await everything_is_there(again, writers)
    for ledger in (again, *(writer.ledger for writer in writers)):
        await ledger.close()


async def everything_is_there(ledger: Ledger, writers: list[Writer]) -> None:
    """Hold each acknowledged version against the history, and each head against the search."""
    histories = {key: await ledger.history(ALICE, key) for key in KEYS}
    for done in (done for writer in writers for done in writer.acknowledged):
        assert histories[done.key][done.version - 1] == done
    for versions in histories.values():
        assert [version.version for version in versions] == [*range(1, len(versions) + 1)]
        for mode in ("dense", "bm25", "hybrid", "blend"):
            hits = await ledger.search(ALICE, versions[-1].text, mode=mode, limit=1)
            assert [hit.version for hit in hits] == [versions[-1]]


@pytest.mark.long
@pytest.mark.parametrize("layout", ["replicas=3", "replicas=2&writes=1"])
async def test_a_cluster_goes_on_without_any_one_of_its_nodes(
    layout: str, own_cluster: list[QdrantServer], embedder: WordEmbedder
) -> None:
    nodes = ",".join(node.url for node in own_cluster)
    location = f"{own_cluster[0].folder / 'log'}|{nodes}?shards=3&{layout}"
    writers = [Writer(await open_ledger(location, embedder, api_key=KEY), name) for name in range(8)]
    for key in KEYS:
        await writers[0].ledger.insert(ALICE, {}, text="start", change=SAID, key=key)
    async with asyncio.TaskGroup() as running:
        tasks = [running.create_task(writer.go_on()) for writer in writers]
        for node in own_cluster:
            await all_wrote(writers)
            await asyncio.to_thread(node.kill)
            await all_wrote(writers)
            await asyncio.to_thread(node.start)
            await all_are_in_use(writers[0].ledger)
        await all_wrote(writers)
        for task in tasks:
            task.cancel()
    again = await open_ledger(location, embedder, api_key=KEY)
    await everything_is_there(again, writers)
    for ledger in (again, *(writer.ledger for writer in writers)):
        await ledger.close()


async def all_are_in_use(ledger: Ledger) -> None:
    """Wait until every replica has caught up with what was written without it."""
    while (layout := (await ledger.info()).layout) and layout.not_in_use:  # noqa: ASYNC110
        await asyncio.sleep(0.1)


async def test_a_wrong_key_is_said(own_qdrant: QdrantServer, embedder: WordEmbedder) -> None:
    for key in ("", "wrong"):
        with pytest.raises(StorageFailure, match=r"40[13]") as refused:
            await open_ledger(f"{own_qdrant.folder / 'log'}|{own_qdrant.url}", embedder, api_key=key)
        assert "MNEME_LEDGER_API_KEY" in refused.value.hint


async def test_no_text_is_in_a_file_of_the_server(own_qdrant: QdrantServer, embedder: WordEmbedder) -> None:
    forgotten, kept = (random.Random(n).randbytes(12).hex() for n in range(2))
    ledger = await opened(own_qdrant, embedder)
    for token in (forgotten, kept):
        await ledger.insert(ALICE, {"said": token}, text=f"the word is {token}", change=SAID, key=token)
    await forget(ledger, ALICE, forgotten, reason="asked", actor="alice")
    await ledger.close()
    own_qdrant.kill()
    assert not files_with(own_qdrant.folder, forgotten)
    assert not files_with(own_qdrant.folder / "storage", kept)
