"""Memory Sharing through its graph: agents answer after what others remember, and remember what is good."""

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.runtime import Runtime, ServerInfo
from langgraph_sdk import get_client

from mneme.core.errors import BadAnswer, BadInput, LedgerMismatch, ModelUnavailable
from mneme.graphs.memory_sharing import builder as memory_sharing
from mneme.graphs.retriever_training import builder as retriever_training
from mneme.library.agents.rubric import load_rubric
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.sharing.context import PoolContext
from mneme.nodes.sharing.memory_sharing import store
from mneme.nodes.sharing.pools import retrievers_of
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.lessons import RetrieverLessons
from mneme.stores.pools.memory_pool import MemoryPool, Pair
from tests.doubles.ollama import Reply
from tests.doubles.scripts import script
from tests.doubles.served import served
from tests.doubles.sharing import CHANGE, MODEL, POEMS, ask, context, filled, pool_in, seeds
from tests.doubles.waiting import until


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
    reworded = pair("For how long should I learn in one go?", "Rest for five after you study 25 minutes.")
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
    assert "rollback --to-version 0" in refused.value.hint


def _weights(retrievers: Any) -> str:
    return str(retrievers.store({"left": np.ones((4, 2), dtype=np.float32)}))


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
    assert all("it repeats an example" in each for each in copied) and len(copied) < len(answers) / 2


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
        answers = [
            await ask(edge_ledger, f"Sing of stone {number}.", threshold=0, shots=0) for number in range(4)
        ]
        assert not hanging.done()
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
    assert all(each["answer"] and each["stored"] for each in answers)
    assert await RetrieverLessons(pool_in(edge_ledger)).count_on("waiting") >= 4, (
        "they are learned the next time"
    )


async def test_a_long_question_leaves_its_thread_usable(edge_ledger: Ledger) -> None:
    graph = memory_sharing.compile(store=LedgerStore(edge_ledger), checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "long"}}
    await graph.ainvoke({"question": "x" * 19_998}, config, context=context(threshold=0))
    later = await graph.ainvoke({"question": "And now a cat."}, config, context=context(threshold=0))
    kept = (await pool_in(edge_ledger).get(later["key"])).pair
    assert len(kept.leading[0]) == 20_000 and kept.leading[0].startswith("user: x")


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
