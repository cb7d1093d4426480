"""Memory Sharing through its graphs: agents answer after what others remember, and remember what is good."""

import asyncio
import json
import random
from itertools import count
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime, ServerInfo
from langgraph.types import Command
from langgraph_sdk import get_client

from mneme.core.errors import BadAnswer, BadInput, LedgerMismatch, ModelUnavailable
from mneme.graphs.interactive_learning import builder as interactive_learning
from mneme.graphs.memory_sharing import builder as memory_sharing
from mneme.graphs.retriever_training import builder as retriever_training
from mneme.graphs.rubric_design import builder as rubric_design
from mneme.library.agents.agent import load_agent
from mneme.library.agents.forms import check_form
from mneme.library.agents.rubric import load_rubric
from mneme.models.asking.asking import clear_endpoints
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.sharing.context import DesignContext, GrowthContext, PoolContext, SharingContext
from mneme.nodes.sharing.memory_sharing import store
from mneme.nodes.sharing.pools import retrievers_of, rubrics_of
from mneme.prompts.sharing import answering, standard_answers
from mneme.prompts.sharing.examples import Criterion, words
from mneme.prompts.sharing.scoring import Fault, Judgeable, score_pair
from mneme.prompts.sharing.standard_answers import Question
from mneme.rules.registry import answer as by_rule
from mneme.rules.sharing.memory_sharing import compose, topic
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.lessons import RetrieverLessons, keep
from mneme.stores.pools.memory_pool import MemoryPool, Pair
from tests.doubles.ollama import Json, Reply
from tests.doubles.scripts import script
from tests.doubles.served import served
from tests.doubles.waiting import until

RULES = {"answerer": "rules", "scorer": "rules", "grader": "rules"}
CHANGE = Change(reason="a test", actor="test")
MODEL = "ollama:llama3.1:8b"
SEEDS = Path(__file__).parents[2] / "library" / "pairs"
POEMS = "literary_creation"


def seeds(agent: str) -> list[Pair]:
    """Return an agent's shipped pairs."""
    lines = (SEEDS / f"{agent}.jsonl").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line) for line in lines]
    domain = load_agent(agent).domain
    return [
        Pair(prompt=each["question"], answer=each["answer"], agent=agent, domain=domain, score=100)
        for each in told
    ]


def pool_in(ledger: Ledger, name: str = POEMS) -> MemoryPool:
    return MemoryPool(ledger, "poets", name)


async def filled(ledger: Ledger, *agents: str, pool: str = POEMS) -> MemoryPool:
    """Return a pool that holds the shipped pairs of these agents."""
    pairs = [each for agent in agents for each in seeds(agent)]
    await keep(pool_in(ledger, pool), pairs, change=CHANGE)
    return pool_in(ledger, pool)


async def ask(ledger: Ledger, question: str, agent: str = "limerick", **more: Any) -> Any:
    graph = memory_sharing.compile(store=LedgerStore(ledger))
    return await graph.ainvoke({"question": question}, context=context(agent, **more))


def context(agent: str = "limerick", **more: Any) -> SharingContext:
    return SharingContext(**{"team": "poets", "agent": agent, **RULES, **more})


