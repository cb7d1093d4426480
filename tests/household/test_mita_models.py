"""What a model's nonsense does to MiTa, and what models are told in words."""

import re
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from mneme.api.memories import Memories
from mneme.environments.household.generator import generate
from mneme.environments.household.macro import MAX_WAIT_STEPS
from mneme.environments.household.scene import AGENT_NAMES
from mneme.graphs.mita import builder
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.household import context, given
from tests.doubles.ollama import Answer, Json, Model, Reply
from tests.doubles.served import served


def options_in(body: Json) -> str:
    return str(body["messages"][-1]["content"])


def sensible(body: Json) -> Answer:
    """Answer as a model might that chooses the first option, and for the manager the proposals."""
    system = str(body["messages"][0]["content"])
    if "You are the manager" in system:
        user = str(body["messages"][1]["content"])
        count = user.count("may do:")
        return {"reason": "The first.", "forbidden": "", "choices": {AGENT_NAMES[n]: n for n in range(count)}}
    if "You keep the memory" in system:
        return {"narrative": "Something happened.", "found": [], "placed": [], "checked": [],
                "unchecked": [], "explored": []}  # fmt: skip
    return {"reason": "The first.", "choice": 0}


async def first_rounds(rounds: int, **more: Any) -> Any:
    """Play so many rounds, and return the state."""
    graph = builder.compile(checkpointer=InMemorySaver(), interrupt_after=["execute"])
    config: Any = {"configurable": {"thread_id": "t"}}
    first: Any = given(generate(2, "Prepare Tea", 2))
    for _ in range(rounds):
        await graph.ainvoke(first, config, context=context(**more))
        first = None
    return (await graph.aget_state(config)).values


async def test_member_and_manager_may_be_different_models(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Model("small"), Model("large"), brain=sensible) as double:
        state = await first_rounds(2, member="ollama:small", manager="ollama:large")
        asked = {(chat.body["model"], str(chat.body["messages"][0]["content"])[:16]) for chat in double.chats}
    assert {("small", "You are a member"), ("large", "You are the mana")} <= asked
    assert state["counters"]["calls"] == len(double.chats)
    assert state["counters"]["prompt_tokens"] > 0 and state["counters"]["reply_tokens"] > 0
    assert state["counters"].get("fallbacks", 0) == 0
    assert set(state["answered_by"]) == {"member: ollama:small", "manager: ollama:large"}


async def test_a_member_is_told_everything_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Model("small"), brain=sensible) as double:
        await first_rounds(2, member="ollama:small")
        user = str(double.chats[-1].body["messages"][1]["content"])
    for part in ("Task:", "Progress:", "What you see now:", "What you believe:", "[0]", "about", "steps"):
        assert part in user
    assert "Template" not in user and "room=" not in user, "words, not field dumps"


async def test_a_duplicate_allocation_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def confused(body: Json) -> Answer:
        """Send everybody to one place until told that this cannot be."""
        answer = sensible(body)
        if "You are the manager" not in str(body["messages"][0]["content"]):
            return answer
        if len(body["messages"]) > 2:
            told.append(str(body["messages"][-1]["content"]))
            return answer
        lines = str(body["messages"][1]["content"]).splitlines()
        numbers = [
            line.split("]")[0].strip()[1:]
            for line in lines
            if line.strip().startswith("[") and "goexplore <kitchen>" in line
        ]
        picks = {AGENT_NAMES[n]: int(number) for n, number in enumerate(numbers)}
        return {"reason": "All there.", "forbidden": "", "choices": picks}

    with served(monkeypatch, Model("large"), brain=confused):
        state = await first_rounds(1, manager="ollama:large")
    assert any("both go for" in words or "exactly one choice" in words for words in told)
    assert state["counters"]["repaired"] >= 1 and state["counters"].get("fallbacks", 0) == 0


async def test_a_wish_that_forbids_the_task_ends_it_early_and_is_said(
    monkeypatch: pytest.MonkeyPatch, edge_ledger: Ledger
) -> None:
    wish = "Nobody may put anything on the coffeetable."
    await Memories(edge_ledger, "local").add(wish)

    def heeding(body: Json) -> Answer:
        answer = sensible(body)
        if "You are the manager" not in str(body["messages"][0]["content"]):
            return answer
        user = str(body["messages"][-1]["content"])
        waits = re.findall(r"^    \[(\d+)\] wait$", user, re.M)
        choices = {name: int(number) for name, number in zip(AGENT_NAMES, waits, strict=False)}
        return {"reason": "It is not wished.", "forbidden": wish * (wish in user), "choices": choices}

    graph = builder.compile(store=LedgerStore(edge_ledger))
    with served(monkeypatch, Model("large"), brain=heeding):
        stream = graph.astream(
            given(generate(0, "Prepare Tea", 2)),
            context=context(manager="ollama:large"),
            stream_mode="custom",
        )
        told = [event async for event in stream]
    (decision,) = [event for event in told if event["step"] == "allocate"]
    assert decision["forbidden"] == wish
    assert told[-1] == {"step": "finish", "success": False, "steps": MAX_WAIT_STEPS}


async def test_nonsense_falls_back_to_the_members_own_proposals(monkeypatch: pytest.MonkeyPatch) -> None:
    def babbling(body: Json) -> Answer:
        return Reply('{"reason": "so", "choices": {"Zoe": 99}}')

    with served(monkeypatch, Model("large"), brain=babbling):
        state = await first_rounds(1, manager="ollama:large", summary=False)
    proposed = [each["option"] for each in sorted(state["proposals"], key=lambda each: each["member"])]
    assert [(each.kind, each.target) for each in state["decided"]] == [
        (each["kind"], each["target"]) for each in proposed
    ]
    assert state["counters"]["fallbacks"] == 2 and state["counters"]["repaired"] == 2
    assert state["counters"]["unallocated"] == 1


async def test_a_member_that_babbles_does_what_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    with served(monkeypatch, Model("small"), brain=lambda _: Reply("I would love to help!")):
        state = await first_rounds(1, member="ollama:small", allocation=False)
    assert state["counters"]["fallbacks"] == 2
    assert all(each.kind != "wait" for each in state["decided"])
    assert state["steps"] >= 0 and state["world"]["steps"] > 0


async def test_a_synopsis_that_stays_unusable_is_made_up_for_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forgetful(body: Json) -> Answer:
        if "You keep the memory" in str(body["messages"][0]["content"]):
            return {"narrative": "Wrong.", "found": [{"thing": 4711, "place": 4712}], "placed": [],
                    "checked": [], "unchecked": [], "explored": []}  # fmt: skip
        return sensible(body)

    with served(monkeypatch, Model("large"), brain=forgetful):
        state = await first_rounds(4, manager="ollama:large")
    assert not state["synopses"] and state["counters"]["fallbacks"] > 0
    assert len(state["actions"]) > 2, "the record waits for a synopsis that holds"
