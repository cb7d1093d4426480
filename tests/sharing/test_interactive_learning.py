"""Interactive learning: a pool grows from standard answers within its budget."""

import json
from itertools import count
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from mneme.core.errors import BadInput, ModelUnavailable
from mneme.graphs.interactive_learning import builder as interactive_learning
from mneme.library.agents.rubric import load_rubric
from mneme.nodes.sharing.context import GrowthContext
from mneme.prompts.sharing import answering, standard_answers
from mneme.prompts.sharing.scoring import score_pair
from mneme.prompts.sharing.standard_answers import Question
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.pools.lessons import keep
from mneme.stores.pools.memory_pool import Pair
from tests.doubles.ollama import Json, Reply
from tests.doubles.served import served
from tests.doubles.sharing import CHANGE, MODEL, POEMS, ask, filled, of, pool_in, seeds


class Poet:
    """A brain that asks ever other questions, and answers each with a limerick of its own."""

    def __init__(self) -> None:
        self.poems = [each.answer for each in seeds("limerick")]
        self.asked, self.answered = count(1), count()

    def __call__(self, body: Json) -> Reply:
        if of(body, standard_answers.ask_for):
            subject = self.poems[next(self.asked) % 20].split()[1]
            return Reply(json.dumps({"question": f"Write a limerick about a {subject} with a grudge."}))
        return Reply(self.poems[next(self.answered) % 24])


def growth(**more: Any) -> GrowthContext:
    told = {"team": "poets", "threshold": 30, "answerer": MODEL, "scorer": "rules", "grader": "rules"}
    return GrowthContext(**{**told, **more})


ONE: Any = {
    "domain": POEMS,
    "standards": [{"agent": "limerick", "answer": "A cat who could sing like a lark"}],
}


async def test_a_pool_grows_from_one_record_within_its_budget(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger))
    with served(monkeypatch, brain=Poet(), parallel=2) as double:
        result = await graph.ainvoke(ONE, context=growth(calls=40))
        sent = len(double.chats)
    assert result["memories"] == await pool_in(edge_ledger).count() > 6
    assert len(set(result["stored"])) == len(result["stored"]) == result["memories"] - 1
    assert sent <= result["asked"]["calls"] <= 40
    left = 40 - result["asked"]["calls"]
    told = f"has {left} left; the next standard answer takes 4." if left else "is spent."
    assert result["why"] == f"The budget of 40 calls {told}"
    unasked = await graph.ainvoke(ONE, context=growth(calls=3))
    assert unasked["why"] == "The budget of 3 calls is too small: the next standard answer takes 4."
    assert unasked["asked"]["calls"] == 0


async def test_a_standard_answer_with_a_question_of_its_own_costs_a_call_less(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(edge_ledger, "limerick")
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger))
    with served(monkeypatch, brain=Poet()):
        result = await graph.ainvoke({"domain": POEMS, "standards": []}, context=growth(calls=7, at_once=1))
    assert result["asked"]["calls"] == 6
    assert result["why"] == "The budget of 7 calls has 1 left; the next standard answer takes 3."


async def test_an_answer_that_repeats_an_example_is_not_stored_whatever_its_score(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(edge_ledger, "limerick")
    first = seeds("limerick")[0]
    with served(monkeypatch, brain=lambda _: Reply(first.answer)):
        asked = f"{first.prompt} And let there be a lamp in it, and a storm at sea."
        copied = await ask(edge_ledger, asked, threshold=0, answerer=MODEL)
    assert first.answer == copied["answer"] and first.key in {each["key"] for each in copied["shown"]}
    assert not copied["stored"] and copied["why"] == "Not stored: it repeats an example that it was shown."


async def test_a_growth_goes_on_where_it_broke_off(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "growth"}, "recursion_limit": 200}
    monkeypatch.setenv("MNEME_RETRIES", "0")
    poet = Poet()
    with served(monkeypatch, brain=poet) as double:
        double.chat.reply(*[poet] * 9, Reply(status=500, error="out of memory"))
        with pytest.raises(ModelUnavailable):
            await graph.ainvoke(ONE, config, context=growth(calls=60))
        before = (await graph.aget_state(config)).values
        assert 0 < before["asked"]["calls"] < 60
        result = await graph.ainvoke(None, config, context=growth(calls=60))
    assert result["asked"]["calls"] <= 60 and set(before["stored"]) <= set(result["stored"])
    assert len(set(result["stored"])) == len(result["stored"]) == result["memories"] - 1


async def test_every_agent_of_a_domain_may_get_each_question(edge_ledger: Ledger) -> None:
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger))
    told: list[Any] = []
    rules = growth(answerer="rules", asked="domain", calls=8)
    async for each in graph.astream(ONE, context=rules, stream_mode="custom"):
        told.append(each)
    answered = [each["agent"] for each in told if each["step"] == "exchange"]
    assert sorted(answered) == ["limerick", "limerick", "sonnet", "wuyanlvshi"]