async def test_a_chat_is_a_question_with_what_led_up_to_it(edge_ledger: Ledger) -> None:
    graph = memory_sharing.compile(store=LedgerStore(edge_ledger), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    chat: Any = [
        HumanMessage("I sail."),
        AIMessage("Good."),
        HumanMessage("Write a limerick about a ship's cat."),
    ]
    await graph.ainvoke({"messages": chat}, config, context=context())
    state = (await graph.aget_state(config)).values
    assert state["question"] == chat[-1].text
    assert state["turns"][:2] == ["user: I sail.", "assistant: Good."]
    plain: Any = {"question": "Write a limerick about a tailor."}
    await graph.ainvoke(plain, config, context=context())
    assert (await graph.aget_state(config)).values["question"] == plain["question"]


@pytest.mark.parametrize("shots", [0, 1, 2, 3])
async def test_as_many_memories_are_shown_as_asked_for_the_most_similar_first(
    edge_ledger: Ledger, shots: int
) -> None:
    await filled(edge_ledger, "limerick", "sonnet")
    result = await ask(edge_ledger, "Tell of a ship's cat who steers.", shots=shots)
    assert len(result["shown"]) == shots
    similar = [each["similarity"] for each in result["shown"]]
    assert similar == sorted(similar, reverse=True)
    assert shots == 0 or "cat" in result["shown"][0]["prompt"]


async def test_what_one_agent_stores_another_is_shown(edge_ledger: Ledger) -> None:
    poem = seeds("limerick")[0]
    script("poet", {"answer": [poem.answer]})
    first = await ask(edge_ledger, poem.prompt, answerer="scripted:poet", threshold=50)
    assert first["stored"] and first["score"] > 50
    (kept,) = [each async for each in pool_in(edge_ledger).pairs()]
    assert kept.key == first["key"]
    assert (kept.pair.prompt, kept.pair.answer) == (poem.prompt, poem.answer)
    assert (kept.pair.agent, kept.pair.domain, kept.pair.score) == ("limerick", POEMS, first["score"])
    assert (kept.pair.retriever, kept.pair.rubric) == (0, 0)
    second = await ask(edge_ledger, "A sonnet on a baker and his dough.", "sonnet", shots=3)
    assert [each["key"] for each in second["shown"]] == [kept.key]
    (version,) = await edge_ledger.history(pool_in(edge_ledger).namespace, kept.key)
    assert version.change.actor == "limerick" and version.change.model == "scripted:poet"
    assert "by rules" in version.change.reason


async def test_a_pair_below_the_threshold_is_answered_and_not_stored(edge_ledger: Ledger) -> None:
    result = await ask(edge_ledger, "Write a limerick about a tailor.")
    assert result["answer"] and not result["stored"]
    assert f"{result['score']} is not above 70" in result["why"]
    assert await pool_in(edge_ledger).count() == 0


async def test_a_pair_at_the_threshold_is_not_above_it(edge_ledger: Ledger) -> None:
    score = (await ask(edge_ledger, "Write a limerick about a tailor."))["score"]
    at = await ask(edge_ledger, "Write a limerick about a tailor.", threshold=score)
    below = await ask(edge_ledger, "Write a limerick about a tailor.", threshold=score - 1)
    assert (at["stored"], below["stored"]) == (False, True)
    again = await ask(edge_ledger, "Write a limerick about a tailor.", threshold=score - 1, shots=0)
    assert not again["stored"] and again["why"] == "The pool has it, or nearly it, already."
    assert await pool_in(edge_ledger).count() == 1


async def test_what_the_pool_has_nearly_is_not_stored_once_more(edge_ledger: Ledger) -> None:
    answer = "A cat who was steering a ship / gave the wheel to a mate with a grip."
    script("poet", {"answer": [answer, answer.replace("gave", "left"), answer, "A dog in a boat."]})
    told: dict[str, Any] = {"answerer": "scripted:poet", "threshold": 0, "shots": 0}
    question = "Write a limerick about the cat that steers a ship."
    first = await ask(edge_ledger, question, **told)
    near = await ask(edge_ledger, question.replace("that", "who"), **told)
    other_question = await ask(edge_ledger, "Who gave the wheel to a mate?", **told)
    other_answer = await ask(edge_ledger, question, **told)
    assert [each["stored"] for each in (first, near, other_question, other_answer)] == [
        True,
        False,
        True,
        True,
    ]
    assert near["key"] == first["key"] and "nearly" in near["why"]
    assert await pool_in(edge_ledger).count() == 3


async def test_another_wording_of_a_pair_is_not_stored_and_other_numbers_are(tmp_path: Path) -> None:
    ledger = await open_ledger(str(tmp_path / "ledger"), await open_embedder("bundled"))
    pool, why = MemoryPool(ledger, "local", "study"), Change(reason="told", actor="test")

    def pair(question: str, answer: str) -> Pair:
        return Pair(prompt=question, answer=answer, agent="tutor", domain="study", score=90)

    known = pair("How long should I study at once?", "Study for 25 minutes without a break, then rest for 5.")
    await pool.add(known, change=why)
    reworded = pair("For how long should I learn in one go?", "Rest for 5 after you study 25 minutes.")
    longer = pair("How long should I study at once?", "Study for 50 minutes without a break, then rest 10.")
    other = pair("How do I stay awake?", "Study for 25 minutes standing, then rest for 5.")
    found = [await pool.nearly(each) for each in (reworded, longer, other)]
    assert [each and each.key for each in found] == [known.key, None, None]
    await ledger.close()


async def test_domains_have_pools_of_their_own_or_share_one(edge_ledger: Ledger) -> None:
    await filled(edge_ledger, "riddle", pool="unconventional_logic")
    assert (await ask(edge_ledger, "A sonnet about a candle.", "sonnet"))["shown"] == []
    await filled(edge_ledger, "riddle", pool="single_pool")
    shared = await ask(edge_ledger, "A sonnet about a candle.", "sonnet", pools="single")
    assert {each["agent"] for each in shared["shown"]} == {"riddle"}
    assert shared["pool"] == "single_pool" and set(shared["points"]) == {
        each.name for each in load_rubric("single_pool").criteria
    }


async def test_a_conversation_is_one_memory_with_its_turns(edge_ledger: Ledger) -> None:
    graph = memory_sharing.compile(store=LedgerStore(edge_ledger), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "a talk"}}
    kind = context(threshold=0)
    await graph.ainvoke({"question": "I keep bees."}, config, context=kind)
    await graph.ainvoke({"question": "One of them is afraid of flowers."}, config, context=kind)
    result = await graph.ainvoke({"question": "Write me a limerick about her."}, config, context=kind)
    kept = (await pool_in(edge_ledger).get(result["key"])).pair
    assert [each.partition(":")[0] for each in kept.leading] == ["user", "assistant"] * 2
    assert kept.leading[0] == "user: I keep bees." and kept.prompt == "Write me a limerick about her."
    given: Any = {"question": "And now?", "leading": ["user: Once upon a time."]}
    result = await graph.ainvoke(given, config, context=kind)
    assert (await pool_in(edge_ledger).get(result["key"])).pair.leading == given["leading"]


