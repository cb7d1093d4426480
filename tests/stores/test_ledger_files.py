"""The embedded ledger as files: many processes, sudden death, erasure that is real."""

import asyncio
import gc
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

import pytest

from mneme.core.errors import Damaged, LedgerMismatch, NotFound, StorageFailure
from mneme.stores.database import Cursor, Database, Sqlite
from mneme.stores.ledger import edge_index, index, search
from mneme.stores.ledger.index import Point
from mneme.stores.ledger.ledger import Ledger, open_ledger, reembed
from mneme.stores.ledger.log import commit
from mneme.stores.ledger.log import forget as erase
from mneme.stores.ledger.reading import State, entries_after
from mneme.stores.ledger.records import Forgotten, Version
from mneme.stores.ledger.verifying import verify
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledger_files import ROOT, check, files_with
from tests.doubles.ledgers import ALICE, SAID, forget, put
from tests.doubles.waiting import Turns, until

T = TypeVar("T")

KILLS = int(os.environ.get("MNEME_TEST_KILLS", "10"))


def start_writer(location: Path, seed: int = 0, forgetting: float = 0) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.doubles.ledger_writer", str(location), str(seed), str(forgetting)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def until_forgotten(output: IO[str]) -> list[str]:
    """Read a writer's lines up to the first that says that a record has been forgotten."""
    lines = [output.readline()]
    while not lines[-1].endswith(" 0\n"):
        lines.append(output.readline())
    return lines


def names_in(folder: Path, pattern: str = "*") -> list[str]:
    return [path.name for path in folder.glob(pattern)]


def objects_in_memory(kind: type[T]) -> list[T]:
    return [each for each in gc.get_objects() if type(each) is kind]


