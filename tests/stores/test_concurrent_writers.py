"""Writers at the same time: some order of what they did explains what each was told, and what is left."""

import asyncio
import fcntl
import shutil
import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test

from mneme.core.errors import Conflict, NotFound
from mneme.stores import database
from mneme.stores.database import Sqlite, kept_of
from mneme.stores.ledger import edge_index
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.verifying import verify
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import ALICE, forget, put
from tests.doubles.qdrant_server import NO_SERVER, URL
from tests.stores.test_ledger_model import (
    NAMESPACES,
    SAID,
    AgainstADictionary,
    Known,
    OnADouble,
    OnQdrant,
    keys,
    texts,
)

NAMESPACE = NAMESPACES[0]
Ask = tuple[str, str, str, int]
"""What is asked for, of which key, with which text, and the version that is expected."""
Histories = dict[Any, list[Known]]
asks = st.tuples(st.sampled_from(["insert", "update", "retire", "forget"]), keys, texts, st.integers(1, 6))


class AtOnce(AgainstADictionary):
    """The histories in a dictionary, and several clients of one ledger beside one another."""

    @rule(asked=st.lists(asks, min_size=2, max_size=4))
    def at_once(self, asked: list[Ask]) -> None:
        done, left = self.run(self.together(asked))
        for order in permutations(range(len(asked))):
            known, before = {record: [*each] for record, each in self.known.items()}, self.before.copy()
            if all(applied(known, before, asked[n]) in done[n] for n in order) and known == left:
                self.known, self.before = known, before
                return
        raise AssertionError(f"no order explains {asked}: {done}, {left}, from {self.known}")

    async def together(self, asked: list[Ask]) -> tuple[list[set[bool]], Histories]:
        """Return of each whether it was done, both where it cannot know; and the histories afterwards."""
        clients = [await open_ledger(self.location, WordEmbedder(dimension=8)) for _ in asked]
        works = [act(client, ask) for client, ask in zip(clients, asked, strict=True)]
        done = await asyncio.gather(*works)
        left: Histories = {}
        for line in await self.ledger.records((), limit=1000, include_retired=True):
            versions = await self.ledger.history(line.namespace, line.key)
            left[line.namespace, line.key] = [(each.text, each.live) for each in versions]
        for client in clients:
            await client.close()
        return done, left


async def act(ledger: Ledger, ask: Ask) -> set[bool]:
    kind, key, text, seen = ask
    given: dict[str, Any] = {"change": SAID}
    try:
        match kind:
            case "insert":
                await ledger.insert(NAMESPACE, {"t": text}, text=text, key=key, **given)
            case "update":
                await ledger.update(NAMESPACE, key, {"t": text}, text=text, expected_version=seen, **given)
            case "retire":
                await ledger.retire(NAMESPACE, key, expected_version=seen, **given)
            case _:
                await forget(ledger, NAMESPACE, key, reason="", actor="")
    except NotFound:  # an insertion was there for a moment, and forgotten at once; or never
        return {True, False} if kind == "insert" else {False}
    except Conflict:  # a forgetting may lose against a write
        return {False}
    return {True}


def applied(known: Histories, before: Counter[Any], ask: Ask) -> bool:
    """Do it to the dictionary, and say whether it was allowed."""
    kind, key, text, seen = ask
    record = (NAMESPACE, key)
    history = known.get(record, [])
    newest = before[record] + len(history)
    if kind == "insert":
        allowed, new = not history, (text, True)
    elif kind == "forget":
        before[record] += len(known.pop(record, []))
        return bool(history)
    else:
        allowed = bool(history) and newest == seen and history[-1][1]
        new = (text, True) if kind == "update" else (history[-1][0] if history else "", False)
    if allowed:
        known[record] = [*history, new]
    return allowed


class AtOnceOnADouble(AtOnce, OnADouble):
    """The same, with the index on a server."""


class AtOnceOnQdrant(AtOnce, OnQdrant):
    """The same, on a real server."""


def explored(machine: type[AtOnce], examples: int, steps: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


MACHINES = [
    AtOnce,
    AtOnceOnADouble,
    pytest.param(AtOnceOnQdrant, marks=pytest.mark.skipif(not URL, reason=NO_SERVER)),
]


@pytest.mark.parametrize("machine", MACHINES)
def test_compare_and_set_holds_among_concurrent_writers(machine: type[AtOnce]) -> None:
    explored(machine, 5, 15)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("machine", MACHINES)
def test_it_holds_in_long_histories(machine: type[AtOnce]) -> None:
    explored(machine, 30, 30)


async def test_a_writer_goes_on_where_who_has_the_turn_does_not(
    edge_location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "TURN_SECONDS", 0.05)
    ledger = await open_ledger(edge_location, WordEmbedder())
    first = await put(ledger, "Ann lives in Oslo.")
    with kept_of(Path(edge_location)).open("rb") as stopped:
        fcntl.flock(stopped, fcntl.LOCK_EX)
        second = await put(ledger, "Ann has a dog.")
        await forget(ledger, ALICE, first.key, reason="", actor="")
    assert await ledger.records(()) == [second]
    await ledger.close()
    assert (await verify(edge_location)).problems == []


async def test_a_note_that_may_not_be_written_stops_nobody(edge_location: str) -> None:
    ledger = await open_ledger(edge_location, WordEmbedder())
    note = kept_of(Path(edge_location))
    note.unlink()
    note.mkdir()
    made = await put(ledger, "Ann lives in Oslo.")
    note.rmdir()
    assert await ledger.records(()) == [made]
    await ledger.close()


async def test_nobody_else_takes_a_copy_while_it_is_removed(
    edge_location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_index, "FOLLOW_SECONDS", 60)  # its files are not replaced before it is closed
    ledger = await open_ledger(edge_location, WordEmbedder())
    made = await put(ledger, "Ann lives in Oslo.")
    await ledger.search(ALICE, "Oslo")
    await forget(ledger, ALICE, made.key, reason="", actor="")
    remove, removed = shutil.rmtree, list[str]()

    def removing(path: Path, *, ignore_errors: bool) -> None:
        removed.append(path.name)
        with path.with_name(f"{path.name}.lock").open() as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", removing)
    await ledger.close()
    assert removed == ["index-1"]


def test_others_write_while_an_erasure_waits_for_a_long_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOG_SECONDS", 0.1)
    file = tmp_path / "log.sqlite"
    log, other = Sqlite(file), Sqlite(file)
    with log.writing() as cursor:
        cursor.execute("CREATE TABLE texts (text)")
    with ThreadPoolExecutor() as threads, other.reading(snapshot=True) as reading:
        reading.execute("SELECT * FROM texts").fetchall()
        with log.writing() as cursor:
            cursor.execute("INSERT INTO texts VALUES ('erased')")
        erasing = threads.submit(log.erased)
        while not is_locked(file):
            assert not erasing.done()
        with other.writing() as cursor:
            cursor.execute("INSERT INTO texts VALUES ('stays')")
        assert not erasing.done()
    assert file.with_name("log.sqlite-wal").read_bytes() == b""
    log.close()
    other.close()


def is_locked(file: Path) -> bool:
    with closing(sqlite3.connect(file, timeout=0)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
    return False