async def test_an_answer_of_50_000_characters_is_given_but_not_remembered(edge_ledger: Ledger) -> None:
    script("endless", {"answer": ["word " * 10_000]})
    result = await ask(edge_ledger, "Write a limerick.", answerer="scripted:endless", threshold=0)
    assert len(result["answer"]) == 50_000
    assert result["score"] is None and not result["stored"]
    assert "50000 characters" in result["why"] and "20000" in result["why"]
    assert await pool_in(edge_ledger).count() == 0


@pytest.mark.parametrize(
    ("question", "agent", "told"),
    [
        ("Sing.", "nobody", 'no agent "nobody"'),
        ("Sing.", "/etc/hostname.yaml", "no agent"),
        ("Sing.", "name: me\nlanguage: english", "The agent, line 1: domain"),
        (" ", "limerick", "question is empty"),
        ("x" * 50_000, "limerick", "50000 characters"),
    ],
)
async def test_what_cannot_be_asked_is_refused(
    edge_ledger: Ledger, question: str, agent: str, told: str
) -> None:
    with pytest.raises(BadInput, match=told):
        await ask(edge_ledger, question, agent)


OWN = """
name: haiku
domain: gardening
title: Haiku
does: Write a haiku about what the question names.
questions: A thing in a garden.
language: en
"""


async def test_a_users_own_agent_answers_once_its_domain_has_a_rubric(edge_ledger: Ledger) -> None:
    with pytest.raises(BadInput, match="gardening has no rubric") as refused:
        await ask(edge_ledger, "A snail.", OWN)
    assert "mneme share rubric design gardening" in refused.value.hint
    design = rubric_design.compile(store=LedgerStore(edge_ledger), checkpointer=InMemorySaver())
    await designed(design, {"domain": "gardening", "tasks": ["haiku"]}, {"decision": "approve"})
    result = await ask(edge_ledger, "A snail on a wet leaf.", OWN, threshold=0)
    kept = (await pool_in(edge_ledger, "gardening").get(result["key"])).pair
    assert (kept.agent, kept.rubric) == ("haiku", 1)


async def test_a_retriever_of_another_embedder_is_a_clear_error(edge_ledger: Ledger) -> None:
    await filled(edge_ledger, "limerick")
    training = retriever_training.compile(store=LedgerStore(edge_ledger))
    for _ in range(3):
        await training.ainvoke(
            {"pool": POEMS}, context=PoolContext(team="poets", grader="rules", learning="projection")
        )
    retrievers = await retrievers_of(pool_in(edge_ledger))
    known = (await retrievers.all())[0]
    other = known.model_copy(
        update={"number": 99, "embedder": "other:embedder", "kept": True, "weights": _weights(retrievers)}
    )
    await retrievers.record(other, change=CHANGE)
    await retrievers.serve(99, instead_of=await retrievers.serving(), change=CHANGE)
    with pytest.raises(LedgerMismatch, match="trained on other:embedder") as refused:
        await ask(edge_ledger, "Write a limerick about a cat.")
    assert "rollback --to 0" in refused.value.hint


def _weights(retrievers: Any) -> str:
    return str(retrievers.store({"left": np.ones((4, 2), dtype=np.float32)}))


# What rules can do, and what they cannot.


def test_rules_say_nothing_that_is_not_in_the_question_or_an_example() -> None:
    example = seeds("limerick")[2]
    question = "Tell of a parrot who judges the poems of pirates."
    assert set(words(compose(question, []))) <= set(words(question))
    said = compose(question, [(example.prompt, example.answer)])
    known = set(words(question)) | set(words(example.answer)) | {"a", "an"}
    assert set(words(said)) <= known
    assert set(words(said)) & set(topic(question)) - set(words(example.answer)), "and it is on its matter"


