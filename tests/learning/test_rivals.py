"""The rivals of compound learning, on a real database: what each keeps, and what the next task gets of it."""

from typing import Any

from mneme.environments.sql_tuning.tasks import TuningTask, story
from mneme.graphs.baselines import prompt_cache, raw_trajectories, without_advocate
from mneme.nodes.learning.context import LearningContext
from mneme.nodes.learning.raw_trajectories import TRAJECTORY_MEMORY
from mneme.nodes.workflow import Workflow
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.task_memories.trials import Trials

RULES: dict[str, Any] = dict.fromkeys(("researcher", "devils_advocate", "leader", "monitor"), "rules")
REUSE = story()[1]


async def solve(builder: Workflow, ledger: Ledger, task: TuningTask, name: str, **more: Any) -> Any:
    graph = builder.compile(store=LedgerStore(ledger))
    where = {"team": "rivals", "environment": "sql_tuning", "schema_name": task.schema_name, "rows": 30_000}
    given: Any = {"task": task.description, "task_id": name, "query": task.query, "wanted_speed_up": 1.5}
    return await graph.ainvoke(given | more, context=LearningContext(**RULES, **where))


async def logged(ledger: Ledger, name: str) -> TaskRecord:
    found = await KnowledgeCards(ledger, "rivals").tasks.find(name)
    assert found is not None
    return found


async def test_a_raw_trajectory_is_kept_whole_and_shown_to_the_next_task(edge_ledger: Ledger) -> None:
    first = await solve(raw_trajectories.builder, edge_ledger, REUSE, "t1")
    again = await solve(raw_trajectories.builder, edge_ledger, REUSE, "t2")
    assert (first["iterations"], again["iterations"]) == (2, 1)
    assert again["packet"]["answer"] == first["packet"]["answer"]
    assert (await logged(edge_ledger, "t2")).used == ["t1"]
    kept = await Trials(edge_ledger, "rivals", TRAJECTORY_MEMORY).get("t1")
    assert kept is not None
    told = "\n".join(kept.trajectory)
    assert "objected: " in told and "trial: " in told and first["packet"]["answer"] in told
    assert await KnowledgeCards(edge_ledger, "rivals").records.list() == [], "nothing is distilled of it"


async def test_a_prompt_cache_answers_the_same_words_alone_and_as_it_did(edge_ledger: Ledger) -> None:
    first = await solve(prompt_cache.builder, edge_ledger, REUSE, "t1")
    spaced = REUSE.model_copy(update={"description": f"  {REUSE.description.replace(' ', '  ')}\n"})
    again = await solve(prompt_cache.builder, edge_ledger, spaced, "t2")
    assert again["packet"]["answer"] == first["packet"]["answer"] and again["packet"]["solved"]
    assert (again["packet"]["metrics"]["model_calls"], again["answered_by"]) == (0, ["cache: cache"])
    assert first["packet"]["metrics"]["model_calls"] > 0
    other = await solve(prompt_cache.builder, edge_ledger, REUSE, "t3", wanted_speed_up=1.4)
    assert other["iterations"] == first["iterations"], "another wish is another prompt, and starts over"
    assert (await logged(edge_ledger, "t2")).iterations == 1


async def test_without_an_advocate_the_trial_alone_objects_and_the_cards_go_on(edge_ledger: Ledger) -> None:
    first = await solve(without_advocate.builder, edge_ledger, REUSE, "t1")
    assert first["iterations"] > 1 and first["packet"]["solved"]
    assert first["packet"]["objections"][0]["objection"]["evidence"].startswith("The trial says: ")
    assert not any(each.startswith("devils_advocate") for each in first["answered_by"])
    (card,) = await KnowledgeCards(edge_ledger, "rivals").records.list()
    again = await solve(without_advocate.builder, edge_ledger, REUSE, "t2")
    assert again["iterations"] == 1 and [each["card"] for each in again["learned"]][:1] == [card.id]
