"""Rubrics: drafted by a model, reviewed by a person, and scored by from then on."""

import json
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from mneme.core.errors import BadInput
from mneme.graphs.memory_sharing import builder as memory_sharing
from mneme.graphs.rubric_design import builder as rubric_design
from mneme.nodes.sharing.context import DesignContext
from mneme.nodes.sharing.pools import rubrics_of
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.ollama import Reply
from tests.doubles.served import served
from tests.doubles.sharing import MODEL, POEMS, ask, context, pool_in

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