@pytest.mark.parametrize("agent", ["limerick", "wuyanlvshi", "sonnet", "puzzle", "riddle", "pun", "travel"])
def test_scores_tell_good_pairs_from_bad_ones(agent: str) -> None:
    pairs = seeds(agent)
    good = mean(scored(agent, each.prompt, each.answer) for each in pairs)
    others = [pairs[(at + 7) % len(pairs)].answer for at in range(len(pairs))]
    elsewhere = mean(scored(agent, each.prompt, other) for each, other in zip(pairs, others, strict=True))
    cut = mean(scored(agent, each.prompt, each.answer[: len(each.answer) // 3]) for each in pairs)
    copied = mean(scored(agent, each.prompt, each.answer, [each.answer]) for each in pairs)
    echoed = mean(scored(agent, each.prompt, each.prompt) for each in pairs)
    babble = mean(scored(agent, each.prompt, gibberish(at)) for at, each in enumerate(pairs))
    has_form = load_agent(agent).form is not None  # without a check of form a beginning looks whole
    assert good > elsewhere + (15 if has_form else 5)
    assert good > cut + 15 or not has_form
    assert good > max(copied, echoed, babble) + (40 if has_form else 25)


def scored(agent: str, question: str, answer: str, examples: list[str] | None = None) -> int:
    own = load_agent(agent)
    faults = check_form(own.form, answer) if own.form else []
    given = Judgeable(
        question=question,
        answer=answer,
        criteria=[Criterion(**each.model_dump()) for each in load_rubric(own.domain).criteria],
        examples=examples or [],
        faults=faults,
        form=own.form or "",
    )
    return sum(score_pair.verify(given, by_rule(score_pair, given)).points.values())


def gibberish(seed: int) -> str:
    source = random.Random(seed)
    return " ".join("".join(source.choices("bcdfghkaeiou", k=source.randint(2, 9))) for _ in range(40))


def test_a_faulty_form_lowers_every_criterion_alike() -> None:
    pair = seeds("limerick")[0]
    criteria = [Criterion(name=name, points=50, looks_at="It.") for name in ("Rhyme", "Wit")]
    broken = [Fault(where="line 2", what="does not rhyme")] * 3
    given = Judgeable(question=pair.prompt, answer=pair.answer, criteria=criteria, faults=broken)
    whole = by_rule(score_pair, given.model_copy(update={"faults": []})).points
    points = by_rule(score_pair, given).points
    assert points["Rhyme"] == points["Wit"] < whole["Wit"]


# Through a stand-in for Ollama.


def of(body: Json, prompt: Any) -> bool:
    return bool(body["messages"][0]["content"].startswith(prompt.system))


@pytest.mark.parametrize(("question", "answer", "score"), [(0.0, 1.0, 100), (1.0, 0.5, 68), (1.0, 1.0, 100)])
async def test_a_plain_question_takes_no_points_from_a_good_answer(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch, question: float, answer: float, score: int
) -> None:
    criteria = load_rubric("unconventional_logic").criteria
    assert sum(each.points for each in criteria if each.of_question) == 35
    points = {each.name: int(each.points * (question if each.of_question else answer)) for each in criteria}

    def brain(body: Json) -> str:
        return json.dumps({"rationale": "So.", "points": points}) if of(body, score_pair) else "A shadow."

    with served(monkeypatch, brain=brain):
        scored = await ask(edge_ledger, "What follows me?", "riddle", answerer=MODEL, scorer=MODEL, shots=0)
    assert scored["score"] == pytest.approx(score, abs=2) and scored["stored"] == (score > 70)


HAIKU = """\
name: haiku
domain: literary_creation
title: Haiku
does: Write a haiku on what is asked.
questions: A moment.
language: en
"""


@pytest.mark.parametrize(("known", "measured"), [(HAIKU, True), ("", False)])
async def test_a_likelihood_is_measured_as_the_agent_is_asked_or_not_at_all(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch, known: str, measured: bool
) -> None:
    pairs = [
        each.model_copy(update={"agent": "haiku", "prompt": f"{each.prompt} {n}"})
        for n, each in enumerate(seeds("limerick")[:3])
    ]
    await keep(pool_in(edge_ledger), pairs, change=CHANGE)
    graph = retriever_training.compile(store=LedgerStore(edge_ledger))
    monkeypatch.setattr("mneme.nodes.sharing.retriever_training.ENOUGH", 0)  # else so few are not graded
    clear_endpoints()

    def brain(body: Json) -> Reply:
        graded = {"rationale": "So.", "percent": 20}
        return Reply(json.dumps({"answer": "none"} if of(body, answering.answer) else graded))

    with served(monkeypatch, brain=brain) as double:
        kind = PoolContext(team="poets", grader=MODEL, agent=known, learning="projection")
        await graph.ainvoke({"pool": POEMS}, context=kind)
        asked = [each.body for each in double.chats if of(each.body, answering.answer)]
    clear_endpoints()
    assert len(asked) == measured, "one question finds out that the server tells no log-probabilities"
    for body in asked:
        said = body["messages"][-1]["content"]
        assert "Your task: Write a haiku on what is asked." in said and "scored by:\n- " in said


async def test_nonsense_of_the_scorer_loses_no_answer(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def brain(body: Json) -> Reply:
        if of(body, answering.answer):
            return Reply("There once was a cat on a mat.")
        return Reply(json.dumps({"rationale": "superb", "points": {"Wit": 1000}}))

    with served(monkeypatch, brain=brain):
        result = await ask(edge_ledger, "Write a limerick about a cat.", answerer=MODEL, scorer=MODEL)
    assert result["answer"] == "There once was a cat on a mat."
    assert result["score"] is None and not result["stored"]
    assert result["why"].startswith("Not stored: It could not be scored:")
    assert await pool_in(edge_ledger).count() == 0


async def test_an_agent_that_says_nothing_is_a_failure_that_can_be_gone_on_from(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = memory_sharing.compile(store=LedgerStore(edge_ledger), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "silence"}}
    kind = context(answerer=MODEL)
    with served(monkeypatch, brain=lambda _: Reply("")), pytest.raises((BadAnswer, ModelUnavailable)):
        await graph.ainvoke({"question": "Write a limerick about a cat."}, config, context=kind)
    assert (await graph.aget_state(config)).next == ("answer",)
    with served(monkeypatch, brain=lambda _: Reply("A cat sat on the mat.")):
        result = await graph.ainvoke(None, config, context=kind)
    assert result["answer"] == "A cat sat on the mat."


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
        result = await graph.ainvoke(ONE, context=growth(budget=40))
        sent = len(double.chats)
    assert result["memories"] == await pool_in(edge_ledger).count() > 6
    assert len(set(result["stored"])) == len(result["stored"]) == result["memories"] - 1
    assert sent <= result["asked"]["calls"] <= 40
    left = 40 - result["asked"]["calls"]
    told = f"has {left} left; the next standard answer takes 4." if left else "is spent."
    assert result["why"] == f"The budget of 40 calls {told}"
    unasked = await graph.ainvoke(ONE, context=growth(budget=3))
    assert unasked["why"] == "The budget of 3 calls is too small: the next standard answer takes 4."
    assert unasked["asked"]["calls"] == 0


async def test_a_standard_answer_with_a_question_of_its_own_costs_a_call_less(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(edge_ledger, "limerick")
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger))
    with served(monkeypatch, brain=Poet()):
        result = await graph.ainvoke({"domain": POEMS, "standards": []}, context=growth(budget=7, at_once=1))
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
            await graph.ainvoke(ONE, config, context=growth(budget=60))
        before = (await graph.aget_state(config)).values
        assert 0 < before["asked"]["calls"] < 60
        result = await graph.ainvoke(None, config, context=growth(budget=60))
    assert result["asked"]["calls"] <= 60 and set(before["stored"]) <= set(result["stored"])
    assert len(set(result["stored"])) == len(result["stored"]) == result["memories"] - 1


async def test_every_agent_of_a_domain_may_get_each_question(edge_ledger: Ledger) -> None:
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger))
    told: list[Any] = []
    rules = growth(answerer="rules", asked="domain", budget=8)
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
    result = await graph.ainvoke(mixed, context=growth(answerer="rules", budget=4))
    assert "50000" in result["failed"][0]["why"] and result["asked"]["calls"] > 0, "the other one went in"


async def test_models_that_talk_nonsense_end_no_growth(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger))
    with served(monkeypatch, brain=lambda _: Reply("la la la")):
        result = await graph.ainvoke(ONE, context=growth(scorer=MODEL, budget=30))
    assert result["stored"] == [] and result["memories"] == 1
    assert result["failed"] and result["asked"]["calls"] >= 3


