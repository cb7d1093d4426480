"""The judge of designs as printed, and repetitions that are drawn anew."""

from typing import Any

import pytest

from mneme.evals.discussion.judges import PrintedJudgement, judge_as_printed
from mneme.evals.discussion.pipeline_design import METRICS, hold
from mneme.library.teams.team import load_team
from mneme.models.asking.responders import CallOptions, as_drawn, drawn
from mneme.nodes.discussion.context import DiscussionContext
from mneme.prompts.discussion.document import write_document
from mneme.prompts.discussion.intrinsic_memory import contribute, delegate
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.ollama import Model, by_rules
from tests.doubles.served import served


def test_the_judge_as_printed_has_the_papers_five_metrics() -> None:
    assert (*PrintedJudgement.model_fields,) == METRICS
    assert judge_as_printed.form.index("score") < judge_as_printed.form.index("justification")


async def test_a_block_draws_every_reply_in_it_with_a_seed_of_its_own() -> None:
    exact = CallOptions(num_predict=9, temperature=0.0, seed=7)
    free = CallOptions(num_predict=9, temperature=0.9, seed=7)
    with drawn(seed=3, temperature=0.7):
        found: list[Any] = [as_drawn(each) for each in (exact, free)]
    assert [(each.seed, each.temperature) for each in found] == [(3, 0.7), (3, 0.9)]
    assert as_drawn(exact) is exact


async def test_every_reply_of_a_repetition_is_drawn_by_it(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = DiscussionContext(team="eval", agents="ollama:small", memory="none", max_turns=2)
    brain = by_rules(contribute, delegate, write_document)
    with served(monkeypatch, Model("small"), brain=brain) as double, drawn(seed=12, temperature=0.4):
        await hold("a", "Design a store on AWS.", load_team("data_pipeline"), context, edge_ledger)
    options = [request.body["options"] for request in double.chats]
    assert len(options) >= 3
    assert {(each["seed"], each["temperature"]) for each in options} == {(12, 0.4)}