async def test_a_growth_needs_a_domain_agents_and_something_to_begin_with(edge_ledger: Ledger) -> None:
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger))
    cases: list[tuple[Any, str]] = [
        ({"domain": "gardening"}, "no domain"),
        ({"domain": POEMS}, "is empty"),
        ({"domain": POEMS, "standards": [{"agent": "pun", "answer": "x"}]}, 'no agent "pun"'),
    ]
    for given, told in cases:
        with pytest.raises(BadInput, match=told):
            await graph.ainvoke(given, context=growth(answerer="rules"))
    long = {"agent": "limerick", "answer": "x" * 50_000}
    mixed: Any = {"domain": POEMS, "standards": [long, *ONE["standards"]]}
    result = await graph.ainvoke(mixed, context=growth(answerer="rules", calls=4))
    assert "50000" in result["failed"][0]["why"] and result["asked"]["calls"] > 0, "the other one went in"


async def test_models_that_talk_nonsense_end_no_growth(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger))
    with served(monkeypatch, brain=lambda _: Reply("la la la")):
        result = await graph.ainvoke(ONE, context=growth(scorer=MODEL, calls=30))
    assert result["stored"] == [] and result["memories"] == 1
    assert result["failed"] and result["asked"]["calls"] >= 3


def test_a_question_may_not_quote_the_answer() -> None:
    given = standard_answers.Standard(
        does="Write.", questions="Any.", answer="one two three four five six seven"
    )
    with pytest.raises(ValueError, match="quotes the answer"):
        standard_answers.ask_for.verify(given, Question(question="Say one two three four five six seven."))
    known = given.model_copy(update={"known": ["Count."]})
    with pytest.raises(ValueError, match="asks the same"):
        standard_answers.ask_for.verify(known, Question(question="Count."))


async def test_a_growth_that_broke_off_while_scoring_asks_nobody_again(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model samples: asked again it would say something else, and a second pair would be stored."""
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "scoring"}, "recursion_limit": 200}
    monkeypatch.setenv("MNEME_RETRIES", "0")
    poet, scoring = Poet(), count()

    def brain(body: Json) -> Reply:
        if not of(body, score_pair):
            return poet(body)
        full = {each.name: each.points for each in load_rubric(POEMS).of("limerick")}
        score = Reply(json.dumps({"rationale": "good", "points": full}))
        return score if next(scoring) else Reply(status=500, error="out of memory")

    await keep(pool_in(edge_ledger), seeds("limerick")[:1], change=CHANGE)
    kind = growth(scorer=MODEL, calls=4)
    with served(monkeypatch, brain=brain) as double:
        with pytest.raises(ModelUnavailable):
            await graph.ainvoke({"domain": POEMS}, config, context=kind)
        result = await graph.ainvoke(None, config, context=kind)
        asked = [each for each in double.chats if of(each.body, answering.answer)]
    assert len(asked) == 1
    assert len(result["stored"]) == 1 and result["rejected"] == result["known"] == 0


async def test_what_a_growth_says_again_is_known_and_not_rejected(edge_ledger: Ledger) -> None:
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger))
    kind = growth(answerer="rules", threshold=0, calls=4, laps=1)
    said = [each async for each in graph.astream(ONE, context=kind, stream_mode="custom")]
    pairs = [each for each in said if each["step"] == "exchange"]
    assert pairs and all(each["stored"] != each["known"] for each in pairs)
    again = await graph.ainvoke({"domain": POEMS}, context=kind)
    assert again["rejected"] == 0 and again["known"] + len(again["stored"]) > 0
    pool = pool_in(edge_ledger, "copy")
    pair = Pair(prompt="Sing.", answer="La.", agent="limerick", domain=POEMS, score=80)
    for once, is_new in (("a", True), ("a", True), ("b", False)):
        assert await keep(pool, [pair], change=CHANGE, once=once) == [is_new]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "domain: "),
        ({"domain": 5}, "domain: "),
        ({"domain": POEMS, "standards": [{"agent": "limerick"}]}, "standards.0.answer: "),
        ({"domain": POEMS, "standards": [{"agent": "limerick", "answer": 5}]}, "standards.0.answer: "),
        ({"domain": POEMS, "standards": "abc"}, "standards: "),
    ],
)
async def test_what_a_growth_is_given_wrongly_is_named(edge_ledger: Ledger, given: Any, told: str) -> None:
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger))
    with pytest.raises(BadInput, match=told):
        await graph.ainvoke(given, context=growth(answerer="rules"))