# Rubrics, by a model and a person.


async def designed(graph: Any, given: Any, *words_: Any) -> Any:
    config: Any = {"configurable": {"thread_id": given["domain"]}}
    kind = DesignContext(team="poets", designer="rules")
    result = await graph.ainvoke(given, config, context=kind)
    for each in words_:
        assert "__interrupt__" in result
        result = await graph.ainvoke(Command(resume=each), config, context=kind)
    return result


@pytest.fixture
def design(edge_ledger: Ledger) -> Any:
    return rubric_design.compile(store=LedgerStore(edge_ledger), checkpointer=InMemorySaver())


async def test_an_approved_draft_scores_from_then_on(edge_ledger: Ledger, design: Any) -> None:
    ended = await designed(design, {"domain": POEMS}, {"decision": "approve", "by": "ada", "reason": "apt"})
    assert ended["version"] == 1
    frozen = await rubrics_of(edge_ledger, "poets").latest(POEMS)
    assert (frozen.version, frozen.by, frozen.reason) == (1, "ada", "apt")
    result = await ask(edge_ledger, "Write a limerick about a tailor.", threshold=0)
    assert set(result["points"]) == {each.name for each in frozen.rubric.criteria}
    assert (await pool_in(edge_ledger).get(result["key"])).pair.rubric == 1


