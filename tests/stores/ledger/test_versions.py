"""Versions: what a write keeps, who wins a race, what a replay returns, and batches."""

import asyncio
import json
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mneme.core.errors import BadInput, Conflict, MnemeError, NotFound
from mneme.stores.ledger.checking import problems_of
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.log import Transaction
from mneme.stores.ledger.records import Source, Version, Write, make_write, record_id
from tests.doubles.ledgers import ALICE, BOB, SAID, forget, put, restore, rollback, texts
from tests.doubles.waiting import until


class TestVersions:
    async def test_an_insert_is_version_one_and_keeps_why_it_exists(self, ledger: Ledger) -> None:
        made = await put(ledger, "Max is a Labrador mix")
        assert (made.version, made.event, made.live, made.change) == (1, "insert", True, SAID)
        assert await ledger.get(ALICE, made.key) == made
        assert await ledger.history(ALICE, made.key) == [made]

    async def test_every_change_adds_a_version_and_none_is_overwritten(self, ledger: Ledger) -> None:
        first = await put(ledger, "Max is four")
        second = await ledger.update(
            ALICE, first.key, {"content": "Max is five"}, text="Max is five", change=SAID, expected_version=1
        )
        third = await ledger.retire(ALICE, first.key, change=SAID, expected_version=2)
        fourth = await restore(ledger, ALICE, first.key, change=SAID, expected_version=3)
        assert await ledger.history(ALICE, first.key) == [first, second, third, fourth]
        assert [version.event for version in (first, second, third, fourth)] == [
            "insert",
            "update",
            "retire",
            "restore",
        ]
        assert (fourth.value, fourth.text, fourth.live) == (second.value, second.text, True)
        assert first.at < second.at < third.at < fourth.at
        assert {version.created for version in (first, second, third, fourth)} == {first.at}

    async def test_values_come_back_exactly(self, ledger: Ledger) -> None:
        value: dict[str, Any] = {
            "z": 1,
            "a": [1, 2.5, None, True, {"deep": ["ü😀\u0000", -(2**63), 2**63 - 1]}],
            "one": 1.0,
            "tiny": 5e-324,
            "empty": {},
            'quo"te': "a.b",
        }
        made = await ledger.insert(ALICE, value, text="values", change=SAID)
        found = await ledger.get(ALICE, made.key)
        assert found is not None
        assert json.dumps(found.value) == json.dumps(value)

    async def test_what_cannot_be_kept_without_loss_is_refused(self, ledger: Ledger) -> None:
        refused: list[Any] = [float("nan"), float("inf"), 2**63, "\ud800", {1: 2}, object()]
        for value in refused:
            with pytest.raises(BadInput):
                await ledger.insert(ALICE, {"x": value}, text="", change=SAID)
        assert await ledger.count() == 0

    async def test_a_value_that_is_too_large_or_too_deep_is_refused(self, ledger: Ledger) -> None:
        deep: Any = 1
        for _ in range(100):
            deep = [deep]
        refused: list[dict[str, Any]] = [{"x": "y" * 9_000_000}, {"x": deep}]
        for value in refused:
            with pytest.raises(BadInput):
                await ledger.insert(ALICE, value, text="", change=SAID)

    async def test_diff_shows_what_changed(self, ledger: Ledger) -> None:
        made = await put(ledger, "Max is four")
        await ledger.update(
            ALICE, made.key, {"content": "Max is five"}, text="Max is five", change=SAID, expected_version=1
        )
        diff = await ledger.diff(ALICE, made.key, 1, 2)
        assert '-    "content": "Max is four"' in diff
        assert '+    "content": "Max is five"' in diff
        with pytest.raises(NotFound):
            await ledger.diff(ALICE, made.key, 1, 3)

    async def test_rollback_adds_a_version_that_equals_an_older_one(self, ledger: Ledger) -> None:
        made = await put(ledger, "Max barks")
        await ledger.update(ALICE, made.key, {}, text="Max sleeps", change=SAID, expected_version=1)
        back = await rollback(ledger, ALICE, made.key, 1)
        assert (back.version, back.value, back.text) == (3, made.value, made.text)
        assert await texts(ledger, "barks", mode="bm25") == ["Max barks"]
        await ledger.retire(ALICE, made.key, change=SAID, expected_version=3)
        again = await rollback(ledger, ALICE, made.key, 1)
        assert (again.event, again.live) == ("restore", True)
        gone = await rollback(ledger, ALICE, made.key, 4)
        assert (gone.event, gone.live) == ("retire", False)
        with pytest.raises(Conflict):
            await rollback(ledger, ALICE, made.key, 1, expected_version=2)

    async def test_as_of_is_the_past_as_it_was(self, ledger: Ledger) -> None:
        before = datetime.now(UTC) - timedelta(seconds=1)
        first = await put(ledger, "one")
        second = await put(ledger, "two")
        changed = await ledger.update(
            ALICE, first.key, {}, text="one, changed", change=SAID, expected_version=1
        )
        retired = await ledger.retire(ALICE, second.key, change=SAID, expected_version=1)
        await put(ledger, "somebody else's", BOB)

        async def then(at: datetime) -> set[str]:
            return {version.text for version in await ledger.as_of(ALICE, at)}

        assert await then(before) == set()
        assert await then(first.at) == {"one"}
        assert await then(second.at) == {"one", "two"}
        assert await then(changed.at) == {"one, changed", "two"}
        assert await then(retired.at) == {"one, changed"}
        with pytest.raises(BadInput):
            await ledger.as_of(ALICE, datetime(2026, 1, 1))

    async def test_what_is_not_there_is_said_so(self, ledger: Ledger) -> None:
        assert await ledger.get(ALICE, "nothing") is None
        for call in (
            ledger.history(ALICE, "nothing"),
            ledger.retire(ALICE, "nothing", change=SAID, expected_version=1),
            ledger.update(ALICE, "nothing", {}, text="", change=SAID, expected_version=1),
            rollback(ledger, ALICE, "nothing", 1),
            forget(ledger, ALICE, "nothing", reason="", actor=""),
        ):
            with pytest.raises(NotFound):
                await call


