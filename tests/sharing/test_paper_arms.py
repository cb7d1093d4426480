"""The paper's arms: whole prompts as memories, one number by the printed rubric, agents of several models."""

from typing import Any

import pytest

from mneme.core.errors import BadInput
from mneme.evals.options import Identity
from mneme.evals.sharing.memory_sharing import Options, arms_of
from mneme.graphs.interactive_learning import builder as interactive_learning
from mneme.graphs.memory_sharing import builder as memory_sharing
from mneme.library.agents.rubric import RUBRICS, Criterion, load_rubric, printed
from mneme.nodes.sharing.context import GrowthContext, SharingContext
from mneme.nodes.sharing.exchange import COMPOSED, composed, example_of
from mneme.nodes.sharing.pools import rubrics_of
from mneme.prompts.sharing.examples import TOTAL_POINTS
from mneme.prompts.sharing.scoring import Gradeable, Whole, score_whole
from mneme.prompts.sharing.standard_answers import Question
from mneme.rules.registry import answer as by_rule
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.memory_pool import MAX_PAIR_CHARS, MemoryPool, Pair, Pooled
from tests.doubles.scripts import script

POEMS = "literary_creation"
CHANGE = Change(reason="a test", actor="test")
RULES = {"answerer": "rules", "scorer": "rules", "grader": "rules", "team": "poets", "threshold": 0}


def pair(prompt: str, answer: str) -> Pair:
    return Pair(prompt=prompt, answer=answer, agent="sonnet", domain=POEMS, score=90)


async def ask(ledger: Ledger, question: str, agent: str = "limerick", **more: Any) -> Any:
    graph = memory_sharing.compile(store=LedgerStore(ledger))
    given: Any = {"question": question}
    return await graph.ainvoke(given, context=SharingContext(**{**RULES, "agent": agent, **more}))


async def test_a_whole_prompt_is_scored_and_kept_with_its_examples(edge_ledger: Ledger) -> None:
    pool = MemoryPool(edge_ledger, "poets", POEMS)
    await pool.add(pair("Sing of the sea.", "The sea is wide."), change=CHANGE)
    script("poet", {"answer": ["A cat went to sea in a hat."]})
    script("judge", {"score_whole": [Whole(score=71)]})
    told: dict[str, Any] = {"answerer": "scripted:poet", "scorer": "scripted:judge"}
    result = await ask(edge_ledger, "Sing of a cat.", stored="prompt", scoring="printed", **told)
    assert (result["score"], result["points"], result["stored"]) == (71, {"whole": 71}, True)
    kept = (await pool.get(result["key"])).pair
    assert kept.scoring == "printed"
    assert kept.prompt == f"Sing of the sea.->The sea is wide. | {COMPOSED}Sing of a cat."
    alone = await ask(edge_ledger, "Sing of a dog.", stored="prompt", shots=0)
    assert (await pool.get(alone["key"])).pair.prompt == "Sing of a dog."


async def test_a_whole_prompt_is_an_example_by_its_own_question(edge_ledger: Ledger) -> None:
    """Else each example would bring the examples before it, and with them the answer that is asked for."""
    pool = MemoryPool(edge_ledger, "poets", POEMS)
    led = pair("And of tea?", "The tea is hot.").model_copy(update={"leading": ["user: Of the sea?"]})
    await pool.add(led, change=CHANGE)
    script("poet", {"answer": ["A cat went to sea in a hat.", "A dog sat on a log in the fog."]})
    told: dict[str, Any] = {"answerer": "scripted:poet", "stored": "prompt", "shots": 1}
    first = await ask(edge_ledger, "Sing of a cat at tea.", **told)
    kept = (await pool.get(first["key"])).pair
    assert kept.prompt.startswith("user: Of the sea?\nuser: And of tea?->The tea is hot. | | Now")
    assert (kept.asks, kept.asked) == ("Sing of a cat at tea.",) * 2
    assert example_of(kept).question == "Sing of a cat at tea."
    nested = composed("Sing of a dog.", [Pooled(key="a", pair=kept)])
    assert nested == f"Sing of a cat at tea.->A cat went to sea in a hat. | {COMPOSED}Sing of a dog."


