"""The ledger's promises, each on both engines."""

import asyncio
import itertools
import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from mneme.core.errors import BadInput, Conflict, NotFound
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.query import Mode, Ranking
from mneme.stores.ledger.records import Change, Source, Version, Write, record_id
from mneme.stores.ledger.writing import Forgotten
from tests.doubles.embedding import WordEmbedder

ALICE, BOB = ("users", "alice", "memories"), ("users", "bob", "memories")
SAID = Change(reason="the user said so", actor="memory agent", source=Source(thread="t1", messages=["m1"]))


PASSING: list[tuple[dict[str, Any], set[int]]] = [
    ({"kind": "episodic"}, {1, 3}),
    ({"kind": {"$eq": "episodic"}, "score": {"$gt": 1}}, {3}),
    ({"kind": {"$ne": "episodic"}}, {0, 2, 4}),
    ({"score": 2}, {2}),
    ({"score": {"$gte": 1, "$lt": 3}}, {1, 2}),
    ({"score": {"$lte": 1.5}}, {0, 1}),
    ({"flag": True}, {0, 2}),
    ({"flag": {"$ne": True}}, {1, 3, 4}),
    ({"tags": "t1"}, {1, 2}),
    ({"tags": {"$in": ["t0", "t3"]}}, {0, 1, 3, 4}),
    ({"place": {"city": "Oslo"}}, {0}),
    ({"place": {"city": {"$ne": "Oslo"}}}, {1, 2, 3, 4}),
    ({"a.b": 3}, {3}),
    ({"missing": None}, {0, 1, 2, 3, 4}),
    ({"only": {"$ne": None}}, {4}),
    ({"when": {"$gte": "2026-01-03T00:00:00+00:00"}}, {2, 3, 4}),
    ({}, {0, 1, 2, 3, 4}),
]
"""Filters, and the numbers of the records that pass."""


async def put(ledger: Ledger, text: str, namespace: tuple[str, ...] = ALICE, **more: Any) -> Version:
    value: dict[str, Any] = {"content": text, **more.pop("value", {})}
    return await ledger.insert(namespace, value, text=text, change=SAID, **more)


async def texts(ledger: Ledger, query: str, namespace: tuple[str, ...] = ALICE, **more: Any) -> list[str]:
    return [hit.version.text for hit in await ledger.search(namespace, query, **more)]


@pytest.fixture(params=["edge", "double", "team"])
def location(request: pytest.FixtureRequest) -> str:
    """Name a place on each engine: here each log is with each index."""
    return str(request.getfixturevalue(f"{request.param}_location"))


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
        fourth = await ledger.restore(ALICE, first.key, change=SAID, expected_version=3)
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
        back = await ledger.rollback(ALICE, made.key, 1, change=SAID)
        assert (back.version, back.value, back.text) == (3, made.value, made.text)
        assert await texts(ledger, "barks", mode="bm25") == ["Max barks"]
        await ledger.retire(ALICE, made.key, change=SAID, expected_version=3)
        again = await ledger.rollback(ALICE, made.key, 1, change=SAID)
        assert (again.event, again.live) == ("restore", True)
        gone = await ledger.rollback(ALICE, made.key, 4, change=SAID)
        assert (gone.event, gone.live) == ("retire", False)
        with pytest.raises(Conflict):
            await ledger.rollback(ALICE, made.key, 1, change=SAID, expected_version=2)

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
            ledger.rollback(ALICE, "nothing", 1, change=SAID),
            ledger.forget(ALICE, "nothing", reason="", actor=""),
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
            await ledger.restore(ALICE, made.key, change=SAID, expected_version=1)
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
        await ledger.forget(ALICE, made.key, reason="asked", actor="alice")
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
        fresh = Write(event="insert", namespace=ALICE, value={}, text="fresh", change=SAID)
        with pytest.raises(Conflict):
            await edge_ledger.write([fresh, fresh.model_copy(update={"key": "k"}), fresh])
        assert await edge_ledger.count() == 1