async def test_a_review_that_cannot_be_used_is_asked_for_again(edge_ledger: Ledger, design: Any) -> None:
    half = [{"name": "Wit", "points": 50, "looks_at": "It makes one laugh."}]
    whole = [{"name": "Wit", "points": 100, "looks_at": "It makes one laugh."}]
    config: Any = {"configurable": {"thread_id": POEMS}}
    waiting = await designed(design, {"domain": POEMS}, {"decision": "edit", "criteria": half})
    (asked,) = waiting["__interrupt__"]
    assert "sum to 50, not to 100" in asked.value["wrong"]
    assert asked.value["action_requests"][0]["name"] == "freeze_rubric"
    for word in ({}, {"decision": "redraft"}, {"decision": "edit", "criteria": []}):
        again = await design.ainvoke(Command(resume=word), config, context=DesignContext(team="poets"))
        assert again["__interrupt__"][0].value["wrong"]
    edited = {"type": "edit", "edited_action": {"args": {"criteria": whole}}, "message": "wit is all"}
    kind = DesignContext(team="poets")
    ended = await design.ainvoke(Command(resume={"decisions": [edited]}), config, context=kind)
    assert ended["version"] == 1 and ended["rubric"]["criteria"] == [
        whole[0] | {"agents": [], "of_question": False}
    ]
    assert (await rubrics_of(edge_ledger, "poets").latest(POEMS)).reason == "wit is all"


WIT = [{"name": "Wit", "points": 100, "looks_at": "It makes one laugh."}]
AS_TEXT = {"action": "freeze_rubric", "args": {"criteria": json.dumps(WIT)}}
"""As agent-inbox sends what was edited: every value as a text."""


@pytest.mark.parametrize(
    ("answer", "version", "names"),
    [
        ([{"type": "accept", "args": None}], 1, None),
        ([{"type": "edit", "args": AS_TEXT}], 1, ["Wit"]),
        ({"type": "edit", "args": AS_TEXT}, 1, ["Wit"]),
        ({"decisions": [{"type": "edit", "args": AS_TEXT}]}, 1, ["Wit"]),
        ({"decisions": [{"type": "approve", "args": AS_TEXT}]}, 1, None),
        ({"decisions": [{"type": "reject", "message": "no"}]}, 0, None),
        ([{"type": "ignore", "args": None}], 0, None),
        ("approve", 1, None),
        (json.dumps({"decision": "edit", "criteria": WIT}), 1, ["Wit"]),
    ],
)
async def test_every_client_can_review_a_rubric(design: Any, answer: Any, version: int, names: Any) -> None:
    ended = await designed(design, {"domain": POEMS}, answer)
    assert "__interrupt__" not in ended and ended["version"] == version
    assert names is None or [each["name"] for each in ended["rubric"]["criteria"]] == names


@pytest.mark.parametrize(
    "words_",
    [
        [{"type": "response", "args": "look at brevity"}],
        {"decisions": [{"type": "reject", "args": "brevity"}]},
    ],
    ids=["agent-inbox", "agent-inbox, as the middleware"],
)
async def test_what_is_written_to_the_agent_is_a_wish(design: Any, words_: Any) -> None:
    again = await designed(design, {"domain": POEMS}, words_)
    assert again["__interrupt__"], "there is another draft"
    state = await design.aget_state({"configurable": {"thread_id": POEMS}})
    assert "brevity" in state.values["wishes"]


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        ([{"type": "shrug"}], "no decision 'shrug'"),
        ("perhaps", "decision: Input should be 'approve'"),
        ([], "the answer: "),
        ({"decisions": [{"type": "edit", "edited_action": {"name": "x"}}]}, "criteria: "),
        (
            {"decisions": [{"type": "edit", "args": {"action": "x", "args": {"criteria": "[{]"}}}]},
            "criteria: ",
        ),
    ],
)
async def test_what_decides_nothing_is_asked_again(design: Any, answer: Any, wrong: str) -> None:
    asked = await designed(design, {"domain": POEMS}, answer)
    (again,) = asked["__interrupt__"]
    assert again.value["wrong"].startswith(wrong) or wrong in again.value["wrong"]
    assert "Traceback" not in again.value["wrong"] and "pydantic.dev" not in again.value["wrong"]


