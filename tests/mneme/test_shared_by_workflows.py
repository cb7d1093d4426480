"""What one workflow learns, the others are shown; what they make of it is out of date with it."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from mneme import graphs
from mneme.api.memories import Memories
from mneme.api.shared_memory import SharedMemory
from mneme.core.errors import Forbidden
from mneme.core.settings import settings
from mneme.nodes.chat.context import ChatContext
from mneme.nodes.discussion.context import DiscussionContext
from mneme.nodes.household.context import HouseholdContext
from mneme.nodes.learning.context import LearningContext
from mneme.nodes.sharing.context import SharingContext
from mneme.prompts.discussion.document import UNSAID, UNSHOWN
from mneme.prompts.learning.compound_learning.challenge import Objection, Objections
from mneme.prompts.prompt import SHARED_HEADING, Informed
from mneme.prompts.sharing.answering import AskedQuestion, answer
from mneme.stores.cards.card import Lesson
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.discussions.agent_memory import CarriedMemories
from mneme.stores.discussions.discussions import SAYS_NOTHING
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from mneme.stores.pools.lessons import RetrieverLessons
from mneme.stores.pools.memory_pool import MemoryPool, Pair, Pooled
from mneme.stores.users.memories import UserMemories
from mneme.stores.users.memory import Memory
from mneme.stores.users.promotion import TeamFacts
from tests.doubles.ollama import Json, Model, Reply
from tests.doubles.scripts import script
from tests.doubles.served import served

FACT = "Reporting runs on PostgreSQL since May."
TASK = "Design the reporting database for the sales team. It must answer within a second."
WHY = Change(reason="a test", actor="test")


async def run(
    ledger: Ledger, name: str, given: dict[str, Any], context: Any, who: str = ""
) -> tuple[list[str], dict[str, Any]]:
    """Run a graph, as a user whose key the server knows; return what it was shown of others, and its end."""
    graph = graphs.load(name).builder.compile(store=LedgerStore(ledger))
    shown, state = list[str](), dict[str, Any]()
    config: Any = {"recursion_limit": 2000}
    if who:
        config["configurable"] = {"langgraph_auth_user": SimpleNamespace(identity=who, permissions=[])}
    async for mode, event in graph.astream(
        cast(Any, given), context=context, stream_mode=["custom", "values"], config=config
    ):
        if mode == "values":
            state = cast(dict[str, Any], event)
        elif event.get("step") == "shared":
            shown += event["shown"]
    return shown, state


async def discuss(ledger: Ledger, who: str = "", **settings: Any) -> list[str]:
    given = {"task": TASK, "team": "data_pipeline", "discussion_id": "d1"}
    context = DiscussionContext(agents="rules", max_turns=4, **settings)
    shown, _ = await run(ledger, "intrinsic_memory", given, context, who)
    return shown


async def learn(ledger: Ledger, **settings: Any) -> list[str]:
    agents = dict.fromkeys(("researcher", "devils_advocate", "leader", "monitor"), "rules")
    given = {"task": "Make the monthly reporting query faster."}
    shown, _ = await run(ledger, "compound_learning", given, LearningContext(**agents | settings))
    return shown


async def test_what_the_chat_was_told_reaches_three_workflows_and_a_correction_all_that_they_made(
    bundled: Ledger,
) -> None:
    memories, shared = Memories(bundled, "local"), SharedMemory(bundled, "local")
    told = await memories.add(FACT)
    await memories.add("At home we keep the wine in the fridge.")
    for shown in (await learn(bundled), await discuss(bundled)):
        (line,) = shown
        assert line.startswith(f"{FACT} [local said, "), "with its origin"
    at_home, _ = await run(
        bundled,
        "mita",
        {"category": "Prepare Tea", "agents": 2, "seed": 0},
        HouseholdContext(member="rules", manager="rules"),
    )
    assert [each.partition(" [")[0] for each in at_home] == ["At home we keep the wine in the fridge."]
    agreed = [each.text for each in await shared.recall(TASK, kinds=["agreement"])]
    assert any(each.startswith("Reporting runs on PostgreSQL since May") for each in agreed)
    assert [each.text for each in await shared.trace("d1")][1:] == [FACT]
    await memories.update(told.key, "Reporting runs on DuckDB since June.", reason="it moved")
    assert [each.key for each in await shared.stale()] == ["d1"]
    (_, source) = await shared.trace("d1")
    assert (source.version, source.text, source.said) == (1, FACT, FACT), "as it was then"
    assert source.stale == "It says now: Reporting runs on DuckDB since June."
    assert not await shared.recall(TASK, kinds=["agreement"])
    assert (await learn(bundled))[0].startswith("Reporting runs on DuckDB since June.")


async def test_a_patch_is_shown_what_the_first_draft_was(
    bundled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Memories(bundled, "local").add(FACT)
    objection = Objection(evidence="It misses a day.", kind="missing_edge_case", severity="blocking")
    script("critic", {"challenge_draft": [Objections(objections=[objection]), Objections()]})

    def drafting(body: Json) -> Reply:
        said = {"rationale": "So.", "pattern": "", "statements": [], "query": "", "files": [], "diff": ""}
        said |= {"used": [], "assumptions": []}
        if "objected to your draft" in str(body["messages"][0]["content"]):
            return Reply(json.dumps(said | {"answer": "Index the month and the day.", "closed": [0]}))
        return Reply(json.dumps(said | {"answer": "Index the month."}))

    with served(monkeypatch, Model("small"), brain=drafting) as double:
        (line,) = await learn(bundled, researcher="ollama:small", devils_advocate="scripted:critic")
        asked = [each.body["messages"][-1]["content"] for each in double.chats]
    assert len(asked) == 2 and all(f"{SHARED_HEADING}\n- {line}\n" in each for each in asked)


async def test_forgetting_erases_the_discussion_that_repeats_it_and_names_what_does_not(
    bundled: Ledger,
) -> None:
    memories = Memories(bundled, "local")
    told = await memories.add(FACT)
    await discuss(bundled)
    head = await UserMemories(bundled, "local").head(told.key)
    card = Lesson(claim="Index the day column.", rationale="measured", rules=[], scope="")
    source = WHY.model_copy(update={"source": WHY.source.model_copy(update={"records": [head.reference]})})
    made = (await KnowledgeCards(bundled, "local").propose(card, change=source)).card
    erased = await memories.forget(told.key)
    assert not [line async for line in bundled.export() if "PostgreSQL" in line]
    (left,) = erased.left
    assert left.startswith(made.id)


async def test_agents_carry_nothing_that_was_corrected_and_what_they_carry_is_forgotten(
    bundled: Ledger,
) -> None:
    memories, carried = Memories(bundled, "local"), CarriedMemories(bundled, "local", "data_pipeline")

    async def told(discussion: str) -> str:
        given = {"task": TASK, "team": "data_pipeline", "discussion_id": discussion}
        await run(bundled, "intrinsic_memory", given, DiscussionContext(agents="rules", carry=True))
        agreed = await SharedMemory(bundled, "local").recall(TASK, kinds=["agreement"], tokens=4000)
        return " ".join(each.text for each in agreed)

    known = await memories.add(FACT)
    await told("d1")
    assert any(FACT in str(each.memory) for each in (await carried.holding()).values())
    assert FACT[:-1] in await told("d2"), "carried, and said again"
    await memories.update(known.key, "Reporting runs on DuckDB since June.")
    assert await carried.holding() == {}
    again = await told("d3")
    assert "DuckDB" in again and "PostgreSQL" not in again
    assert any("DuckDB" in str(each.memory) for each in (await carried.holding()).values())
    await memories.forget(known.key)
    left = [line async for line in bundled.export() if "PostgreSQL" in line or "DuckDB" in line]
    assert not left


async def test_the_chatbot_is_shown_what_the_team_found_out(bundled: Ledger) -> None:
    card = Lesson(
        claim="Reporting queries need an index on the day.", rationale="measured", rules=[], scope=""
    )
    await KnowledgeCards(bundled, "local").propose(card, change=WHY)
    said = {"messages": [HumanMessage("What do my reporting queries need?", id="m1")]}
    context = ChatContext(chatbot="rules", memory_agent="rules")
    shown, state = await run(bundled, "chatbot", said, context)
    assert [each.partition(" [")[0] for each in shown] == [card.claim]
    assert card.claim in state["messages"][-1].text
    assert not any(card.claim in each for each in state["shared"]), "a checkpoint holds names, no text"


async def test_a_conversation_is_told_what_it_was_shown_before_and_holds_no_longer(
    bundled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = TeamFacts(bundled, "local")
    told = (await facts.insert(Memory(content=FACT), change=WHY)).key
    await facts.insert(Memory(content="Reporting is looked after by Bob."), change=WHY)
    builder = graphs.load("chatbot").builder
    graph = builder.compile(store=LedgerStore(bundled), checkpointer=InMemorySaver())
    answers = iter(["It runs on PostgreSQL.", "It runs on DuckDB.", "You are welcome."])
    with served(monkeypatch, Model("small"), brain=lambda _: Reply(next(answers))) as double:
        for asked in ("What does reporting run on?", "And since when does reporting run on it?", "Thanks!"):
            said = {"messages": [HumanMessage(asked)]}
            context = ChatContext(chatbot="ollama:small", memory_agent="rules")
            await graph.ainvoke(cast(Any, said), {"configurable": {"thread_id": "t"}}, context=context)
            if "What" in asked:
                now = Memory(content="Reporting runs on DuckDB.")
                await facts.update(told, now, change=WHY, expected_version=1)
        first, *later = [str(each.body["messages"][-1]["content"]) for each in double.chats]
    assert "out of date" not in first
    for prompt in later:
        (line,) = [each for each in prompt.splitlines() if FACT in each]
        assert line.endswith("; out of date: It was corrected: a test]"), "the earlier reply repeats it"
    assert "Reporting runs on DuckDB. [" in later[0]
    assert Informed(shared=later[0].splitlines()).holding, "and a rule is told what holds alone"
    assert not any(FACT in each for each in Informed(shared=later[0].splitlines()).holding)


async def test_of_a_pool_its_pairs_are_recalled_but_not_what_its_retriever_learns_from(
    bundled: Ledger,
) -> None:
    pool = MemoryPool(bundled, "local", "literary_creation")
    told = {"agent": "limerick", "domain": "literary_creation", "answer": "A heron stood in the reeds."}
    good = Pair(prompt="A limerick about a heron", score=90, **told)
    bad = Pair(prompt="A limerick about a grey heron", score=20, downs=3, **told)
    pairs = [Pooled(key=each.key, pair=each) for each in (good, bad)]
    await pool.add_all([good, bad], change=WHY)
    await RetrieverLessons(pool).open_all(pairs, change=WHY)
    found = await SharedMemory(bundled, "local").recall("a limerick about a heron")
    assert [(each.kind, each.key) for each in found] == [("pair", good.key)], "one was rated down"
    assert not await SharedMemory(bundled, "local").recall("The reeds at our lake stood high this year.")


async def test_the_agents_of_a_pool_are_shown_facts(bundled: Ledger) -> None:
    await Memories(bundled, "local").add("Our cat Mimi sleeps in the bread basket.")
    context = SharingContext(agent="limerick", answerer="rules", scorer="rules", grader="rules")
    shown, _ = await run(bundled, "memory_sharing", {"question": "A limerick about our cat Mimi"}, context)
    assert [each.partition(" [")[0] for each in shown] == ["Our cat Mimi sleeps in the bread basket."]


async def test_the_roles_file_says_which_kinds_an_agent_is_shown(
    bundled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "roles.yaml").write_text(
        "agents: {local: {researcher: [agreement], expert: [fact]}}\nteams: {analysts: {rob: [read]}}"
    )
    monkeypatch.setenv("MNEME_ROLES", str(tmp_path / "roles.yaml"))
    settings.cache_clear()
    await Memories(bundled, "local").add(FACT)
    assert await learn(bundled) == [], "no facts for the researcher"
    assert await discuss(bundled) != []
    told = await learn(bundled)
    assert told
    assert all("discussion d1" in line for line in told)
    limerick = SharingContext(agent="limerick", answerer="rules", scorer="rules", grader="rules")
    shown, _ = await run(bundled, "memory_sharing", {"question": "A limerick about our reporting"}, limerick)
    assert shown == [], "an agent that is not named"
    assert await learn(bundled, team="another") != [], "a team that the file does not name"
    assert await learn(bundled, team="analysts") == [], "one's own facts, in a team that others are of, too"


async def test_who_started_a_run_stands_in_what_it_writes_and_in_the_audit_of_what_it_reads(
    bundled: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is shown nothing of others: what it retrieves from its team it reads."""
    (tmp_path / "roles.yaml").write_text("teams: {analysts: {rob: [read, write], bob: [read]}}")
    monkeypatch.setenv("MNEME_ROLES", str(tmp_path / "roles.yaml"))
    settings.cache_clear()
    await discuss(bundled, "rob", team="analysts", shared_tokens=0)
    written = await bundled.records(("teams", "analysts"), limit=None)
    assert {each.change.actor.partition(", ")[0] for each in written} == {"rob"}
    assert any(each.change.actor == "rob, intrinsic_memory" for each in written)
    (read,) = await bundled.records(("teams", "analysts", "audit"))
    assert (read.value["by"], read.value["what"]) == ("rob", "expert")
    with pytest.raises(Forbidden):
        await discuss(bundled, "bob", team="analysts", shared_tokens=0)


async def test_nothing_is_shown_of_what_does_not_bear_on_the_task_or_where_it_is_switched_off(
    bundled: Ledger,
) -> None:
    await Memories(bundled, "local").add("My dog Rex is four.")
    assert await learn(bundled) == []
    await Memories(bundled, "local").add(FACT)
    assert await learn(bundled, shared_tokens=0) == []
    assert await learn(bundled, team="another") != [], "the user's own facts go with the user"
    await Memories(bundled, "somebody").add("Reporting runs on Oracle.")
    assert not any("Oracle" in each for each in await learn(bundled))


def test_without_anything_shared_a_prompt_is_as_it_was() -> None:
    plain = AskedQuestion(does="Write.", question="A pun?")
    told = plain.model_copy(update={"shared": ["The cat is Mimi. [ann said, 2026-11-01]"]})
    assert SHARED_HEADING not in answer.user_text(plain)
    assert answer.user_text(told) == (
        f"{SHARED_HEADING}\n- The cat is Mimi. [ann said, 2026-11-01]\n\n{answer.user_text(plain)}"
    )


def test_recall_knows_what_a_document_says_where_nothing_was_said() -> None:
    assert {UNSAID, UNSHOWN} == SAYS_NOTHING