def test_a_whole_prompt_that_is_too_long_loses_its_last_examples() -> None:
    long = Pooled(key="a", pair=pair("Long?", "x" * (MAX_PAIR_CHARS - 60)))
    short = Pooled(key="b", pair=pair("Short?", "Yes."))
    assert composed("Why?", [short, long]) == f"Short?->Yes. | {COMPOSED}Why?"
    assert composed("Why?", [long]) == "Why?"
    assert composed("y" * MAX_PAIR_CHARS, [short]) == "y" * MAX_PAIR_CHARS


async def test_a_printed_rubric_is_the_papers_and_a_teams_own_stays_its_own(edge_ledger: Ledger) -> None:
    firsts = {name: printed(load_rubric(name)).splitlines()[0] for name in RUBRICS}
    assert firsts == {
        POEMS: f"General Evaluation Criteria (Total: {TOTAL_POINTS})",
        "unconventional_logic": "Clarity and Understandability (20 points)",
        "plan_generation": "Specificity and Detail (20 points)",
        "single_pool": "Accuracy (25 Points)",
    }
    assert "AABBA" in printed(load_rubric(POEMS))
    mood = Criterion(name="Mood", points=100, looks_at="Its mood.")
    own = load_rubric(POEMS).model_copy(update={"criteria": (mood,)})
    for text in (printed(own), own.as_text()):
        result = await ask(edge_ledger, "Sing of a cat.", scoring="printed", shots=0)
        pair_ = Gradeable(rubric=text, question="Sing of a cat.", answer=result["answer"])
        assert result["score"] == by_rule(score_whole, pair_).score
        await rubrics_of(edge_ledger, "poets").freeze(POEMS, own, change=CHANGE)


async def test_agents_of_different_models_share_a_pool(edge_ledger: Ledger) -> None:
    """Each agent is answered for by its own model, and sees what the other's wrote (§5)."""
    poems = ["There was a cat in the sun.", "A mouse has a house by the sea."]
    script("one", {"answer": [*poems], "ask_for": [Question(question="Of whom?")]})
    script("two", {"answer": ["Shall I compare thee to a cat?"]})
    told = {"answerers": "limerick=scripted:one, sonnet=scripted:two"}
    first = await ask(edge_ledger, "Sing of a cat.", **told)
    second = await ask(edge_ledger, "Sing of a cat in fourteen lines.", "sonnet", **told)
    assert (first["answered_by"], second["answered_by"]) == ("scripted:one", "scripted:two")
    assert [each["key"] for each in second["shown"]] == [first["key"]]
    assert (await ask(edge_ledger, "Of tea.", "wuyanlvshi", **told))["answered_by"] == "rules"
    graph = interactive_learning.compile(store=LedgerStore(edge_ledger))
    context = GrowthContext(**{**RULES, **told, "calls": 4, "asked": "own", "at_once": 1})
    grown = await graph.ainvoke({"domain": POEMS}, context=context)
    (key,) = grown["stored"]
    (version,) = await edge_ledger.history(MemoryPool(edge_ledger, "poets", POEMS).namespace, key)
    assert version.change.model == "scripted:one"
    with pytest.raises(BadInput, match='no agent and model: "sonnet"'):
        await ask(edge_ledger, "Sing.", answerers="sonnet")


def test_arms_are_the_models() -> None:
    who = Identity(responder="rules")
    arms = arms_of(Options(agents=["a:1", "b:2", "a:1"]), who)
    assert {name: each.answerer for name, each in arms.items()} == {"a:1": "a:1", "b:2": "b:2"}
    assert {each.scorer for each in arms.values()} == {"rules"}
    assert [*arms_of(Options(), who)] == [""]
