"""What is found and listed, in which order, and below which namespace."""

import json
from datetime import timedelta
from typing import Any

import pytest
from pydantic import JsonValue

from mneme.core.errors import BadInput
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.query import Mode, Ranking
from mneme.stores.ledger.records import Write, record_id
from tests.doubles.ledgers import ALICE, BOB, SAID, forget, put, restore, texts

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
        await restore(ledger, ALICE, made.key, change=SAID, expected_version=3)
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
        await forget(ledger, ALICE, made.key, reason="", actor="")
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