class TestSearch:
    async def test_the_three_modes_find_and_say_their_parts(self, ledger: Ledger) -> None:
        for text in ("Max is a Labrador mix", "The user drinks green tea", "Anna plays the violin"):
            await put(ledger, text)
        wanted: dict[Mode, set[str]] = {"dense": {"dense"}, "bm25": {"bm25"}, "hybrid": {"dense", "bm25"}}
        for mode, parts in wanted.items():
            hits = await ledger.search(ALICE, "which tea is drunk?", mode=mode)
            assert hits[0].version.text == "The user drinks green tea"
            assert set(hits[0].parts) == parts
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert len(await ledger.search(ALICE, "tea", mode="bm25")) == 1

    async def test_a_search_never_leaves_its_prefix(self, ledger: Ledger) -> None:
        await put(ledger, "Alice drinks tea")
        await put(ledger, "Bob drinks tea", BOB)
        await put(ledger, "Ali drinks tea", ("users", "ali"))
        assert await texts(ledger, "tea") == ["Alice drinks tea"]
        assert await texts(ledger, "tea", ("users", "ali")) == ["Ali drinks tea"]
        assert await texts(ledger, "tea", ("users", "al")) == []
        assert len(await texts(ledger, "tea", ())) == 3

    async def test_others_texts_do_not_change_a_users_ranking(self, ledger: Ledger) -> None:
        for text in ("tea in the garden", "the garden gate", "a tea cup"):
            await put(ledger, text)
        before = await ledger.search(ALICE, "garden tea", mode="bm25")
        for number in range(50):
            await put(ledger, f"tea number {number}", BOB)
        after = await ledger.search(ALICE, "garden tea", mode="bm25")
        assert {hit.version.text: hit.score for hit in after} == {
            hit.version.text: hit.score for hit in before
        }

    async def test_search_sees_the_current_version_only_and_nothing_retired(self, ledger: Ledger) -> None:
        made = await put(ledger, "The user drinks tea")
        await ledger.update(
            ALICE, made.key, {}, text="The user drinks coffee", change=SAID, expected_version=1
        )
        assert await texts(ledger, "tea", mode="bm25") == []
        assert await texts(ledger, "coffee", mode="bm25") == ["The user drinks coffee"]
        await ledger.retire(ALICE, made.key, change=SAID, expected_version=2)
        for mode in ("dense", "bm25", "hybrid", "blend"):
            assert await texts(ledger, "coffee", mode=mode) == []
        await ledger.restore(ALICE, made.key, change=SAID, expected_version=3)
        assert await texts(ledger, "coffee") == ["The user drinks coffee"]

    async def test_limit_offset_and_least_score(self, ledger: Ledger) -> None:
        for number in range(12):
            await put(ledger, f"tea {'green ' * (number + 1)}")
        everything = await texts(ledger, "green tea", limit=20)
        assert len(everything) == 12
        for mode in ("dense", "bm25", "hybrid", "blend"):
            whole = await texts(ledger, "green tea", limit=20, mode=mode)
            assert await texts(ledger, "green tea", limit=5, offset=5, mode=mode) == whole[5:10]
        best = (await ledger.search(ALICE, "green tea", mode="dense"))[0].score
        assert len(await texts(ledger, "green tea", mode="dense", min_score=best - 1e-4)) < 12
        assert await texts(ledger, "green tea", limit=0) == []

    async def test_a_query_without_words_finds_nothing_by_words(self, ledger: Ledger) -> None:
        await put(ledger, "the user is here")
        assert await texts(ledger, "   ") == []
        assert await texts(ledger, "the", mode="bm25") == []
        assert await texts(ledger, "the", mode="hybrid") == ["the user is here"]

    async def test_records_without_text_are_listed_but_not_found(self, ledger: Ledger) -> None:
        await ledger.insert(ALICE, {"content": "tea"}, text="", change=SAID)
        await put(ledger, "tea")
        assert await texts(ledger, "tea") == ["tea"]
        assert len(await ledger.records(ALICE)) == 2

    async def test_a_filter_keeps_what_passes(self, ledger: Ledger) -> None:
        for n in range(5):
            value: dict[str, Any] = {
                "n": n,
                "kind": ("semantic", "episodic")[n % 2],
                "score": float(n) if n % 3 else n,
                "flag": n % 2 == 0 if n < 4 else None,
                "tags": [f"t{n}", f"t{n - 1}"],
                "place": {"city": "Oslo" if n == 0 else f"c{n}"},
                "a.b": n,
                "when": f"2026-01-0{n + 1}T12:00:00+00:00",
            }
            await put(ledger, f"tea {n}", value=value | ({"only": 1} if n == 4 else {}))
        for wanted, found in PASSING:
            hits = await ledger.search(ALICE, "tea", filter=wanted)
            assert {hit.version.value["n"] for hit in hits} == found, wanted
            listed = await ledger.records(ALICE, filter=wanted)
            assert [version.value["n"] for version in listed] == sorted(found), wanted

    async def test_filters_that_mean_nothing_are_refused(self, ledger: Ledger) -> None:
        refused: list[Any] = [
            {"x": {"$like": "a"}},
            {'x"y': 1},
            {"": 1},
            {"x": {"$gt": "tall"}},
            {"x": {"$in": []}},
            {"x": {"$in": [1, "a"]}},
            {"x": [1]},
        ]
        for wanted in refused:
            with pytest.raises(BadInput):
                await ledger.records(ALICE, filter=wanted)

    async def test_a_list_that_cannot_be_ranked_is_named(self, edge_ledger: Ledger) -> None:
        weights: dict[str, JsonValue] = {"word": "high", "none": None, "number": 1.0, "list": [1, 2]}
        for key, weight in weights.items():
            await edge_ledger.insert(ALICE, {"weight": weight}, text="tea", change=SAID, key=key)
        ranking = Ranking(fields={"weight": 1.0})
        with pytest.raises(BadInput, match="list in users/alice/memories cannot be ranked: its weight"):
            await edge_ledger.search(ALICE, "tea", mode="dense", ranking=ranking)
        await edge_ledger.retire(ALICE, "list", change=SAID, expected_version=1)
        hits = await edge_ledger.search(ALICE, "tea", mode="dense", ranking=ranking)
        assert (hits[0].version.key, len(hits)) == ("number", 3)

    async def test_sections_hold_what_their_filter_lets_through(self, edge_ledger: Ledger) -> None:
        def card(key: str, world: str, shelf: str) -> Write:
            value: dict[str, JsonValue] = {"world": world}
            write = Write(event="insert", namespace=ALICE, key=key, value=value, text="tea", change=SAID)
            return write.model_copy(update={"shelf": shelf})

        async def found() -> set[str]:
            wanted = {"world": {"$in": ["", "sql"]}}
            hits = await edge_ledger.search(ALICE, "tea", filter=wanted, sections=("", "sql"), shelf="on")
            return {hit.version.key for hit in hits}

        await edge_ledger.write([card("a", "sql", "on/sql"), card("b", "go", "on/go"), card("c", "", "on/")])
        assert await found() == {"a", "c"}
        await edge_ledger.write([card("d", "sql", "off/sql"), card("e", "sql", "on/sql")])
        assert await found() == {"a", "c", "e"}
        await edge_ledger.write([card("f", "sql", "on"), card("g", "go", "on")])  # as older versions did
        assert await found() == {"a", "c", "e", "f"}

    async def test_a_namespace_that_comes_later_is_found_below_one_that_stood_alone(
        self, edge_ledger: Ledger
    ) -> None:
        for namespace in (("ann",), ("bob",), ("ann", "home")):
            await put(edge_ledger, "a cat", namespace)
            hits = await edge_ledger.search(namespace[:1], "a cat", mode="blend")
            assert namespace in {hit.version.namespace for hit in hits}
        assert len(await edge_ledger.search(("ann",), "a cat", mode="blend")) == 2

    async def test_a_ranking_is_computed_in_the_engine(self, ledger: Ledger) -> None:
        for n, confidence in enumerate((0.1, 0.9, 0.5)):
            await put(ledger, "the same card", value={"confidence": confidence, "n": n})
        await put(ledger, "the same card", value={"n": 3})
        ranking = Ranking(similarity=0.4, fields={"confidence": 0.25}, default=0.2, recency=0.15)
        hits = await ledger.search(ALICE, "the same card", mode="dense", ranking=ranking)
        assert [hit.version.value["n"] for hit in hits] == [1, 2, 3, 0]
        assert hits[0].score == pytest.approx(0.4 + 0.25 * 0.9 + 0.15, abs=1e-3)
        with pytest.raises(BadInput):
            await ledger.search(ALICE, "card", ranking=ranking)

    async def test_recency_halves_with_its_half_life(self, ledger: Ledger) -> None:
        made = await put(ledger, "an old card")
        lines = [line async for line in ledger.export()]
        await ledger.forget(ALICE, made.key, reason="", actor="")
        past = json.loads(lines[0]) | {"key": "old"}
        past["at"] = past["created"] = (made.at - timedelta(days=30)).isoformat()
        assert (await ledger.import_([json.dumps(past)])).imported == 1
        ranking = Ranking(similarity=0, recency=1, half_life_days=30)
        [hit] = await ledger.search(ALICE, "an old card", mode="dense", ranking=ranking)
        assert hit.score == pytest.approx(0.5, abs=1e-3)


