"""Disputes about approaches in words: the world's checker tries them, else a person decides."""

import json
from typing import Any, cast

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from mneme.core.errors import BadInput
from mneme.graphs.dispute_resolution import builder as dispute_resolution
from mneme.nodes.learning.context import TeamContext
from mneme.prompts.learning.compound_learning.research import Draft, File
from mneme.prompts.learning.dispute_resolution import ConditionalRule, Recommendation
from mneme.stores.cards.card import Card, Lesson, Rule, TaskOutcome
from mneme.stores.cards.disputes import Approach, Dispute
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from tests.doubles.command_line import Run
from tests.doubles.scripts import script

CHANGE = Change(reason="a test", actor="test")


async def disputed(ledger: Ledger, solution: str = "a long text -> say it once") -> tuple[Card, Dispute]:
    cards = KnowledgeCards(ledger, "t")
    rules = [Rule(condition="a long text", pattern="leave the first half")]
    lesson = Lesson(claim="Leave the first half.", rules=rules, scope="greetings", rationale="It was short.")
    made = await cards.create(lesson, TaskOutcome(task="a", success=True, confidence=0.7), change=CHANGE)
    task = TaskRecord(id="b", task="Shorten a letter.", solved=True, seconds=1, iterations=1, speed_up=3.0)
    await cards.tasks.add(task)
    new = Approach(claim="Say it once.", solution=solution, task="b")
    old = Approach(claim=made.card.claim)
    return made.card, await cards.disputes.open(made.card.id, old=old, new=new, change=CHANGE)


async def resolve(ledger: Ledger, dispute: str, world: str, who: str) -> Any:
    graph = dispute_resolution.compile(store=LedgerStore(ledger), checkpointer=InMemorySaver())
    context = TeamContext(team="t", devils_advocate=who, environment=world)
    config: Any = {"configurable": {"thread_id": dispute}}
    return await graph.ainvoke({"dispute_id": dispute}, config, context=context)


def draft(text: str) -> str:
    return Draft(rationale="As it says.", files=[File(path="a.txt", text=text)]).model_dump_json()


async def test_the_worlds_checker_tries_approaches_that_are_words(edge_ledger: Ledger, world: str) -> None:
    card, dispute = await disputed(edge_ledger)
    carried = [draft("hello, hello, hello"), draft("hello")] * 3
    verdict = Recommendation(
        rationale="It is shorter.",
        claim="Say it once.",
        rules=[ConditionalRule(condition="a long text", pattern="say it once")],
        recommendation="deprecate_old",
    )
    script("advocate", {"carry_out": carried, "resolve_dispute": [verdict.model_dump_json()]})
    await resolve(edge_ledger, dispute.id, world, "scripted:advocate")
    ended = await KnowledgeCards(edge_ledger, "t").disputes.get(dispute.id)
    assert [trial.winner for trial in ended.rounds[0].trials] == ["new"] * 3
    assert ended.resolution and ended.resolution.decision == "deprecate_old"
    assert (await KnowledgeCards(edge_ledger, "t").records.get(card.id)).status == "deprecated"


async def test_where_nothing_can_be_tried_a_person_sees_what_both_rest_on(
    edge_ledger: Ledger, world: str
) -> None:
    _, dispute = await disputed(edge_ledger)
    waiting = await resolve(edge_ledger, dispute.id, world, "rules")
    (question,) = waiting["__interrupt__"]
    about = question.value["action_requests"][0]["description"]
    assert "1 of 1 tasks, confidence 0.70; It was short." in about
    assert "Shorten a letter.: solved, 3 times as good" in about
    assert (await KnowledgeCards(edge_ledger, "t").disputes.get(dispute.id)).rounds == []


def test_a_person_disputes_a_card_and_merges_both_with_rules(mneme: Run) -> None:
    card = json.loads(mneme("cards", "add", "Retry at once.", "--json").stdout)["card"]["id"]
    opened = mneme("disputes", "open", card, "Retry after a while.", "--json")
    dispute = json.loads(opened.stdout)["id"]
    assert "rests on 0 of 0 tasks" in mneme("disputes", "show", dispute).stdout
    assert [json.loads(line)["why"] for line in mneme("cards", "review", "--json").stdout.splitlines()] == [
        "disputed"
    ]
    merge = ("disputes", "resolve", dispute, "--decision", "merge")
    refused = mneme(*merge)
    assert refused.returncode == 1 and "--rule" in refused.stderr, "the reason, and what to do"
    assert mneme("disputes", "resolve", dispute, "--rule", "a: b").returncode == 1
    rules = ("--rule", "a lost packet: retry at once", "--rule", "an overload: retry after a while")
    done = mneme(*merge, "--claim", "Retry by what failed.", *rules)
    assert done.returncode == 0, done.stderr
    merged = json.loads(mneme("cards", "show", card, "--json").stdout)
    assert (merged["claim"], merged["status"]) == ("Retry by what failed.", "provisional")
    assert [rule["condition"] for rule in merged["rules"]] == ["a lost packet", "an overload"]


async def test_a_dispute_that_is_not_named_is_asked_for(ledger: Ledger) -> None:
    with pytest.raises(BadInput, match="dispute_id: Field required"):
        await dispute_resolution.compile(store=LedgerStore(ledger)).ainvoke(cast(Any, {}))