async def test_a_draft_is_made_anew_by_wishes_or_rejected(edge_ledger: Ledger, design: Any) -> None:
    wishes = {"decision": "redraft", "wishes": "look at brevity"}
    ended = await designed(design, {"domain": POEMS}, wishes, {"decision": "reject"})
    assert ended["version"] == 0
    assert (await rubrics_of(edge_ledger, "poets").latest(POEMS)).version == 0
    config: Any = {"configurable": {"thread_id": POEMS}}
    assert (await design.aget_state(config)).values["wishes"] == "look at brevity"
    with pytest.raises(BadInput, match="Nothing is known of the domain gardening"):
        await designed(design, {"domain": "gardening"})


async def test_a_drafted_rubric_that_does_not_sum_up_is_repaired(
    edge_ledger: Ledger, design: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drafted(*points: int) -> Reply:
        criteria = [{"name": f"c{at}", "points": each, "looks_at": "…"} for at, each in enumerate(points)]
        return Reply(json.dumps({"criteria": criteria}))

    with served(monkeypatch) as double:
        double.chat.reply(drafted(50, 40), drafted(50, 50))
        config: Any = {"configurable": {"thread_id": "repaired"}}
        kind = DesignContext(team="poets", designer=MODEL)
        result = await design.ainvoke({"domain": POEMS}, config, context=kind)
        assert "sum to 90" in double.chats[1].body["messages"][-1]["content"]
    assert [each["points"] for each in result["rubric"]["criteria"]] == [50, 50]


# Many at once.


async def test_eight_agents_share_a_pool_while_its_retriever_trains(edge_ledger: Ledger) -> None:
    pool = await filled(edge_ledger, "limerick", "sonnet")
    began = await pool.count()
    training = asyncio.create_task(_train_for_ever(edge_ledger))

    async def agent(number: int) -> list[Any]:
        kind = ("limerick", "sonnet")[number % 2]
        asked = [f"Sing of {noun} number {number % 4}." for noun in ("the lamp", "the road", "the storm")]
        return [await ask(edge_ledger, each, kind, threshold=0, shots=number % 4) for each in asked]

    answers = [each for told in await asyncio.gather(*map(agent, range(8))) for each in told]
    training.cancel()
    await asyncio.gather(training, return_exceptions=True)
    stored = [each["key"] for each in answers if each["stored"]]
    assert len(stored) == len(set(stored)), "what two agents said alike is new once"
    assert await pool.count() == began + len(stored)
    held = {each.key async for each in pool.pairs()}
    assert {each["key"] for each in answers if each["key"]} <= held, "no pair is lost"
    copied = [each["why"] for each in answers if not each["key"]]
    assert all("it repeats an example" in each for each in copied) and len(copied) < len(answers) / 4


async def _train_for_ever(ledger: Ledger) -> None:
    graph = retriever_training.compile(store=LedgerStore(ledger))
    while True:
        await graph.ainvoke(
            {"pool": POEMS}, context=PoolContext(team="poets", grader="rules", learning="projection")
        )
        await asyncio.sleep(0)


async def test_no_answer_waits_for_a_training_that_hangs(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(edge_ledger, "limerick")
    graph = retriever_training.compile(store=LedgerStore(edge_ledger))
    with served(monkeypatch, seconds=600.0, brain=lambda _: Reply("{}")) as double:
        hanging = asyncio.create_task(
            graph.ainvoke(
                {"pool": POEMS}, context=PoolContext(team="poets", grader=MODEL, learning="projection")
            )
        )
        await until(lambda: double.chats)
        answers = [await ask(edge_ledger, f"Sing of stone {number}.", threshold=0) for number in range(4)]
        assert not hanging.done()
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
    assert all(each["answer"] and each["stored"] for each in answers)
    assert await RetrieverLessons(pool_in(edge_ledger)).count_on("waiting") >= 4, (
        "they are learned the next time"
    )


def test_a_question_may_not_quote_the_answer() -> None:
    given = standard_answers.Standard(
        does="Write.", questions="Any.", answer="one two three four five six seven"
    )
    with pytest.raises(ValueError, match="quotes the answer"):
        standard_answers.ask_for.verify(given, Question(question="Say one two three four five six seven."))
    known = given.model_copy(update={"known": ["Count."]})
    with pytest.raises(ValueError, match="asks the same"):
        standard_answers.ask_for.verify(known, Question(question="Count."))


# What went wrong once.


async def test_a_long_question_leaves_its_thread_usable(edge_ledger: Ledger) -> None:
    graph = memory_sharing.compile(store=LedgerStore(edge_ledger), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "long"}}
    await graph.ainvoke({"question": "x" * 19_998}, config, context=context(threshold=0))
    later = await graph.ainvoke({"question": "And now a cat."}, config, context=context(threshold=0))
    kept = (await pool_in(edge_ledger).get(later["key"])).pair
    assert len(kept.leading[0]) == 20_000 and kept.leading[0].startswith("user: x")


async def test_a_pair_names_the_rubric_that_scored_it_not_one_frozen_since(
    edge_ledger: Ledger, design: Any
) -> None:
    graph = memory_sharing.compile(
        store=LedgerStore(edge_ledger), checkpointer=InMemorySaver(), interrupt_before=["store"]
    )
    config: Any = {"configurable": {"thread_id": "between"}}
    await graph.ainvoke({"question": "Write a limerick."}, config, context=context(threshold=0))
    await designed(design, {"domain": POEMS}, {"decision": "approve"})
    result = await graph.ainvoke(None, config, context=context(threshold=0))
    assert (await pool_in(edge_ledger).get(result["key"])).pair.rubric == 0


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
    kind = growth(scorer=MODEL, budget=4)
    with served(monkeypatch, brain=brain) as double:
        with pytest.raises(ModelUnavailable):
            await graph.ainvoke({"domain": POEMS}, config, context=kind)
        result = await graph.ainvoke(None, config, context=kind)
        asked = [each for each in double.chats if of(each.body, answering.answer)]
    assert len(asked) == 1
    assert len(result["stored"]) == 1 and result["rejected"] == result["known"] == 0


async def test_what_a_growth_says_again_is_known_and_not_rejected(edge_ledger: Ledger) -> None:
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger))
    kind = growth(answerer="rules", threshold=0, budget=4, laps=1)
    said = [each async for each in graph.astream(ONE, context=kind, stream_mode="custom")]
    pairs = [each for each in said if each["step"] == "exchange"]
    assert pairs and all(each["stored"] != each["known"] for each in pairs)
    again = await graph.ainvoke({"domain": POEMS}, context=kind)
    assert again["rejected"] == 0 and again["known"] + len(again["stored"]) > 0
    pool = pool_in(edge_ledger, "copy")
    pair = Pair(prompt="Sing.", answer="La.", agent="limerick", domain=POEMS, score=80)
    for once, is_new in (("a", True), ("a", True), ("b", False)):
        assert await keep(pool, [pair], change=CHANGE, once=once) == [is_new]