class TestListing:
    async def test_records_are_in_the_order_of_their_creation(self, ledger: Ledger) -> None:
        made = [await put(ledger, f"tea {n}") for n in range(20)]
        await ledger.update(ALICE, made[0].key, {}, text="changed", change=SAID, expected_version=1)
        await ledger.retire(ALICE, made[1].key, change=SAID, expected_version=1)
        keys = [version.key for version in made]
        everything = await ledger.records(ALICE, include_retired=True)
        assert [version.key for version in everything] == keys
        assert [version.key for version in await ledger.records(ALICE, limit=5, offset=3)] == keys[4:9]
        assert await ledger.count(ALICE) == 19
        assert await ledger.count(ALICE, include_retired=True) == 20

    async def test_namespaces_are_those_that_hold_records(self, ledger: Ledger) -> None:
        await put(ledger, "a")
        await put(ledger, "b", BOB)
        gone = await put(ledger, "c", ("users", "carl"))
        await put(ledger, "d", ("users", "alice"))
        await ledger.retire(("users", "carl"), gone.key, change=SAID, expected_version=1)
        assert await ledger.namespaces() == [("users", "alice"), ALICE, BOB]
        assert await ledger.namespaces(("users", "alice")) == [("users", "alice"), ALICE]
        assert ("users", "carl") in await ledger.namespaces(include_retired=True)

    async def test_namespaces_that_could_be_mistaken_are_refused(self, ledger: Ledger) -> None:
        wrong: list[tuple[str, ...]] = [(), ("users", ""), ("users", " "), ("x" * 257,), ("a",) * 17]
        for namespace in (*wrong, ("a\x1fb",), ("a\nb",), ("a\x00",), ("*",)):
            with pytest.raises(BadInput):
                await put(ledger, "tea", namespace)
        with pytest.raises(BadInput):
            await put(ledger, "tea", key="a\x1fb")

    async def test_namespaces_take_any_script(self, ledger: Ledger) -> None:
        for part in ("Ünal Şahin", "田中", "o'neil@example.org", "a/b", "👩‍👧"):
            await put(ledger, part, ("users", part))
            assert await texts(ledger, part, ("users", part), mode="dense") == [part]

    def test_a_key_is_never_taken_for_a_part(self) -> None:
        ids = {record_id(ns, key) for ns, key in (((("a", "b")), "c"), (("a",), "b"), (("a", "b", "c"), "d"))}
        assert len(ids) == 3


