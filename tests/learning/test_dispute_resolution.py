"""Disputes: what trials decide, and what a person does."""

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from mneme.core.errors import NotFound
from mneme.environments.worlds import Task, find_world
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.learning import cards_in, disputed, resolve

LARGE = 60_000
"""Rows where close races are run: the more rows, the less the noise."""


async def test_trials_keep_a_card_that_holds(edge_ledger: Ledger) -> None:
    cards = cards_in(edge_ledger)
    card, dispute = await disputed(cards, "COVERING INDEX (filter, group)", "KEEP")
    ended = await resolve(edge_ledger, dispute.id, environment="sql_tuning")
    assert ended["recommendation"]["recommendation"] == "keep_old"
    kept = await cards.records.get(card.id)
    assert (kept.status, kept.rules) == ("provisional", card.rules)
    assert kept.evidence.success_count > 1


@pytest.mark.long
async def test_a_contradiction_that_wins_everywhere_replaces_the_card(edge_ledger: Ledger) -> None:
    cards = cards_in(edge_ledger)
    card, dispute = await disputed(cards, "KEEP", "COVERING INDEX (filter, group)")
    ended = await resolve(edge_ledger, dispute.id, environment="sql_tuning", rows=LARGE)
    assert ended["recommendation"]["recommendation"] == "deprecate_old"
    old = await cards.records.get(card.id)
    assert old.status == "deprecated"
    assert (await cards.records.get(old.superseded_by)).rules[0].pattern == "COVERING INDEX (filter, group)"


@pytest.mark.long
async def test_two_rounds_that_do_not_decide_end_with_a_person(edge_ledger: Ledger) -> None:
    _, dispute = await disputed(cards_in(edge_ledger), "KEEP", "ANALYZE")
    waiting = await resolve(edge_ledger, dispute.id, environment="sql_tuning")
    (question,) = waiting["__interrupt__"]
    assert len(question.value["dispute"]["rounds"]) == 2
    assert question.value["action_requests"][0]["name"] == "resolve_dispute"
    assert question.value["review_configs"][0]["allowed_decisions"] == ["approve", "edit", "reject"]
    assert "decision" in question.response_schema["properties"]


async def test_a_dispute_waits_for_a_person_beyond_the_death_of_the_process(
    edge_ledger: Ledger, tmp_path: Path
) -> None:
    cards = cards_in(edge_ledger)
    card, dispute = await disputed(cards, "INDEX (filter)", "INDEX (filter, group)")
    file = str(tmp_path / "checkpoints.sqlite")
    async with open_checkpointer(file) as saver:
        waiting = await resolve(edge_ledger, dispute.id, saver=saver)
    assert waiting["__interrupt__"] and (await cards.disputes.get(dispute.id)).status == "escalated"
    async with open_checkpointer(file) as saver:  # as another process would
        asked_again = await resolve(edge_ledger, dispute.id, Command(resume={"reason": "hm"}), saver)
        assert "Decide: deprecate_old" in asked_again["__interrupt__"][0].value["wrong"]
        answer = {"decision": "merge", "reason": "both are right", "by": "ann"}
        ended = await resolve(edge_ledger, dispute.id, Command(resume=answer), saver)
    assert ended["dispute"]["resolution"]["by"] == "ann"
    merged = await cards.records.get(card.id)
    assert {rule.pattern for rule in merged.rules} >= {"INDEX (filter)", "INDEX (filter, group)"}


NEW_WINS = "deprecate_old"
NEW = {"decision": NEW_WINS, "reason": "", "rules": "[]"}
"""As agent-inbox sends what was edited: every value as a text."""


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ({"decisions": [{"type": "approve"}]}, "merge"),
        ({"decisions": [{"type": "reject", "message": "no"}]}, "keep_old"),
        (
            {"decisions": [{"type": "edit", "edited_action": {"name": "resolve_dispute", "args": NEW}}]},
            NEW_WINS,
        ),
        ({"decisions": [{"type": "edit", "args": {"action": "resolve_dispute", "args": NEW}}]}, NEW_WINS),
        ([{"type": "accept", "args": None}], "merge"),
        ([{"type": "ignore", "args": None}], "keep_old"),
        (NEW_WINS, NEW_WINS),
    ],
)
async def test_clients_can_answer(edge_ledger: Ledger, answer: Any, decision: str) -> None:
    _, dispute = await disputed(cards_in(edge_ledger), "INDEX (filter)", "INDEX (filter, group)")
    saver = InMemorySaver()
    await resolve(edge_ledger, dispute.id, saver=saver)
    ended = await resolve(edge_ledger, dispute.id, Command(resume=answer), saver)
    assert ended["dispute"]["resolution"]["decision"] == decision


async def test_a_finding_of_no_task_waits_for_a_person_too(edge_ledger: Ledger) -> None:
    _, dispute = await disputed(cards_in(edge_ledger), "INDEX (filter)", "INDEX (filter, group)", task="")
    (question,) = (await resolve(edge_ledger, dispute.id))["__interrupt__"]
    assert "rests on no task of this team" in str(question.value)


async def test_an_unknown_dispute_is_refused(edge_ledger: Ledger) -> None:
    with pytest.raises(NotFound):
        await resolve(edge_ledger, "disp_nowhere")


def test_conditions_hold_by_what_a_query_is_made_of() -> None:
    read = "SELECT user_id, COUNT(*), MAX(outcome) FROM user_events AS e"
    ranges = "event_time > '2025-01-01' AND duration_ms > 9"
    other = "EXISTS (SELECT 1 FROM users WHERE users.user_id = e.user_id)"
    two, correlated = (
        find_world("sql_tuning").open(Task(given={"query": f"{read} WHERE {where} GROUP BY user_id"}))
        for where in (ranges, f"{ranges} AND {other}")
    )
    assert two.features == ["range filters", "grouping", "further columns"]
    assert two.general == ["range filter", "grouping"]
    assert two.applies("range filter; grouping") is True
    assert two.applies("one range filter; grouping") is False
    assert "correlated subquery" in correlated.features
    assert correlated.applies("range filter; grouping") is False, "another kind of query"
    assert two.applies("when the moon is full") is None