async def test_a_training_that_cannot_be_woken_fails_no_answer(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(monkeypatch) as double:
        monkeypatch.setattr(
            "mneme.nodes.sharing.training_wake.get_client", lambda **_: get_client(url=double.url)
        )
        server = ServerInfo(assistant_id="a", graph_id="memory_sharing")
        runtime = Runtime(context=context(threshold=0), store=LedgerStore(edge_ledger), server_info=server)
        state: Any = {"question": "Sing.", "turns": [], "answer": "La, la.", "points": {"wit": 80}}
        state |= {"rationale": "", "faults": [], "scored_by": "rules", "answered_by": "rules"}
        state |= {"score": 80, "pool": POEMS, "retriever": 0, "rubric": 0}
        result = await store(state, runtime)
    assert result["stored"] and await pool_in(edge_ledger).holds(result["key"])
    assert result["why"].startswith("Stored. Its training could not be woken")


def test_who_scores_sees_the_examples_that_may_not_be_copied() -> None:
    given = Judgeable(question="Sing.", answer="La.", criteria=[], examples=["Lo, lo, an example."])
    assert "Lo, lo, an example." in score_pair.wording(given)[1]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"question": 5}, "question: "),
        ({}, "question is empty"),
        ({"question": "Sing.", "leading": "abc"}, "leading: "),
        ({"question": "Sing.", "leading": [1]}, "leading.0: "),
        ({"question": "Sing.", "leading": ["x" * 50_000]}, "leading.0: "),
    ],
)
async def test_what_a_client_asks_wrongly_is_named(edge_ledger: Ledger, given: Any, told: str) -> None:
    graph = memory_sharing.compile(store=LedgerStore(edge_ledger))
    with pytest.raises(BadInput, match=told):
        await graph.ainvoke(given, context=context())


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


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "domain: "),
        ({"domain": POEMS, "tasks": "abc"}, "tasks: "),
        ({"domain": POEMS, "wishes": 5}, "wishes: "),
    ],
)
async def test_what_a_design_is_given_wrongly_is_named(design: Any, given: Any, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        config: Any = {"configurable": {"thread_id": "wrong"}}
        await design.ainvoke(given, config, context=DesignContext(team="poets", designer="rules"))