class TestForget:
    async def test_nothing_is_left_but_that_it_was_forgotten(self, ledger: Ledger) -> None:
        made = await put(ledger, "a secret")
        await ledger.update(ALICE, made.key, {}, text="another secret", change=SAID, expected_version=1)
        await put(ledger, "no secret")
        await ledger.forget(ALICE, made.key, reason="asked to", actor="alice")
        assert await ledger.get(ALICE, made.key) is None
        assert await texts(ledger, "secret") == ["no secret"]
        assert [version.text for version in await ledger.records((), include_retired=True)] == ["no secret"]
        assert "secret" not in "".join([line async for line in ledger.export()]).replace("no secret", "")
        [mark] = await ledger.forgotten(ALICE)
        assert (mark.namespace, mark.versions, mark.reason, mark.actor) == (ALICE, 2, "asked to", "alice")
        assert await ledger.forgotten(BOB) == []

    async def test_a_whole_prefix_is_forgotten_and_no_more(self, ledger: Ledger) -> None:
        for n in range(5):
            made = await put(ledger, f"tea {n}")
        await ledger.retire(ALICE, made.key, change=SAID, expected_version=1)
        await put(ledger, "tea", BOB)
        assert await ledger.forget_all(("users", "alice"), reason="", actor="") == 5
        assert await ledger.forget_all(("users", "alice"), reason="", actor="") == 0
        assert [version.namespace for version in await ledger.records((), include_retired=True)] == [BOB]
        with pytest.raises(BadInput):
            await ledger.forget_all((), reason="", actor="")

    async def test_what_is_forgotten_already_is_not_there(self, ledger: Ledger) -> None:
        made = await put(ledger, "a secret")
        both = [ledger.forget(ALICE, made.key, reason=reason, actor="") for reason in ("first", "second")]
        told = [type(each) for each in await asyncio.gather(*both, return_exceptions=True)]
        assert Forgotten in told and {*told} <= {Forgotten, NotFound}
        assert (await ledger.info()).kind != "edge" or NotFound in told, "one after another in a process"
        assert await ledger.forget_records([made], reason="third", actor="") == [None]
        assert len(await ledger.forgotten(ALICE)) == 1

    async def test_a_key_can_be_used_again(self, ledger: Ledger) -> None:
        await put(ledger, "old", key="k")
        await ledger.forget(ALICE, "k", reason="", actor="")
        again = await put(ledger, "new", key="k")
        assert (again.version, again.first) == (2, 2)
        assert await ledger.history(ALICE, "k") == [again]
        changed = await ledger.update(ALICE, "k", {}, text="newer", change=SAID, expected_version=2)
        assert await ledger.history(ALICE, "k") == [again, changed]
        with pytest.raises(NotFound, match="it has 2 to 3"):
            await ledger.rollback(ALICE, "k", 1, change=SAID)
        await ledger.forget(ALICE, "k", reason="", actor="")
        assert sorted(mark.versions for mark in await ledger.forgotten(ALICE)) == [2]
        assert (await put(ledger, "newest", key="k")).version == 4

    async def test_who_read_a_forgotten_record_cannot_change_its_successor(
        self, ledger: Ledger, embedder: WordEmbedder, tmp_path: Path
    ) -> None:
        await put(ledger, "old", key="k")
        exported = [line async for line in ledger.export()]
        await ledger.forget(ALICE, "k", reason="", actor="")
        again = await put(ledger, "new", key="k")
        for change in (ledger.retire, partial(ledger.update, value={}, text="mine")):
            with pytest.raises(Conflict, match="at version 2, not 1"):
                await change(ALICE, "k", change=SAID, expected_version=1)
        lines = [line async for line in ledger.export()]
        other = await open_ledger(str(tmp_path / "other"), embedder)
        assert (await other.import_(lines)).imported == 1
        assert [line async for line in other.export()] == lines
        assert await other.history(ALICE, "k") == [again]
        assert [each.line for each in (await other.import_(exported)).refused] == [1]
        await other.close()

    async def test_a_number_that_was_forgotten_is_not_imported_again(
        self, ledger: Ledger, embedder: WordEmbedder, tmp_path: Path
    ) -> None:
        await put(ledger, "old", key="k")
        await ledger.forget(ALICE, "k", reason="", actor="")
        other = await open_ledger(str(tmp_path / "other"), embedder)
        await put(other, "another", key="k")
        report = await ledger.import_([line async for line in other.export()])
        assert "was forgotten here, up to version 1" in report.refused[0].reason
        assert await ledger.get(ALICE, "k") is None
        await other.close()

    async def test_what_begins_anew_goes_on_counting(self, ledger: Ledger) -> None:
        made = await put(ledger, "", key="k")
        await ledger.forget_records([], reason="", actor="", rewritten=[(made, {"left": 1})])
        head = await ledger.get(ALICE, "k")
        assert head is not None
        assert (head.value, head.version > 1) == ({"left": 1}, True)
        assert await ledger.history(ALICE, "k") == [head]
        for stale in (1, 2):
            with pytest.raises(Conflict):
                await ledger.update(ALICE, "k", {}, text="", change=SAID, expected_version=stale)

    async def test_it_happens_once(self, ledger: Ledger) -> None:
        made, other = await put(ledger, "tea"), await put(ledger, "coffee")
        await ledger.forget(ALICE, made.key, reason="asked to", actor="alice")
        marks = await ledger.forget_records([made, other], reason="late", actor="bob")
        assert [mark and mark.actor for mark in marks] == [None, "bob"]
        assert {mark.actor for mark in await ledger.forgotten(ALICE)} == {"alice", "bob"}
        assert await ledger.forget_records([made], reason="late", actor="bob") == [None]

    async def test_what_is_written_meanwhile_is_forgotten_too(self, ledger: Ledger) -> None:
        made = await put(ledger, "v1")

        written = asyncio.Event()

        async def keep_writing() -> None:
            for version in itertools.count(1):
                await ledger.update(
                    ALICE, made.key, {}, text=f"v{version + 1}", change=SAID, expected_version=version
                )
                written.set()
                await asyncio.sleep(0)

        writer = asyncio.create_task(keep_writing())
        await written.wait()
        await ledger.forget(ALICE, made.key, reason="", actor="")
        with pytest.raises(NotFound):
            await writer
        assert await ledger.get(ALICE, made.key) is None
        assert await ledger.count(include_retired=True) == 0


