"""Disputes between a card and a finding."""

import asyncio

import pytest

from mneme.core.errors import BadInput
from mneme.stores.cards.card import Card, Lesson, Rule
from mneme.stores.cards.disputes import Approach, Dispute, PairedTrial, Resolution, Round
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from tests.doubles.cards import MONITOR, PERSON, ids, success, verified


def trial(winner: str) -> PairedTrial:
    return PairedTrial.model_validate(
        {"task": "t", "old_correct": True, "new_correct": True, "winner": winner}
    )


class TestDisputes:
    async def open(self, cards: KnowledgeCards, card: Card, finding: str = "name all filters") -> Dispute:
        return await cards.disputes.open(
            card.id,
            old=Approach(claim=card.claim),
            new=Approach(claim=finding, solution="CREATE INDEX …", task="task_8901"),
            change=MONITOR,
            conflict_type="refinement",
        )

    async def test_the_papers_third_task(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        dispute = await self.open(cards, card)
        disputed = await cards.records.get(card.id)
        assert (disputed.status, disputed.claim) == ("disputed", card.claim)
        tested = Round(
            trials=[trial("new")] * 4 + [trial("old")], recommendation="merge", rationale="4 of 5 confirm"
        )
        await cards.disputes.add_round(dispute.id, tested, change=MONITOR)
        rules = [
            Rule(condition="Single WHERE filter on time range", pattern="INDEX (time_column, group_column)"),
            Rule(condition="Multiple WHERE filters", pattern="INDEX (filter1, filter2, group_column)"),
        ]
        merge = Resolution(
            decision="merge",
            reason="4 of 5 confirm",
            by="devil's advocate",
            claim="For time-range filtered aggregations, use composite indexes strategically",
            rules=rules,
            outcomes=[success(f"task_{n}", 0.9) for n in (8901, 8903, 8907)],
        )
        ended = await cards.resolve(dispute.id, merge)
        assert (ended.status, ended.resolution, ended.rounds) == ("resolved", merge, [tested])
        after = await cards.records.get(card.id)
        assert (after.status, after.rules, after.evidence.success_count) == ("verified", rules, 5)
        assert dispute.id in (await cards.records.history(card.id))[-1].reason
        assert await cards.resolve(dispute.id, merge) == ended
        assert (await cards.records.get(card.id)).version == after.version
        with pytest.raises(BadInput, match="is resolved: merge"):
            await cards.resolve(dispute.id, Resolution(decision="keep_old", reason="no", by="anna"))

    async def test_one_finding_opens_one_dispute(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        opened = await asyncio.gather(*(self.open(cards, card) for _ in range(4)))
        assert {dispute.id for dispute in opened} == {opened[0].id}
        assert len(await cards.disputes.list()) == 1
        assert (await cards.records.get(card.id)).version == card.version + 1

    async def test_keeping_the_old_returns_it_to_its_standing(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        first, second = await self.open(cards, card), await self.open(cards, card, "no index at all")
        await cards.resolve(
            first.id,
            Resolution(decision="keep_old", reason="it holds", by="anna", outcomes=[success("trial")]),
        )
        assert (await cards.records.get(card.id)).status == "disputed"  # the second is still open
        await cards.resolve(second.id, Resolution(decision="keep_old", reason="it holds", by="anna"))
        kept = await cards.records.get(card.id)
        assert (kept.status, kept.claim, kept.evidence.success_count) == ("verified", card.claim, 3)

    async def test_a_better_finding_replaces_the_card(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        dispute = await self.open(cards, card)
        lesson = Lesson(claim="Name every filter column in the index, then the group column")
        ending = Resolution(
            decision="deprecate_old",
            reason="5 of 5",
            by="anna",
            lesson=lesson,
            outcomes=[success("a"), success("b")],
        )
        await cards.resolve(dispute.id, ending)
        old, new = await cards.records.get(card.id), await cards.records.get(lesson.card_id)
        assert (old.status, old.superseded_by, old.deprecated_because) == ("deprecated", new.id, "5 of 5")
        assert (new.status, new.evidence.success_count) == ("provisional", 2)
        assert await ids(cards) == [new.id]

    async def test_after_two_rounds_a_person_decides(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        dispute = await self.open(cards, card)
        tested = Round(trials=[trial("neither")] * 3, recommendation="escalate", rationale="even")
        await cards.disputes.add_round(dispute.id, tested, change=MONITOR, idempotency_key="round 1")
        await cards.disputes.add_round(dispute.id, tested, change=MONITOR, idempotency_key="round 1")
        await cards.disputes.add_round(dispute.id, tested, change=MONITOR, idempotency_key="round 2")
        with pytest.raises(BadInput, match="had its 2 rounds"):
            await cards.disputes.add_round(dispute.id, tested, change=MONITOR)
        waiting = await cards.resolve(
            dispute.id, Resolution(decision="escalate", reason="even", by="devil's advocate")
        )
        assert (waiting.status, waiting.unresolved) == ("escalated", True)
        assert (await cards.records.get(card.id)).status == "disputed"
        assert await cards.disputes.list("escalated") == [waiting]
        await cards.resolve(dispute.id, Resolution(decision="deprecate_old", reason="outdated", by="anna"))
        assert (await cards.records.get(card.id)).status == "deprecated"
        assert await cards.disputes.list("escalated") == []

    async def test_a_card_does_not_replace_itself(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        dispute = await self.open(cards, card)
        with pytest.raises(BadInput, match="replace itself"):
            await cards.resolve(
                dispute.id,
                Resolution(decision="deprecate_old", reason="r", by="anna", lesson=Lesson(claim=card.claim)),
            )
        assert (await cards.records.get(card.id)).status == "disputed"

    async def test_a_card_out_of_use_is_not_disputed(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        await cards.deprecate(card.id, change=PERSON)
        with pytest.raises(BadInput, match="nothing to dispute"):
            await self.open(cards, card)
        assert await cards.disputes.list() == []

    async def test_a_rollback_does_not_end_a_dispute(self, cards: KnowledgeCards) -> None:
        card = await verified(cards)
        dispute = await self.open(cards, card)
        assert (await cards.rollback(card.id, card.version, change=PERSON)).status == "disputed"
        await cards.resolve(dispute.id, Resolution(decision="keep_old", reason="it holds", by="anna"))
        assert (await cards.rollback(card.id, card.version + 1, change=PERSON)).status == "verified"
