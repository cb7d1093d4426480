"""The search mode `blend`, on both engines: both scores, hints, and what was told beside a good hit."""

from datetime import date
from typing import Any

import pytest

from mneme.models.embedding.absent import Absent
from mneme.stores.ledger.blending import Period, hints_of
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change, Hit, Namespace, Version
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory
from tests.doubles.embedding import WordEmbedder

ALICE, BOB = ("users", "alice", "memories"), ("users", "bob", "memories")
SAID = Change(reason="said so", actor="agent")
TODAY = date(2026, 11, 22)


async def put(ledger: Ledger, text: str, namespace: Namespace = ALICE, **value: Any) -> Version:
    return await ledger.insert(namespace, value, text=text, change=SAID)


async def found(ledger: Ledger, query: str, namespace: Namespace = ALICE, **more: Any) -> list[Hit]:
    return await ledger.search(namespace, query, mode="blend", **more)


async def texts(ledger: Ledger, query: str, **more: Any) -> list[str]:
    return [hit.version.text for hit in await found(ledger, query, **more)]


async def talk(ledger: Ledger, thread: str, *said: str) -> None:
    for text in said:
        await put(ledger, text, thread=thread)


class TestBlending:
    async def test_a_score_is_the_sum_of_its_parts(self, ledger: Ledger) -> None:
        await talk(ledger, "t1", "Max is a Labrador mix", "The user drinks green tea", "It is from Uji")
        hits = await found(ledger, "which tea is drunk?")
        assert hits[0].version.text == "The user drinks green tea"
        assert hits[0].parts["words"] == 0.5
        for hit in hits:
            parts = {name: part for name, part in hit.parts.items() if name != "bm25"}
            assert hit.score == pytest.approx(sum(parts.values()))
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        best = hits[0].score
        assert len(await found(ledger, "which tea is drunk?", min_score=best - 1e-4)) == 1

    async def test_what_was_told_beside_a_good_hit_in_the_same_thread_rises(self, ledger: Ledger) -> None:
        await talk(ledger, "t1", *(f"Clouds number {number}" for number in range(20)))
        await talk(ledger, "t2", "Which welding class did you take?", "Masks, on Mondays", "Nice!")
        await talk(ledger, "t3", *(f"Rain number {number}" for number in range(20)))
        await put(ledger, "Nobody said where")
        hits = await found(ledger, "welding class", limit=3)
        assert [hit.version.text for hit in hits] == [
            "Which welding class did you take?",
            "Masks, on Mondays",
            "Nice!",
        ]
        lent = [hit.parts["lent"] for hit in hits]
        assert lent[0] == 0.0
        assert lent[1] == pytest.approx(hits[0].score - hits[1].score)  # half of what it lacked

    async def test_nothing_is_lent_across_threads_users_retirements_or_filters(self, ledger: Ledger) -> None:
        await put(ledger, "Bob whispers", BOB, thread="t1")
        secret = await put(ledger, "Taken back", thread="t1", kind="semantic")
        await put(ledger, "The welding class is on Mondays", thread="t1", kind="semantic")
        await put(ledger, "Bob answers", BOB, thread="t1")
        await put(ledger, "An event", thread="t1", kind="episodic")
        await put(ledger, "Elsewhere", thread="t2", kind="semantic")
        await ledger.retire(ALICE, secret.key, change=SAID, expected_version=1)
        hits = await found(ledger, "welding class", filter={"kind": "semantic"})
        lent = {hit.version.text: hit.parts["lent"] for hit in hits}
        assert lent == {"The welding class is on Mondays": 0.0, "Elsewhere": 0.0}
        assert {hit.version.namespace for hit in await found(ledger, "welding class")} == {ALICE}
        [own] = [hit for hit in await found(ledger, "welding class") if hit.version.text == "An event"]
        assert own.parts["lent"] > 0

    async def test_a_name_and_a_date_of_the_question_raise_the_records_that_have_them(
        self, ledger: Ledger
    ) -> None:
        for month in ("04", "05", "06"):
            await put(ledger, f"A walk by the lake, number {month}", time=f"2026-{month}-11T10:00:00+00:00")
        assert (await texts(ledger, "Where did we walk in May 2026?"))[0].endswith("05")
        assert (await texts(ledger, "Where did we walk in June?"))[0].endswith("06")
        await put(ledger, "The organ", entities=["Bea"])
        hits = await found(ledger, "Which instrument is Bea's?")
        assert [hit.version.text for hit in hits if hit.parts["names"]] == ["The organ"]

    async def test_of_many_alike_the_latest_come_first(self, ledger: Ledger) -> None:
        written = [await put(ledger, "The cat likes fish") for _ in range(40)]
        hits = await found(ledger, "which cat likes fish?", limit=5)
        assert [hit.version.key for hit in hits] == [each.key for each in written[:-6:-1]]

    async def test_when_asks_for_what_happened(self, ledger: Ledger) -> None:
        await put(ledger, "The user visits Rome", kind="semantic")
        await put(ledger, "The user visits Rome", kind="episodic")
        [first, _] = await found(ledger, "When did the user visit Rome?")
        assert first.version.value["kind"] == "episodic"

    async def test_a_query_of_stop_words_and_an_empty_ledger(self, ledger: Ledger) -> None:
        assert await found(ledger, "who is it?") == []
        await put(ledger, "the user is here", thread="t")
        assert await texts(ledger, "who is it?") == ["the user is here"]
        assert await texts(ledger, "   ") == []

    async def test_without_an_embedder_words_neighbours_and_hints_remain(self, tmp_path: Any) -> None:
        known = WordEmbedder()
        ledger = await open_ledger(str(tmp_path / "words"), Absent(known.name, known.dimension))
        await talk(ledger, "t1", "Which welding class did you take?", "Masks, on Mondays")
        await talk(ledger, "t2", "Rain again")
        assert await texts(ledger, "welding class") == [
            "Which welding class did you take?",
            "Masks, on Mondays",
        ]
        assert await texts(ledger, "who is it?") == []
        bob = UserMemories(ledger, "bob")
        await bob.insert(Memory(content="The user likes tea"), change=SAID)
        recalled = await bob.similar("welding class", 3, mode="blend")  # filled up with the latest
        assert [each.memory.content for each in recalled] == ["The user likes tea"]
        await ledger.close()


