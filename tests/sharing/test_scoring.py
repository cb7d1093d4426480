"""How pairs are scored, by rules and by a model."""

import json
import random
from statistics import mean

import pytest

from mneme.graphs.retriever_training import builder as retriever_training
from mneme.library.agents.agent import load_agent
from mneme.library.agents.forms import check_form
from mneme.library.agents.rubric import load_rubric
from mneme.models.asking.asking import clear_endpoints
from mneme.nodes.sharing.context import PoolContext
from mneme.prompts.sharing import answering
from mneme.prompts.sharing.examples import Criterion, words
from mneme.prompts.sharing.scoring import Fault, Judgeable, score_pair
from mneme.rules.registry import answer as by_rule
from mneme.rules.sharing import compose, topic
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.pools.lessons import keep
from tests.doubles.ollama import Json, Reply
from tests.doubles.served import served
from tests.doubles.sharing import CHANGE, MODEL, POEMS, ask, of, pool_in, seeds


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
    monkeypatch.setattr(
        "mneme.nodes.sharing.retriever_training.MIN_HELD_OUT", 0
    )  # else so few are not graded
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


def test_who_scores_sees_the_examples_that_may_not_be_copied() -> None:
    given = Judgeable(question="Sing.", answer="La.", criteria=[], examples=["Lo, lo, an example."])
    assert "Lo, lo, an example." in score_pair.wording(given)[1]