class TestCompareAndSet:
    async def test_the_second_writer_of_a_version_gets_a_conflict(self, ledger: Ledger) -> None:
        made = await put(ledger, "Max is four")
        await ledger.update(ALICE, made.key, {}, text="first", change=SAID, expected_version=1)
        with pytest.raises(Conflict, match="at version 2, not 1"):
            await ledger.update(ALICE, made.key, {}, text="second", change=SAID, expected_version=1)
        with pytest.raises(Conflict):
            await ledger.insert(ALICE, {}, text="third", change=SAID, key=made.key)
        assert [version.text for version in await ledger.history(ALICE, made.key)] == ["Max is four", "first"]

    async def test_retired_records_are_not_updated_and_live_ones_not_restored(self, ledger: Ledger) -> None:
        made = await put(ledger, "Max")
        with pytest.raises(Conflict):
            await restore(ledger, ALICE, made.key, change=SAID, expected_version=1)
        await ledger.retire(ALICE, made.key, change=SAID, expected_version=1)
        with pytest.raises(Conflict):
            await ledger.update(ALICE, made.key, {}, text="", change=SAID, expected_version=2)
        with pytest.raises(Conflict):
            await ledger.retire(ALICE, made.key, change=SAID, expected_version=2)

    async def test_of_eight_racing_updates_one_wins(self, ledger: Ledger) -> None:
        made = await put(ledger, "start")
        for expected in range(1, 11):
            tried = await asyncio.gather(
                *(
                    ledger.update(
                        ALICE, made.key, {"by": n}, text=f"by {n}", change=SAID, expected_version=expected
                    )
                    for n in range(8)
                ),
                return_exceptions=True,
            )
            [won] = [outcome for outcome in tried if isinstance(outcome, Version)]
            assert sum(isinstance(outcome, Conflict) for outcome in tried) == 7
            assert await ledger.get(ALICE, made.key) == won
        assert [version.version for version in await ledger.history(ALICE, made.key)] == [*range(1, 12)]

    async def test_eight_writers_lose_nothing_and_double_nothing(self, ledger: Ledger) -> None:
        async def writer(name: int) -> None:
            for number in range(10):
                text = f"writer {name} record {number}"
                await put(ledger, text, ("users", f"u{name % 4}"), idempotency_key=f"{name}/{number}")

        await asyncio.gather(*map(writer, range(8)))
        kept = [version.text for version in await ledger.records((), limit=10_000)]
        wanted = [f"writer {name} record {number}" for name in range(8) for number in range(10)]
        assert sorted(kept) == sorted(wanted)
        assert await ledger.count() == 80
        assert len([line async for line in ledger.export()]) == 80


