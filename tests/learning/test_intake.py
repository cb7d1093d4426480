"""Intake of logs, tickets and conversations: each part is a task, and what a model reads is no evidence."""

from pathlib import Path
from typing import Any

import pytest

from mneme.cli.learning.learn import parts_of, problem_of
from mneme.core.errors import BadInput
from mneme.graphs.compound_learning import builder as compound_learning
from mneme.nodes.learning.context import LearningContext
from mneme.prompts.learning.compound_learning.challenge import Objections
from mneme.prompts.learning.compound_learning.compile import Finding, Findings
from mneme.prompts.learning.compound_learning.decide import Resolution
from mneme.prompts.learning.compound_learning.research import Draft
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.scripts import script

LOG = "12:01 pool exhausted\n12:05 raised pool_size to 20\n12:06 well again\n"


def test_a_text_is_divided_by_lines_and_json_by_items(tmp_path: Path) -> None:
    log, tickets = tmp_path / "a.log", tmp_path / "tickets.jsonl"
    log.write_text(LOG + "x" * 13_000 + "\n")
    tickets.write_text('{"ticket": 1, "text": "slow"}\n"as it says"\n')
    pieces = parts_of(log, "billing")
    assert [len(each.told["material"]) for each in pieces] == [len(LOG) - 1, 6_000, 6_000, 1_000]
    assert [each.told["material"] for each in parts_of(tickets, "")][1] == "as it says"
    assert [each.id for each in parts_of(log, "billing")] == [each.id for each in pieces], "read once"
    assert parts_of(log, "")[0].id != pieces[0].id
    log.write_text(" \n")
    for file, wrong in ((log, "no words"), (tmp_path / "b.json", "b.json")):
        with pytest.raises(BadInput, match=wrong):
            parts_of(file, "")
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(BadInput, match="no JSON"):
        parts_of(tmp_path / "b.json", "")


async def test_what_a_log_teaches_is_challenged_and_stays_provisional(
    edge_ledger: Ledger, tmp_path: Path
) -> None:
    file = tmp_path / "a.log"
    file.write_text(LOG)
    (part,) = parts_of(file, "billing")
    lesson = Finding(
        rationale="It was well again.",
        claim="Size the pool by the workers.",
        condition="pool exhausted",
        pattern="raise pool_size",
        event="create",
    )
    drafted = Draft(rationale="The log says so.", answer="Raise pool_size when the pool is exhausted.")
    decided = Resolution(
        rationale="Plausible.", solved=True, confidence=0.9, faster_or_novel=True, reusable=True
    )
    script(
        "reader",
        {
            "draft_solution": [drafted],
            "challenge_draft": [Objections()],
            "resolve_task": [decided],
            "compile_lessons": [Findings(findings=[lesson])],
        },
    )
    roles = dict.fromkeys(("researcher", "devils_advocate", "leader", "monitor"), "scripted:reader")
    graph = compound_learning.compile(store=LedgerStore(edge_ledger))
    given: Any = problem_of(part)
    result = await graph.ainvoke(given, context=LearningContext(**roles, team="readers"))
    assert result["packet"]["judged_by"] == "leader"
    cards = KnowledgeCards(edge_ledger, "readers")
    (card,) = await cards.records.list()
    assert (card.status, card.scope, card.evidence.count) == ("provisional", "billing", 0)
    assert card.rationale.startswith("Judged by the model")
    (task,) = await cards.tasks.all()
    assert task.id == part.id and "a.log, part 1 of 1" in task.task