class TestOwnership:
    async def test_a_folder_that_was_deleted_is_let_go_and_missed_until_somebody_begins_anew(
        self, edge_location: str
    ) -> None:
        ledger = await open_ledger(edge_location, WordEmbedder())
        await put(ledger, "Ann lives in Oslo.")
        shutil.rmtree(edge_location)
        await ledger.close()
        for missed in (open_ledger(edge_location, WordEmbedder()), verify(edge_location)):
            with pytest.raises(Damaged, match="is gone") as refused:
                await missed
        note = f"{edge_location}-kept"
        assert f"remove {note}" in refused.value.hint
        os.unlink(note)  # noqa: PTH108
        await (await open_ledger(edge_location, WordEmbedder())).close()

    async def test_processes_write_read_and_search_beside_one_another(self, tmp_path: Path) -> None:
        writers = [start_writer(tmp_path / "ledger", seed, 0.1) for seed in (1, 2)]
        try:
            for writer in writers:
                assert writer.stdout is not None
                assert writer.stdout.readline() == "open\n"
            ledger = await open_ledger(str(tmp_path / "ledger"), WordEmbedder(dimension=8))
            for number in range(20):
                made = await put(ledger, f"tea {number}")
                found = await ledger.search(ALICE, f"tea {number}", mode="dense", limit=1)
                assert [hit.version for hit in found] == [made]
                assert await ledger.search(("users", "writer"), "record", limit=1) or number == 0
            gone = await put(ledger, "a secret")
            await forget(ledger, ALICE, gone.key, reason="", actor="")
            await ledger.close()
        finally:
            for writer in writers:
                writer.kill()
                writer.communicate()
        ledger = await open_ledger(str(tmp_path / "ledger"), WordEmbedder(dimension=8))
        assert await ledger.count(ALICE) == 20
        await ledger.close()
        assert (await verify(str(tmp_path / "ledger"))).problems == []

    async def test_one_process_may_open_it_often(self, tmp_path: Path, embedder: WordEmbedder) -> None:
        first, second = [await open_ledger(str(tmp_path / "ledger"), embedder) for _ in range(2)]
        made = await put(first, "tea")
        await first.close()
        await first.close()  # counts once
        assert await second.get(ALICE, made.key) == made
        await second.close()
        third = await open_ledger(str(tmp_path / "x" / ".." / "ledger"), embedder)
        assert await third.get(ALICE, made.key) == made
        await third.close()

    def test_it_serves_several_event_loops_and_threads_at_once(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        async def work(name: int) -> None:
            ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
            for number in range(40):
                await put(ledger, f"{name}/{number}", idempotency_key=f"{name}/{number}")
                assert await ledger.search(ALICE, f"{name}/{number}", mode="dense", limit=1)
            await ledger.close()

        async def count() -> int:
            ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
            counted = await ledger.count()
            await ledger.close()
            return counted

        threads = [threading.Thread(target=asyncio.run, args=(work(name),)) for name in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert asyncio.run(count()) == 240

    async def test_the_event_loop_never_waits(self, edge_ledger: Ledger) -> None:
        for batch in range(4):
            await asyncio.gather(*(put(edge_ledger, f"tea {batch} {n}") for n in range(100)))
        made = await put(edge_ledger, "a secret")
        async with Turns() as turns:
            await forget(edge_ledger, ALICE, made.key, reason="", actor="")  # copies the whole store
        assert turns.count > 10
        assert turns.longest < 0.05


class TestWhatIsNotALedger:
    async def test_a_folder_of_something_else_is_left_alone(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        (tmp_path / "letter.txt").write_text("dear")
        with pytest.raises(LedgerMismatch, match="nothing was touched"):
            await open_ledger(str(tmp_path), embedder)
        assert names_in(tmp_path) == ["letter.txt"]
        with pytest.raises(LedgerMismatch, match="is a file"):
            await open_ledger(str(tmp_path / "letter.txt"), embedder)

    async def test_an_empty_folder_becomes_a_ledger(self, tmp_path: Path, embedder: WordEmbedder) -> None:
        ledger = await open_ledger(str(tmp_path), embedder)
        await ledger.close()

    async def test_another_format_is_said(self, tmp_path: Path, embedder: WordEmbedder) -> None:
        await (await open_ledger(str(tmp_path), embedder)).close()
        with sqlite3.connect(tmp_path / "log.sqlite") as connection:
            connection.execute("UPDATE ledger_state SET format = 99")
        connection.close()
        (tmp_path / "mneme.seal").unlink()
        with pytest.raises(LedgerMismatch, match="format 99"):
            await open_ledger(str(tmp_path), embedder)


class TestEmbedders:
    @pytest.mark.parametrize("other", [WordEmbedder("test:other"), WordEmbedder(dimension=32)])
    async def test_another_embedder_is_refused_by_name(
        self, tmp_path: Path, embedder: WordEmbedder, other: WordEmbedder
    ) -> None:
        first = await open_ledger(str(tmp_path), embedder)
        for _ in range(2):  # open in this process, then closed
            with pytest.raises(LedgerMismatch, match=r"test:words \(64 dimensions\)") as refused:
                await open_ledger(str(tmp_path), other)
            assert "mneme memories reembed" in refused.value.hint
            await first.close() if _ == 0 else None

    async def test_reembedding_keeps_everything_and_changes_the_vectors(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        ledger = await open_ledger(str(tmp_path), embedder)
        made = [await put(ledger, f"tea {n}", idempotency_key=str(n)) for n in range(5)]
        await ledger.update(ALICE, made[0].key, {}, text="coffee", change=SAID, expected_version=1)
        await ledger.retire(ALICE, made[1].key, change=SAID, expected_version=1)
        await forget(ledger, ALICE, made[2].key, reason="asked", actor="alice")
        before = [line async for line in ledger.export()]
        copied: list[int] = []
        other = WordEmbedder("test:other", 32)
        assert await reembed(str(tmp_path), other, progress=copied.append) == 3
        assert copied
        with pytest.raises(LedgerMismatch, match="test:other"):  # who has it open goes on reading
            await put(ledger, "a vector of the former embedder")
        assert [line async for line in ledger.export()] == before
        await ledger.close()
        after = await open_ledger(str(tmp_path), other)
        assert [line async for line in after.export()] == before
        assert (await after.info()).embedder == "test:other"
        assert len(await after.forgotten()) == 1
        assert (await put(after, "again", idempotency_key="0")).text == "tea 0"
        assert [hit.version.text for hit in await after.search(ALICE, "coffee", limit=1)] == ["coffee"]
        await after.close()

    async def test_reembedding_that_fails_leaves_the_old_ledger(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        class Broken(WordEmbedder):
            async def embed_documents(self, texts: object) -> list[list[float]]:
                raise StorageFailure("The embedder is gone.")

        ledger = await open_ledger(str(tmp_path), embedder)
        made = await put(ledger, "tea")
        await ledger.close()
        with pytest.raises(StorageFailure):
            await reembed(str(tmp_path), Broken("test:broken", 16), progress=print)
        again = await open_ledger(str(tmp_path), embedder)
        assert await again.get(ALICE, made.key) == made
        assert [hit.version for hit in await again.search(ALICE, "tea", mode="dense")] == [made]
        await again.close()

    async def test_what_changes_beside_reembedding_has_the_vector_of_its_new_text(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        def interrupted(_: int) -> None:
            raise StorageFailure("Interrupted.")

        ledger, other = await open_ledger(str(tmp_path), embedder), WordEmbedder("test:other", 32)
        made = await put(ledger, "tea")
        with pytest.raises(StorageFailure):
            await reembed(str(tmp_path), other, progress=interrupted)
        await ledger.update(ALICE, made.key, {}, text="coffee", change=SAID, expected_version=1)
        await ledger.close()
        await reembed(str(tmp_path), other, progress=print)
        after = await open_ledger(str(tmp_path), other)
        [hit] = await after.search(ALICE, "coffee", mode="dense")
        assert hit.score > 0.99
        await after.close()

    async def test_there_must_be_a_ledger_to_reembed(self, tmp_path: Path, embedder: WordEmbedder) -> None:
        for path in (tmp_path, tmp_path / "nowhere"):
            with pytest.raises(LedgerMismatch):
                await reembed(str(path), embedder, progress=print)
        assert names_in(tmp_path) == []


class TestRebuilding:
    """An index is built anew while others write and search."""

    async def test_writers_and_readers_meanwhile_lose_nothing(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        ledger = await open_ledger(str(tmp_path), embedder)
        await ledger.search(ALICE, "tea")
        made = [await put(ledger, f"tea {n}") for n in range(10)]
        for each in made:
            await ledger.update(ALICE, each.key, {}, text=each.text, change=SAID, expected_version=1)
        [shard] = (tmp_path / "index-1").glob("0*")
        await asyncio.gather(
            asyncio.to_thread(ledger.rebuild_index),
            *(put(ledger, f"coffee {n}") for n in range(20)),
            *(ledger.search(ALICE, "tea") for _ in range(20)),
        )
        assert not shard.exists()
        assert await ledger.count(ALICE) == 30
        assert len(await ledger.search(ALICE, "coffee", limit=50)) == 30
        await ledger.close()
        again = await open_ledger(str(tmp_path), embedder)
        assert await again.count(ALICE) == 30
        await again.close()
        assert (await verify(str(tmp_path))).problems == []


class TestSuddenDeath:
    @pytest.mark.parametrize("kills", [3, pytest.param(KILLS, marks=pytest.mark.long)])
    async def test_kills_lose_nothing_that_was_acknowledged(self, tmp_path: Path, kills: int) -> None:
        acknowledged = await self.killed(tmp_path / "ledger", kills=kills, longest=0.25)
        ledger = await open_ledger(str(tmp_path / "ledger"), WordEmbedder(dimension=8))
        await check(ledger, {key: int(version) for key, version in acknowledged.items()})
        await ledger.close()
        assert acknowledged, "something was written between the kills"

    @pytest.mark.parametrize("kills", [2, pytest.param(KILLS, marks=pytest.mark.long)])
    async def test_kills_while_forgetting_forget_whole_records_and_no_others(
        self, tmp_path: Path, kills: int
    ) -> None:
        acknowledged = await self.killed(tmp_path / "ledger", kills=kills, longest=0.8, forgetting=0.3)
        forgotten = {key for key, version in acknowledged.items() if version == "0"}
        kept = {key: int(version) for key, version in acknowledged.items() if version not in "0?"}
        ledger = await open_ledger(str(tmp_path / "ledger"), WordEmbedder(dimension=8))
        await check(ledger, kept)
        left = {json.loads(line)["key"] async for line in ledger.export()}
        await ledger.close()
        assert forgotten
        assert not forgotten & left
        assert not files_with(tmp_path, *forgotten)

    async def killed(
        self, location: Path, kills: int, longest: float, forgetting: float = 0
    ) -> dict[str, str]:
        """Kill one writer after another; return the last line on each key that was acknowledged.

        The first one is killed only after it has forgotten a record, however slow the machine is.
        """
        chance = random.Random(7)
        acknowledged: dict[str, str] = {}
        for kill in range(kills):
            writer = start_writer(location, kill, forgetting)
            assert writer.stdout is not None
            assert writer.stdout.readline() == "open\n"
            lines = until_forgotten(writer.stdout) if forgetting and kill == 0 else []
            await asyncio.sleep(chance.uniform(0, longest))
            writer.send_signal(signal.SIGKILL)
            lines += writer.communicate()[0].splitlines(keepends=True)
            acknowledged |= dict(line.split() for line in lines if line.endswith("\n"))
        return acknowledged


class TestForgetting:
    async def test_no_file_holds_the_forgotten_words(self, tmp_path: Path, embedder: WordEmbedder) -> None:
        ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
        tokens = [random.Random(n).randbytes(12).hex() for n in range(4)]
        made = await put(ledger, f"the secret is {tokens[0]}", key=f"key-{tokens[3]}")
        await ledger.update(
            ALICE, made.key, {"content": tokens[1]}, text=tokens[1], change=SAID, expected_version=1
        )
        await put(ledger, f"this stays: {tokens[2]}")
        assert all(files_with(tmp_path, token) for token in tokens)
        await forget(ledger, ALICE, made.key, reason="asked", actor="alice")
        for _ in range(2):  # while it is open, and when it has been closed and opened again
            for token in (tokens[0], tokens[1], tokens[3]):
                assert files_with(tmp_path, token) == []
            assert files_with(tmp_path, tokens[2])
            await ledger.close()
            ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
        assert [version.value for version in await ledger.records(())] == [
            {"content": f"this stays: {tokens[2]}"}
        ]
        await ledger.close()

    async def test_whoever_verifies_lets_go_of_what_another_process_erased(
        self, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
        made = await put(ledger, "Ann lives in Oslo.")
        await ledger.search(ALICE, "Oslo")
        [shard] = names_in(tmp_path / "ledger" / "index-1", "0*")
        mark = Forgotten(at=made.at, reason="", actor="")
        erasing = partial(erase, heads=[made], rewritten=[], dropped=[], mark=mark)
        await ledger._log.write(erasing, erases=True)  # as another process does
        assert (await verify(str(tmp_path / "ledger"))).problems == []
        await ledger.close()
        assert shard not in names_in(tmp_path / "ledger" / "index-1"), "its files still hold the vector"

    async def test_a_search_that_began_before_an_erasure_keeps_nothing_in_memory(
        self, tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
        made = await put(ledger, "Ann lives in Oslo.", key="erased")
        await ledger.search(ALICE, "Oslo")
        index = ledger._store.index
        former = weakref.ref(index.opened())
        has_begun, is_erased = threading.Event(), threading.Event()

        def slow(cursor: Cursor, seq: int) -> list[tuple[str, str]]:
            entries = entries_after(cursor, seq)  # from now on the search sees this state of the log
            has_begun.set()
            is_erased.wait()
            return entries

        monkeypatch.setattr(search, "entries_after", slow)
        searching = asyncio.create_task(ledger.search(ALICE, "Oslo"))
        await until(has_begun.is_set)
        other = Sqlite(tmp_path / "ledger" / "log.sqlite")
        mark = Forgotten(at=made.at, reason="", actor="")
        commit(other, partial(erase, heads=[made], rewritten=[], dropped=[], mark=mark))
        other.close()
        await until(lambda: index.opened() is not former())
        is_erased.set()
        found = await searching
        assert [hit.version for hit in found] == [made]
        del made, searching, found
        await until(lambda: "erased" not in [each.key for each in objects_in_memory(Version)])
        await ledger.close()

    async def test_files_of_a_copy_in_use_are_replaced_soon_also_where_that_fails_at_first(
        self, tmp_path: Path, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ledger = await open_ledger(str(tmp_path / "ledger"), embedder)
        made = [await put(ledger, f"Ann lives in town {number}.") for number in range(3)]
        await ledger.search(ALICE, "town")
        [shard] = names_in(tmp_path / "ledger" / "index-1", "0*")
        failing = iter([True])

        def build(database: Database, upsert: Callable[[list[Point]], object]) -> State:
            if next(failing, False):
                raise StorageFailure("The disk is full.", "")
            return index.build(database, upsert)

        monkeypatch.setattr(edge_index, "build", build)
        for each in made[:2]:
            await forget(ledger, ALICE, each.key, reason="", actor="")
            assert each.key not in [hit.version.key for hit in await ledger.search(ALICE, "town")]
        shards = partial(names_in, tmp_path / "ledger" / "index-1", "0*")
        await until(lambda: len(now := shards()) == 1 and shard not in now)
        assert not next(failing, False)
        assert [hit.version for hit in await ledger.search(ALICE, "town")] == made[2:]
        await ledger.close()

    async def test_what_begins_anew_leaves_nothing_in_memory(self, edge_ledger: Ledger) -> None:
        await edge_ledger.search(ALICE, "Oslo")
        made = await edge_ledger.insert(ALICE, {"body": "Ann lives in Oslo."}, text="", change=SAID)
        await edge_ledger.forget_records(rewritten=[(made, {"body": None})])
        del made
        assert [each.value for each in objects_in_memory(Version) if each.value.get("body")] == []

    async def test_searches_go_on_while_something_is_forgotten(self, edge_ledger: Ledger) -> None:
        made = [await put(edge_ledger, f"tea {n}") for n in range(50)]

        async def keep_searching() -> None:
            while True:
                assert len(await edge_ledger.search(ALICE, "tea", limit=20, mode="dense")) == 20

        searching = [asyncio.create_task(keep_searching()) for _ in range(4)]
        for version in made[:5]:
            await forget(edge_ledger, ALICE, version.key, reason="", actor="")
        for task in searching:
            assert not task.done()
            task.cancel()
        assert await edge_ledger.count() == 45

    async def test_of_several_at_once_one_forgets(self, edge_ledger: Ledger) -> None:
        made = await put(edge_ledger, "tea")
        asked = [forget(edge_ledger, ALICE, made.key, reason="", actor=str(n)) for n in range(4)]
        told = await asyncio.gather(*asked, return_exceptions=True)
        [mark] = [each for each in told if isinstance(each, Forgotten)]
        assert sum(isinstance(each, NotFound) for each in told) == 3
        assert await edge_ledger.forgotten(ALICE) == [mark]