class TestHints:
    @pytest.mark.parametrize(
        ("question", "periods"),
        [
            ("What happened on 7 May 2023?", [Period(2023, 5, 7)]),
            ("What happened on May 7th, 2023?", [Period(2023, 5, 7)]),
            ("Where was I on the 3rd of June?", [Period(None, 6, 3)]),
            ("Who came in december 2025 and in 2024?", [Period(2025, 12), Period(2024)]),
            ("Was it 2026-01-31 or 2026-02?", [Period(2026, 1, 31), Period(2026, 2)]),
            ("May I ask what they march for?", [Period(None, 5)]),
            ("What may I eat?", []),
            ("What did I do in may?", [Period(None, 5)]),
            ("What did I buy yesterday?", [Period(2026, 11, 21)]),
            ("What did I buy last month, or last year?", [Period(2026, 10), Period(2025)]),
            ("What is 2 plus 2?", []),
        ],
    )
    def test_periods(self, question: str, periods: list[Period]) -> None:
        assert list(hints_of(question, TODAY).periods) == periods

    def test_a_week_is_its_days(self) -> None:
        days = hints_of("What did I buy last week?", TODAY).periods
        assert (days[0], days[-1]) == (Period(2026, 11, 9), Period(2026, 11, 15))

    def test_a_record_without_a_time_is_from_the_day_it_was_written(self) -> None:
        hints = hints_of("in May 2023?", TODAY)
        assert hints.dates({"time": "2023-05-07"}, TODAY)
        assert hints.dates({"time": ""}, date(2023, 5, 1))
        assert not hints.dates({"time": "soon"}, TODAY)

    def test_every_word_of_a_name_must_be_asked_for(self) -> None:
        hints = hints_of("What did Ann Lee's sister say?", TODAY)
        assert hints.names({"entities": ["Bob", "Ann Lee"]})
        assert hints.names({"entities": ["ann"]})
        assert not hints.names({"entities": ["Ann Bell", "", "?", 3]})
        assert not hints.names({"entities": "Ann"})
