"""Judges of designs: in pairs, blind and in both orders; and repetitions that are drawn anew."""

from typing import Any

import pytest

from mneme.evals.answering import Identity
from mneme.evals.discussion.discussions import Case, hold
from mneme.evals.discussion.judges import PRINTED, Design, Preference, judge_as_printed
from mneme.evals.discussion.pipeline_judging import compared, outcome, tallied
from mneme.library.teams.team import load_team
from mneme.models.asking.asking import ask, script
from mneme.models.asking.responders import CallOptions, as_drawn, drawn
from mneme.nodes.discussion.context import DiscussionContext
from mneme.prompts.discussion.document import write_document
from mneme.prompts.discussion.intrinsic_memory import contribute, delegate
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.ollama import Model, by_rules
from tests.doubles.served import served

RICH = {"document": {"Component 1": {"name": "Store (S3)", "pros": "cheap", "design": "a bucket a day"}}}
BARE = {"document": {"Component 1": {"name": "Store", "pros": "not discussed"}}}


@pytest.mark.parametrize(
    ("preferred", "found"),
    [
        (["second", "first"], "intrinsic"),
        (["first", "second"], "none"),
        (["first", "first"], "first place"),
        (["second", "second"], "second place"),
        (["neither", "first"], "undecided"),
    ],
)
def test_a_design_wins_where_both_orders_prefer_it(preferred: list[str], found: str) -> None:
    assert outcome(preferred) == found


async def test_pairs_are_shown_in_both_orders_without_names() -> None:
    by_rules = Identity(responder="rules")
    assert (await compared("t", {"none": BARE, "intrinsic": RICH}, by_rules))["outcome"] == "intrinsic"
    assert (await compared("t", {"none": RICH, "intrinsic": RICH}, by_rules))["outcome"] == "undecided"
    script("lazy", {"compare_designs": [Preference(reason="It comes first.", better="first")] * 2})
    lazy = await compared("t", {"none": BARE, "intrinsic": RICH}, Identity(responder="scripted:lazy"))
    assert lazy["outcome"] == "first place"
    told = tallied([lazy, {"outcome": "intrinsic"}])
    assert (told["position_bias"], told["intrinsic"], told["p"]) == (0.5, 1, 1.0)


async def test_the_judge_as_printed_has_the_papers_five_metrics() -> None:
    judged = (await ask(judge_as_printed, Design(document='{"Platform": "AWS"}'), "rules")).value
    assert tuple(judged.model_dump()) == PRINTED
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
    case = Case(id="a", task="Design a store on AWS.", team=load_team("data_pipeline"), context=context)
    brain = by_rules(contribute, delegate, write_document)
    with served(monkeypatch, Model("small"), brain=brain) as double, drawn(seed=12, temperature=0.4):
        await hold(case, edge_ledger)
    options = [request.body["options"] for request in double.chats]
    assert len(options) >= 3
    assert {(each["seed"], each["temperature"]) for each in options} == {(12, 0.4)}
