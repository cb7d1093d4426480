"""Every graph inside somebody else's: with a context of the parent's, with none, and with a foreign store."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.memory import InMemoryStore

from mneme.core.errors import BadInput
from mneme.graphs import load
from mneme.nodes.chat.chatbot import Conversation
from mneme.nodes.chat.context import ChatContext, MemoryContext
from mneme.nodes.workflow import CompiledWorkflow
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.query import Mode
from mneme.stores.users.inbox import Inbox
from mneme.stores.users.memories import UserMemories

pytestmark = pytest.mark.usefixtures("no_model")
GRAPHS = json.loads((Path(__file__).parents[1] / "langgraph.json").read_text())["graphs"]


@dataclass
class Theirs:
    """A context of another program, with a field that ours has, too."""

    user: str = "ann"
    tone: str = "dry"


def parent(child: str, state: Any, context: Any = None, **compiled: Any) -> Any:
    builder: Any = StateGraph(state, context_schema=context)
    builder.add_node("child", load(child).graph)
    builder.add_edge(START, "child")
    return builder.compile(**compiled)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_graph_makes_its_own_context_of_any(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    contexts = list[Any]()
    monkeypatch.setattr(
        CompiledStateGraph, "astream", lambda self, given, *, context: contexts.append(context)
    )
    graph = load(name).graph
    assert isinstance(graph, CompiledWorkflow)
    kind = graph.context_schema
    assert kind is not None
    several: list[Any] = [None, {}, Theirs()]
    for given in several:
        graph.astream({}, context=given)
        assert isinstance(contexts[-1], kind | dict), given


async def test_a_parent_s_context_is_taken_and_none_is_the_default(ledger: Ledger) -> None:
    said: Any = {"messages": [{"role": "user", "content": "I live in Oslo.", "id": "m1"}]}
    store = LedgerStore(ledger)
    answered = await parent("chatbot", Conversation, Theirs, store=store).ainvoke(said, context=Theirs())
    assert answered["messages"][-1].type == "ai"
    assert [each["message"] for each in await Inbox(ledger).pending("ann")] == ["I live in Oslo."]
    await parent("chatbot", Conversation, store=store).ainvoke(said)
    assert len(await Inbox(ledger).pending("local")) == 1
    await load("remember").builder.compile(store=store).ainvoke({}, context=MemoryContext(user="ann"))
    (memory,) = await UserMemories(ledger, "ann").all()
    assert "Oslo" in memory.memory.content


async def test_what_does_not_fit_or_is_no_ledger_says_what_to_do(ledger: Ledger) -> None:
    said: Any = {"messages": [{"role": "user", "content": "Hello."}]}
    with pytest.raises(BadInput, match="does not fit chatbot: recall"):
        wrong = parent("chatbot", Conversation, dict, store=LedgerStore(ledger))
        await wrong.ainvoke(said, context={"recall": -1})
    for store in (None, InMemoryStore()):
        with pytest.raises(BadInput, match="without a ledger") as refused:
            await parent("chatbot", Conversation, store=store).ainvoke(said)
        assert "mneme.open_store" in refused.value.hint
    assert ChatContext().user == "local"


async def test_the_score_of_a_search_is_the_cosine(ledger: Ledger) -> None:
    modes: list[Mode] = ["dense", "hybrid", "blend", "bm25"]
    for mode in modes:
        store = LedgerStore(ledger, mode=mode)
        await store.aput(("notes",), "tea", {"text": "Ann drinks green tea."})
        (found,) = await store.asearch(("notes",), query="Ann drinks green tea.")
        assert found.score is None if mode == "bm25" else found.score == pytest.approx(1, abs=1e-3), mode


SAID = {"messages": [{"role": "user", "content": "I live in Oslo.", "id": "m1"}]}
HOME = {"category": "Prepare Tea", "agents": 1}
STANDARD = {"agent": "limerick", "answer": "There once was a man from Peru."}
GIVEN: dict[str, Any] = {
    **dict.fromkeys(("mita", "coela", "proagent", "mhp"), HOME),
    "interactive_learning": {"domain": "literary_creation", "standards": [STANDARD]},
    "pddl_team": {"domain": "gripper", "size": 1},
    "retriever_training": {"pool": "literary_creation"},
}
"""What a graph is given that takes no messages."""
ASKING = {"consolidation", "dispute_resolution", "rubric_design"}
"""Graphs that end with a question to a person, or need a dispute or a model; they have tests of their own."""


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({*GRAPHS} - ASKING))
async def test_every_graph_runs_as_a_step_of_another(name: str, ledger: Ledger) -> None:
    outer = parent(name, load(name).builder.state_schema, Theirs, store=LedgerStore(ledger))
    ended = await outer.ainvoke(GIVEN.get(name, SAID), {"recursion_limit": 2000}, context=Theirs())
    assert {*ended} - {*GIVEN.get(name, SAID)}, "it has done something"
