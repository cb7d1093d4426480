"""Knowledge cards: one card for one lesson, retrieved by weights, kept by rules, never lost."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mneme.core.errors import BadInput, NotFound
from mneme.stores.cards.card import Card, CardSettings, Evidence, Lesson, Provenance, Rule
from mneme.stores.cards.disputes import Approach, Resolution
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.ledger import Ledger, open_ledger
from tests.doubles.cards import (
    CLAIM,
    GOOD,
    INDEX,
    MONITOR,
    PERSON,
    approval,
    failure,
    ids,
    learn,
    success,
    task_record,
    verified,
)
from tests.doubles.embedding import WordEmbedder
from tests.doubles.ledgers import forget


async def store(cards: KnowledgeCards, *some: Card) -> None:
    """Store cards just as they are."""
    await cards.records.ledger.write([cards.records.write(card.id, card, PERSON) for card in some])


class TestLearning:
    async def test_the_papers_first_two_tasks(self, cards: KnowledgeCards) -> None:
        made = await cards.create(INDEX, success("task_7823", 0.75), change=MONITOR)
        assert (made.event, made.card.status, made.card.confidence) == ("created", "provisional", 0.75)
        again = await cards.create(INDEX, success("task_8012", 0.88), change=MONITOR)
        assert again.event == "reinforced"
        card = await cards.promote(made.card.id, approval(), change=MONITOR)
        assert card.status == "verified"
        assert card.confidence == pytest.approx(0.815)
        assert card.evidence.task_ids == ["task_7823", "task_8012"]
        assert card.evidence.success_count == 2

    async def test_confidence_is_the_mean_of_the_evidence(self, cards: KnowledgeCards) -> None:
        card = await learn(cards, CLAIM, "t0", 1.0)
        for n in range(1, 25):
            outcome = failure(f"t{n}") if n in (7, 19) else success(f"t{n}")
            card = await cards.reinforce(card.id, outcome, change=MONITOR)
        assert (card.evidence.success_count, card.evidence.failure_count) == (23, 2)
        assert card.confidence == pytest.approx(0.92)  # the paper's own example
        assert [outcome.task for outcome in card.evidence.recent] == [f"t{n}" for n in range(15, 25)]

    async def test_one_lesson_is_one_card_however_it_is_spelt(self, cards: KnowledgeCards) -> None:
        first = await cards.create(INDEX, success("t1"), change=MONITOR)
        spelt = INDEX.model_copy(update={"claim": f"  {CLAIM.upper()}.  ", "tags": ["new"]})
        second = await cards.create(spelt, success("t2"), change=MONITOR)
        assert second.card.id == first.card.id
        assert second.card.claim == CLAIM
        assert second.card.tags == ["sql", "index", "new"]
        elsewhere = INDEX.model_copy(update={"scope": "csv"})
        assert (await cards.create(elsewhere, success("t3"), change=MONITOR)).event == "created"
        assert await cards.records.count() == 2

    async def test_a_task_teaches_once(self, cards: KnowledgeCards) -> None:
        made = await cards.create(INDEX, success("t1"), change=MONITOR)
        replay = await cards.create(INDEX, success("t1"), change=MONITOR)
        assert replay == made
        await cards.reinforce(made.card.id, failure("t2"), change=MONITOR)
        twice = await cards.reinforce(made.card.id, failure("t2"), change=MONITOR)
        assert (twice.version, twice.evidence.failure_count) == (2, 1)

    async def test_eight_writers_make_one_card(self, cards: KnowledgeCards) -> None:
        lessons = [INDEX.model_copy(update={"claim": CLAIM + "." * (n % 2)}) for n in range(8)]
        learned = await asyncio.gather(
            *(cards.create(each, success(f"t{n}", 0.8), change=MONITOR) for n, each in enumerate(lessons))
        )
        assert sorted(each.event for each in learned) == ["created"] + ["reinforced"] * 7
        [card] = await cards.records.list()
        assert sorted(card.evidence.task_ids) == [f"t{n}" for n in range(8)]
        assert (card.version, card.evidence.success_count) == (8, 8)
        assert card.confidence == pytest.approx(0.8)
        assert [each.card.version for each in await cards.records.history(card.id)] == list(range(1, 9))

    async def test_teams_do_not_meet(self, ledger: Ledger) -> None:
        for team in ("a.b", "a%2Eb", "a", "A"):
            await learn(KnowledgeCards(ledger, team), f"index of {team}")
        for team in ("a.b", "a%2Eb", "a", "A"):
            own = KnowledgeCards(ledger, team)
            assert [card.claim for card in await own.records.list()] == [f"index of {team}"]
            assert len(await own.retrieve("index", 10)) == 1


ODD = "a.b/c =d%\x1f"
"""The name of a world with every character that means something elsewhere."""


class TestWorlds:
    async def of_worlds(self, ledger: Ledger) -> KnowledgeCards:
        cards = KnowledgeCards(ledger, "worlds", CardSettings(probed=100))
        for n in range(12):
            world = ("", "sql", ODD)[n % 3]
            lesson = Lesson(claim=f"an index on column {n}", scope=world)
            await cards.create(lesson, success(f"t{n}", 0.9), change=MONITOR)
        return cards

    async def claims(self, cards: KnowledgeCards, world: str) -> set[int]:
        found = await cards.retrieve("an index on a column", 20, scope=world)
        assert all(each.card.scope in ("", world) for each in found)
        return {int(each.card.claim.split()[-1]) for each in found}

    async def check(self, cards: KnowledgeCards) -> None:
        assert await self.claims(cards, "") == {0, 3, 6, 9}
        assert await self.claims(cards, "sql") == {0, 1, 3, 4, 6, 7, 9, 10}
        assert await self.claims(cards, ODD) == {0, 2, 3, 5, 6, 8, 9, 11}
        assert await self.claims(cards, "elsewhere") == {0, 3, 6, 9}
        assert len(await cards.retrieve("an index on a column", 20)) == 12

    async def test_a_world_is_shown_its_own_cards_and_those_of_none(self, ledger: Ledger) -> None:
        cards = await self.of_worlds(ledger)
        await self.check(cards)
        [first] = [each for each in await cards.records.list() if each.claim.endswith(" 1")]
        await cards.deprecate(first.id, change=PERSON)
        assert [found.card.id for found in await cards.pitfalls("index", scope="sql")] == [first.id]
        assert await cards.pitfalls("index", scope=ODD) == []

    async def test_cards_that_an_older_version_wrote_are_found_beside_new_ones(self, ledger: Ledger) -> None:
        cards = await self.of_worlds(ledger)
        for card in await cards.records.list():
            if int(card.claim.split()[-1]) < 6:
                newer = card.model_copy(update={"version": 2})
                write = cards.records.write(card.id, newer, PERSON, 1)
                await ledger.write([write.model_copy(update={"shelf": "active"})])
        await self.check(cards)


class TestRetrieval:
    async def test_the_four_parts_sum_to_the_score(self, cards: KnowledgeCards) -> None:
        for n in range(8):
            card = await learn(cards, f"use an index on column {n}", f"t{n}", 0.5 + n / 16)
            if n % 2:
                await cards.reinforce(card.id, success(f"more{n}"), change=MONITOR)
        found = await cards.retrieve("which index for column 3?", 5)
        assert len(found) == 5
        for each in found:
            assert set(each.parts) == {"similarity", "confidence", "standing", "success", "recency"}
            assert sum(each.parts.values()) == pytest.approx(each.score, abs=1e-5)
            assert each.parts["confidence"] == pytest.approx(0.15 * each.card.confidence)
            assert each.parts["recency"] == pytest.approx(0.15, abs=1e-4)
        assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)

    async def test_the_order_is_that_of_the_formula(self, cards: KnowledgeCards) -> None:
        chance = random.Random(3)
        now = datetime.now(UTC)
        documents = []
        for n in range(40):
            right, wrong = chance.randint(0, 20), chance.randint(0, 4)
            card = Card(
                id=f"card_{n}",
                claim=f"index {chance.choice('abcdef')} for column {chance.choice('uvwxyz')} {n}",
                status=chance.choice(["verified", "provisional"]),
                evidence=Evidence(success_count=right, failure_count=wrong),
                provenance=Provenance(created_at=now - timedelta(days=chance.randint(0, 700))),
                confidence=chance.uniform(0.5, 1),
            )
            documents.append(card)
        await store(cards, *documents)
        found = await cards.retrieve("index a for column v", 40)
        cosines = {each.card.id: each.parts["similarity"] / 0.40 for each in found}
        assert len(cosines) > 30 and min(cosines.values()) >= 0.22, "what is unlike the task is not shown"
        documents = [card for card in documents if card.id in cosines]

        def formula(card: Card) -> float:
            right, all_ = card.evidence.success_count, card.evidence.count
            rate = right / all_ if all_ else 0
            proven = card.status == "verified" and right >= 10 and rate >= 0.8
            age = (now - card.provenance.created_at).total_seconds() / 86_400
            recency = 1.0 if proven else 0.5 ** (age / 90)
            return (
                0.4 * cosines[card.id]
                + 0.15 * card.confidence
                + 0.10 * (card.status == "verified")
                + 0.15 * recency
                + 0.2 * rate * right / (right + 3)
            )

        assert [each.card.id for each in found] == [
            card.id for card in sorted(documents, key=formula, reverse=True)
        ]
        assert all(each.score == pytest.approx(formula(each.card), abs=1e-4) for each in found)

    async def test_newer_cards_rank_higher_unless_long_proven(self, cards: KnowledgeCards) -> None:
        old = datetime.now(UTC) - timedelta(days=360)

        def card(name: str, at: datetime, successes: int) -> Card:
            return Card(
                id=name,
                claim="use an index",
                status="verified",
                evidence=Evidence(success_count=successes),
                provenance=Provenance(created_at=at),
                confidence=0.9,
            )

        everything = [card("old", old, 5), card("new", datetime.now(UTC), 5), card("proven", old, 10)]
        await store(cards, *everything)
        recency = {each.card.id: each.parts["recency"] for each in await cards.retrieve("index", 5)}
        assert recency["old"] == pytest.approx(0.15 / 16, rel=1e-3)
        assert recency["new"] == pytest.approx(0.15, rel=1e-3)
        assert recency["proven"] == 0.15

    async def test_a_card_of_the_very_scope_needs_no_likeness(self, cards: KnowledgeCards) -> None:
        lesson = Lesson(claim="Quartz over zebras.", scope="shell")
        made = await cards.create(lesson, success("t"), change=MONITOR)
        asked = "How is the monthly report made?"
        assert [each.card.id for each in await cards.retrieve(asked, scope="shell")] == [made.card.id]
        assert not await cards.retrieve(asked)

    async def test_what_is_out_of_use_is_not_retrieved(self, cards: KnowledgeCards) -> None:
        kept = await learn(cards, "an index on dates", "t1")
        doubtful = await learn(cards, "an index on doubts", "t2", 0.49)
        wrong = await learn(cards, "an index on everything", "t3")
        await cards.deprecate(wrong.id, change=PERSON)
        assert await ids(cards) == [kept.id]
        assert [found.card.id for found in await cards.pitfalls("index", 9)] == [wrong.id]
        raised = await cards.reinforce(doubtful.id, success("t4"), change=MONITOR)
        assert raised.confidence > 0.5
        assert set(await ids(cards)) == {kept.id, doubtful.id}
        lowered = await cards.reinforce(kept.id, failure("t5"), change=MONITOR)
        assert lowered.confidence < 0.5
        assert await ids(cards) == [doubtful.id]

    async def test_a_disputed_card_is_retrieved_and_says_so(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        await cards.disputes.open(card.id, old=Approach(claim="a"), new=Approach(claim="b"), change=MONITOR)
        [found] = await cards.retrieve("index")
        assert found.disputed

    async def test_a_copied_ledger_retrieves_the_same(
        self, ledger: Ledger, tmp_path: Path, embedder: WordEmbedder
    ) -> None:
        cards = KnowledgeCards(ledger, "copied")
        kept, wrong = await learn(cards, "an index on dates"), await learn(cards, "an index on all")
        await cards.deprecate(wrong.id, change=PERSON)
        lines = [line async for line in ledger.export()]
        copy = await open_ledger(str(tmp_path / "copy"), embedder)
        await copy.import_(lines)
        copied = KnowledgeCards(copy, "copied")
        assert await ids(copied) == [kept.id]
        assert [found.card.id for found in await copied.pitfalls("index")] == [wrong.id]
        await copy.close()

    async def test_retrieval_goes_on_after_an_erasure(self, ledger: Ledger) -> None:
        cards = KnowledgeCards(ledger, "erased")
        kept, private = await learn(cards, "an index on dates"), await learn(cards, "an index on Anna")
        assert len(await ids(cards)) == 2
        await forget(ledger, cards.records.namespace, private.id, reason="asked", actor="anna")
        assert await ids(cards) == [kept.id]
        with pytest.raises(NotFound):
            await cards.records.get(private.id)


class TestLifecycle:
    async def test_promotion_has_conditions(self, cards: KnowledgeCards) -> None:
        card = await learn(cards, CLAIM)
        await cards.reinforce(card.id, success("t2"), change=MONITOR)
        unsafe, unsolved = {"no_new_failures": False}, {"solved": False, "reusable": True}
        for asked, why in (
            (approval(approved=False), "does not approve"),
            (approval(open_blocking=1), "1 blocking objections"),
            (approval(rubric=GOOD.model_copy(update=unsafe)), "gives 2 of 4"),
            (approval(rubric=GOOD.model_copy(update=unsolved)), "not solved"),
        ):
            with pytest.raises(BadInput, match=why):
                await cards.promote(card.id, asked, change=MONITOR)
        assert (await cards.records.get(card.id)).status == "provisional"

    async def test_promotion_needs_as_many_successes_as_the_setting_says(self, ledger: Ledger) -> None:
        for needed in (2, 3):
            cards = KnowledgeCards(ledger, f"team{needed}", CardSettings(successes_to_verify=needed))
            card = await learn(cards, CLAIM)
            for n in range(1, needed):
                with pytest.raises(BadInput, match=f"{n} successes of the {needed}"):
                    await cards.promote(card.id, approval(), change=MONITOR)
                await cards.reinforce(card.id, success(f"more{n}"), change=MONITOR)
            promoted = await cards.promote(card.id, approval(), change=MONITOR)
            assert promoted.status == "verified"
            assert await cards.promote(card.id, approval(), change=MONITOR) == promoted

    async def test_a_card_that_keeps_failing_is_deprecated(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        outcomes = [success("s1"), *(failure(f"f{n}") for n in range(7)), success("s2")]
        for outcome in outcomes:  # 10 of the window: v2, s1, s2 succeeded
            card = await cards.reinforce(card.id, outcome, change=MONITOR)
        assert (card.status, card.evidence.recent_rate) == ("verified", 0.3)
        card = await cards.reinforce(card.id, failure("f8"), change=MONITOR)
        assert card.status == "deprecated"
        assert "20% success over the last 10 tasks" in card.deprecated_because
        assert (await cards.records.history(card.id))[-1].reason == card.deprecated_because
        assert await ids(cards) == []

    async def test_a_restored_card_has_a_fresh_window(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        for n in range(10):
            card = await cards.reinforce(card.id, failure(f"f{n}"), change=MONITOR)
        assert card.status == "deprecated"
        restored = await cards.restore(card.id, change=PERSON)
        assert (restored.status, restored.deprecated_because) == ("verified", "")
        again = await cards.reinforce(card.id, failure("one more"), change=MONITOR)
        assert again.status == "verified"
        assert await cards.restore(card.id, change=PERSON) == again

    async def test_inactive_cards_are_archived(self, cards: KnowledgeCards) -> None:
        idle, shown, open_ = [await learn(cards, f"an index on {n}", n) for n in ("a", "b", "c")]
        await cards.disputes.open(open_.id, old=Approach(claim="a"), new=Approach(claim="b"), change=MONITOR)
        for n in range(99):
            await cards.tasks.add(task_record(n, retrieved=[shown.id] if n == 40 else []))
        assert await cards.archive_inactive() == []
        late = await learn(cards, "an index on d", "d")
        await cards.tasks.add(task_record(99))
        [archived] = await cards.archive_inactive()
        assert (archived.id, archived.status) == (idle.id, "archived")
        assert set(await ids(cards)) == {shown.id, open_.id, late.id}
        assert await cards.pitfalls("index") == []
        assert (await cards.restore(idle.id, change=PERSON)).status == "provisional"
        assert await cards.archive_inactive() == []  # it was just brought back

    async def test_learning_an_archived_lesson_again_brings_it_back(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        for n in range(100):
            await cards.tasks.add(task_record(n))
        await cards.archive_inactive()
        again = await cards.create(Lesson(claim=CLAIM), success("again"), change=MONITOR)
        assert (again.event, again.card.status) == ("reinforced", "verified")
        await cards.deprecate(card.id, change=PERSON)
        refused = await cards.create(Lesson(claim=CLAIM), success("and again"), change=MONITOR)
        assert (refused.event, refused.card.status) == ("unchanged", "deprecated")

    async def test_every_change_is_a_version_and_any_comes_back(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        merge = Resolution(
            decision="merge",
            reason="4 of 5",
            by="anna",
            claim="depends",
            rules=[Rule(condition="one", pattern="x")],
        )
        dispute = await cards.disputes.open(
            card.id, old=Approach(claim=card.claim), new=Approach(claim="depends"), change=PERSON
        )
        await cards.resolve(dispute.id, merge)
        await cards.deprecate(card.id, change=PERSON)
        back = await cards.rollback(card.id, card.version, change=PERSON)
        assert back == card.model_copy(update={"version": 7})
        assert await ids(cards) == [card.id]
        first = await cards.rollback(card.id, 1, change=PERSON)
        assert (first.status, first.evidence.success_count, first.version) == ("provisional", 1, 8)
        history = await cards.records.history(card.id)
        assert [each.card.version for each in history] == list(range(1, 9))
        assert [each.card.status for each in history] == [
            *("provisional", "provisional", "verified", "disputed", "verified", "deprecated", "verified"),
            "provisional",
        ]
        assert all(each.reason and each.actor for each in history)
        with pytest.raises(NotFound, match="1 to 8"):
            await cards.rollback(card.id, 9, change=PERSON)

    async def test_what_is_not_there_is_named(self, cards: KnowledgeCards) -> None:
        for asked in (
            cards.records.get("card_x"),
            cards.records.history("card_x"),
            cards.deprecate("card_x", change=PERSON),
            cards.disputes.get("disp_x"),
        ):
            with pytest.raises(NotFound, match="_x"):
                await asked