class TestTransfer:
    async def filled(self, ledger: Ledger) -> list[str]:
        for n in range(30):
            made = await put(ledger, f"tea {n}", idempotency_key=f"k{n}")
            if n % 2:
                await ledger.update(
                    ALICE, made.key, {"n": n}, text=f"tea {n}!", change=SAID, expected_version=1
                )
            if n % 3 == 0:
                head = await ledger.get(ALICE, made.key)
                assert head is not None
                await ledger.retire(ALICE, made.key, change=SAID, expected_version=head.version)
        return [line async for line in ledger.export()]

    async def test_the_round_trip_is_lossless_and_a_second_one_changes_nothing(
        self, ledger: Ledger, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        lines = await self.filled(ledger)
        other = await open_ledger(str(tmp_path / "other"), embedder)
        report = await other.import_(lines)
        assert (report.imported, report.unchanged, report.refused) == (len(lines), 0, [])
        assert [line async for line in other.export()] == lines
        assert (await other.import_(lines)).unchanged == len(lines)
        assert [line async for line in other.export()] == lines
        assert set(await texts(other, "tea 7", limit=30)) == set(await texts(ledger, "tea 7", limit=30))
        replay = await put(other, "tea", idempotency_key="k1")
        assert replay.text == "tea 1"
        await other.close()

    async def test_an_older_export_changes_nothing_and_a_newer_one_adds_what_is_new(
        self, ledger: Ledger, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        made = await put(ledger, "tea")
        older = [line async for line in ledger.export()]
        await ledger.update(ALICE, made.key, {}, text="green tea", change=SAID, expected_version=1)
        newer = [line async for line in ledger.export()]
        assert (await ledger.import_(older)).unchanged == 1
        other = await open_ledger(str(tmp_path / "other"), embedder)
        await other.import_(older)
        report = await other.import_(newer)
        assert (report.imported, report.unchanged) == (1, 1)
        assert await texts(other, "green", mode="bm25") == ["green tea"]
        await other.close()

    async def test_broken_lines_are_named_and_nothing_of_their_record_is_stored(
        self, ledger: Ledger, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        for text in ("one", "two", "three"):
            made = await put(ledger, text)
            await ledger.update(ALICE, made.key, {}, text=f"{text}!", change=SAID, expected_version=1)
        lines = [line async for line in ledger.export()]
        lines[1] = lines[1][:-10]  # the second version of the first record
        lines[3] = lines[3].replace('"version":2', '"version":3')
        lines += ["", "not JSON", '{"of": 1}', "\x00\x01"]
        other = await open_ledger(str(tmp_path / "other"), embedder)
        report = await other.import_(lines)
        assert [refused.line for refused in report.refused] == [1, 2, 3, 4, 8, 9, 10]
        assert all(refused.reason for refused in report.refused)
        assert [version.text for version in await other.records(ALICE)] == ["three!"]
        assert len([line async for line in other.export()]) == 2
        await other.close()

    async def test_another_history_of_the_same_record_is_refused(self, ledger: Ledger) -> None:
        await put(ledger, "tea", key="k")
        [line] = [line async for line in ledger.export()]
        report = await ledger.import_([line.replace("tea", "coffee")])
        assert [refused.line for refused in report.refused] == [1]
        assert await texts(ledger, "tea", mode="bm25") == ["tea"]

    async def test_what_was_forgotten_stays_forgotten(self, ledger: Ledger) -> None:
        made = await put(ledger, "a secret")
        lines = [line async for line in ledger.export()]
        await ledger.forget(ALICE, made.key, reason="", actor="")
        report = await ledger.import_(lines)
        assert (report.imported, report.forgotten) == (0, 1)
        assert await ledger.count(include_retired=True) == 0

    async def test_lines_outside_the_prefix_are_refused(self, ledger: Ledger) -> None:
        await put(ledger, "tea", BOB)
        lines = [line async for line in ledger.export()]
        report = await ledger.import_(lines, within=ALICE)
        assert "users/bob" in report.refused[0].reason

    @pytest.mark.long
    async def test_many_records_of_one_moment_are_all_exported(self, ledger: Ledger) -> None:
        made = await put(ledger, "tea")
        [line] = [line async for line in ledger.export()]
        lines = [line.replace(made.key, f"key{n}") for n in range(1200)]
        assert (await ledger.import_(lines)).imported == 1200
        exported = [line async for line in ledger.export()]
        assert sorted(exported) == sorted([*lines, line])