class TestReplays:
    async def test_a_replayed_insert_returns_the_first_one(self, ledger: Ledger) -> None:
        first = await put(ledger, "Max", idempotency_key="task 7")
        await ledger.update(ALICE, first.key, {}, text="Max, changed", change=SAID, expected_version=1)
        assert await put(ledger, "Max, put in other words", idempotency_key="task 7") == first
        assert await ledger.count(ALICE) == 1

    async def test_a_replayed_update_returns_what_it_wrote_then(self, ledger: Ledger) -> None:
        made = await put(ledger, "Max")
        change: dict[str, Any] = {"value": {}, "text": "changed", "change": SAID, "idempotency_key": "task 8"}
        done = await ledger.update(ALICE, made.key, expected_version=1, **change)
        assert await ledger.update(ALICE, made.key, expected_version=1, **change) == done
        assert await ledger.update(ALICE, made.key, expected_version=2, **change) == done
        await ledger.update(ALICE, made.key, {}, text="later", change=SAID, expected_version=2)
        assert await ledger.update(ALICE, made.key, expected_version=3, **change) == done
        assert len(await ledger.history(ALICE, made.key)) == 3

    async def test_the_same_key_in_another_namespace_is_another_write(self, ledger: Ledger) -> None:
        await put(ledger, "Max", idempotency_key="task 7")
        await put(ledger, "Tea", BOB, idempotency_key="task 7")
        assert await ledger.count() == 2

    async def test_racing_replays_write_once(self, ledger: Ledger) -> None:
        made = await asyncio.gather(*(put(ledger, "Max", idempotency_key="task 7") for _ in range(8)))
        assert len({version.model_dump_json() for version in made}) == 1
        assert await ledger.count() == 1

    async def test_a_forgotten_write_is_not_brought_back_by_its_replay(self, ledger: Ledger) -> None:
        made = await put(ledger, "Max", idempotency_key="task 7")
        await forget(ledger, ALICE, made.key, reason="asked", actor="alice")
        with pytest.raises(NotFound, match="forgotten"):
            await put(ledger, "Max", idempotency_key="task 7")
        assert await ledger.count() == 0


class TestBatches:
    async def test_a_batch_may_write_one_record_twice(self, ledger: Ledger) -> None:
        insert = Write(event="insert", namespace=ALICE, key="k", value={"n": 1}, text="one", change=SAID)
        update = insert.model_copy(update={"event": "update", "value": {"n": 2}, "expected_version": 1})
        made = await ledger.write([insert, update])
        assert [version.version for version in made] == [1, 2]
        assert await ledger.get(ALICE, "k") == made[1]

    async def test_an_empty_batch_writes_nothing(self, ledger: Ledger) -> None:
        assert await ledger.write([]) == []

    async def test_a_refused_batch_is_not_half_stored_on_edge(self, edge_ledger: Ledger) -> None:
        await put(edge_ledger, "taken", key="k")
        fresh, taken, other = (
            make_write(event="insert", namespace=ALICE, key=key, value={}, text="fresh", change=SAID)
            for key in (None, "k", None)
        )
        with pytest.raises(Conflict):
            await edge_ledger.write([fresh, taken, other])
        assert await edge_ledger.count() == 1

    async def test_only_the_one_that_fails_fails_where_writes_share_a_transaction(
        self, ledger: Ledger
    ) -> None:
        log, begun, goes_on = ledger._log, threading.Event(), threading.Event()

        def waits(_: Transaction) -> None:
            begun.set()
            goes_on.wait()

        def divides(transaction: Transaction) -> None:
            transaction.cursor.execute("DELETE FROM ledger_heads")
            transaction.delete("heads", [record_id(ALICE, "tea")])
            raise ZeroDivisionError

        def asks(transaction: Transaction) -> None:
            transaction.cursor.execute("SELECT * FROM nothing")

        def adds_half_a_row(transaction: Transaction) -> None:
            transaction.rows["sources"] += [("too", "few")]  # only the writing of the rows fails

        first = asyncio.create_task(log.write(waits))
        await asyncio.to_thread(begun.wait)
        works = [put(ledger, "tea", key="tea"), *map(log.write, (divides, asks, adds_half_a_row))]
        together = [asyncio.create_task(each) for each in [*works, put(ledger, "coffee", key="coffee")]]
        await until(lambda: len(log._waiting) == len(together))
        goes_on.set()
        await first
        tea, *failed, coffee = await asyncio.gather(*together, return_exceptions=True)
        assert isinstance(failed[0], ZeroDivisionError)
        assert isinstance(failed[1], MnemeError)
        assert isinstance(failed[2], Exception)
        assert [await ledger.history(ALICE, key) for key in ("tea", "coffee")] == [[tea], [coffee]]
        assert problems_of(log.database) == []

    async def test_a_source_that_names_no_version_is_refused(self, ledger: Ledger) -> None:
        made = await put(ledger, "tea", key="k")
        for named in ("k", f"{made.record}@first", f"a\x00@{2**70}"):
            change = SAID.model_copy(update={"source": Source(records=[named])})
            with pytest.raises(BadInput, match="source"):
                await ledger.insert(ALICE, {}, text="coffee", change=change)
        assert await ledger.count() == 1
