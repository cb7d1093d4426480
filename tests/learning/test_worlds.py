"""Learning in worlds of files: the second task is shorter by a card, and a model's word is no evidence."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from mneme.core.errors import Forbidden
from mneme.core.settings import settings
from mneme.graphs.compound_learning import builder as compound_learning
from mneme.graphs.dispute_resolution import builder as dispute_resolution
from mneme.nodes.learning.context import LearningContext, TeamContext
from mneme.nodes.learning.worlds import refuse_outside
from mneme.stores.cards.card import Lesson, Rule, TaskOutcome
from mneme.stores.cards.disputes import Approach
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from tests.doubles.command_line import Run, Running
from tests.doubles.quiet import quiet
from tests.doubles.scripts import script

ROLES: Any = dict.fromkeys(("researcher", "devils_advocate", "leader", "monitor"), "rules")
CHECK = f"{sys.executable} -c 'import test_tool; print(1)'"
NEW = "def new(n):\n    return [n, new(n - 1), new(n - 1)] if n else []\n\n\n"
"""Its calls repeat with numbers, so that a cache is the first idea, but each is to give a list of its own."""
TOOLS = {
    "both": f"{NEW}def both(a, b):\n    return [x for x in a if x in b]\n",
    "missing": f"{NEW}def missing(a, b):\n    n = 0\n    for x in a:\n        if x not in b:\n"
    "            n += 1\n    return n\n",
}
TEST = "from tool import {0} as f, new\nassert new(0) is not new(0)\nf([1], [1])\n"
TEST += "f(list(range(4000)), list(range(4000, 8000)))\n"
FEATURES = "membership test in a loop; repeated recursion"


def folder(tmp_path: Path, name: str) -> Path:
    place = tmp_path / name
    place.mkdir()
    (place / "tool.py").write_text(TOOLS[name])
    (place / "test_tool.py").write_text(TEST.format(name))
    return place


def words(place: Path, task_id: str) -> list[str]:
    held = ["--workspace", str(place), "--check", CHECK, "--metric", "cpu_seconds:lower:2"]
    return ["learn", f"Make {place.name} faster.", *held, "--id", task_id]


def test_the_second_function_is_solved_at_once_by_a_card_and_a_kill_loses_nothing(
    tmp_path: Path, mneme: Run
) -> None:
    first, second = (folder(tmp_path, name) for name in TOOLS)
    with Running(words(first, "one"), quiet(tmp_path / "home", MNEME_AGENTS="rules"), piped=True) as command:
        for line in command.output:
            if "patch" in line:
                break
    done = mneme(*words(first, "one"), "--json")
    assert done.returncode == 0, done.stderr
    solved = json.loads(done.stdout)
    assert solved["iterations"] == 2 and [each["event"] for each in solved["learned"]] == ["created"]
    reused = json.loads(mneme(*words(second, "two"), "--json").stdout)
    assert reused["iterations"] == 1
    assert [each["event"] for each in reused["learned"]] == ["success", "promoted"]
    (card,) = [json.loads(line) for line in mneme("cards", "list", "--json").stdout.splitlines()]
    assert (card["status"], card["scope"]) == ("verified", "python_functions")
    assert card["rules"] == [{"condition": FEATURES, "pattern": "SET membership"}]
    assert card["deprecated_approaches"][0]["approach"] == "CACHE calls"
    assert (first / "tool.py").read_text() == TOOLS["both"], "the files of the user stay as they are"
    assert mneme(*words(tmp_path / "none", "three")).returncode != 0


def test_what_was_wrong_is_a_dead_end_and_what_helped_a_little_says_how_much(
    tmp_path: Path, mneme: Run
) -> None:
    held = ["--check", CHECK, "--metric", "cpu_seconds:lower:1000", "--id", "x", "--json"]
    done = mneme("learn", "Faster.", "--workspace", str(folder(tmp_path, "both")), *held)
    assert done.returncode == 1 and not json.loads(done.stdout)["packet"]["solved"]
    (card,) = [json.loads(line) for line in mneme("cards", "list", "--json").stdout.splitlines()]
    assert card["status"] == "deprecated" and not card["rules"]
    dead = {each["approach"]: each for each in card["deprecated_approaches"]}
    assert {each["condition"] for each in dead.values()} == {FEATURES}
    assert dead["CACHE calls"]["failed_in"] == ["x"] and dead["CACHE calls"]["gained"] is None
    assert 2 < dead["SET membership"]["gained"] < 1000


async def test_a_dispute_about_pipelines_is_tried_on_the_similar_tasks(edge_ledger: Ledger) -> None:
    cards = KnowledgeCards(edge_ledger, "t")
    change = Change(reason="a test", actor="test")
    condition = "lines sorted to be counted"
    rules = [Rule(condition=condition, pattern="BYTES order")]
    lesson = Lesson(claim="Compare bytes.", rules=rules, scope="shell_pipelines")
    card = (await cards.create(lesson, TaskOutcome(task="a", success=True), change=change)).card
    dispute = await cards.disputes.open(
        card.id,
        old=Approach(claim=card.claim, solution=f"{condition} -> BYTES order"),
        new=Approach(claim="Count in awk.", solution=f"{condition} -> COUNT in awk", task="b"),
        change=change,
    )
    graph = dispute_resolution.compile(store=LedgerStore(edge_ledger), checkpointer=InMemorySaver())
    context = TeamContext(team="t", devils_advocate="rules", environment="shell_pipelines")
    config: Any = {"configurable": {"thread_id": dispute.id}}
    await graph.ainvoke({"dispute_id": dispute.id}, config, context=context)
    ended = await cards.disputes.get(dispute.id)
    assert [trial.winner for trial in ended.rounds[0].trials] == ["new"] * 3
    assert ended.resolution and ended.resolution.decision == "deprecate_old"


def finding(**more: Any) -> str:
    found: dict[str, Any] = {"rationale": "It went well.", "claim": "Bread rises twice as long in the cold."}
    found |= {"condition": "a cold kitchen", "pattern": "wait twice as long", "success": True, "card": -1}
    return json.dumps(
        {"findings": [{**found, "failure_modes": [], "deprecated_approaches": [], "event": "create"} | more]}
    )


async def test_what_a_model_says_of_itself_is_no_evidence(edge_ledger: Ledger) -> None:
    script("baker", {"compile_lessons": [finding()]})
    graph = compound_learning.compile(store=LedgerStore(edge_ledger))
    context = LearningContext(**ROLES | {"monitor": "scripted:baker"}, team="bakers")
    result = await graph.ainvoke({"task": "How long must bread rise?", "task_id": "b"}, context=context)
    (card,) = await KnowledgeCards(edge_ledger, "bakers").records.list()
    assert result["packet"]["judged_by"] == "leader" and card.status == "provisional"
    assert card.rationale.startswith("Judged by the model") and card.evidence.success_count == 0


async def test_a_pattern_that_is_in_no_language_is_not_stored(edge_ledger: Ledger) -> None:
    unknown = finding(condition="range filter; grouping", pattern="MAGIC INDEX (all)")
    script("dreamer", {"compile_lessons": [unknown]})
    graph = compound_learning.compile(store=LedgerStore(edge_ledger))
    context = LearningContext(
        **ROLES | {"monitor": "scripted:dreamer"}, team="t", environment="sql_tuning", rows=5_000
    )
    query = "SELECT user_id, COUNT(*) AS n FROM user_events WHERE event_time >= '2025-06-01' GROUP BY user_id"
    given: Any = {"task": "Faster.", "query": query, "task_id": "m"}
    result = await graph.ainvoke(given, context=context)
    assert result["learned"] == [] and not await KnowledgeCards(edge_ledger, "t").records.list()


def test_a_server_for_several_people_runs_nothing_that_a_task_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_outside("workspace", {"check": "true"})
    monkeypatch.setattr(settings(), "auth", tmp_path / "users.json")
    for name, given in (
        ("workspace", {"check": "rm -rf /"}),
        (str(tmp_path / "world.yaml"), {}),
        ("sql_tuning", {"database": "/home/ada/shop.sqlite"}),
        ("python_functions", {"workspace": "/home/ada"}),
    ):
        with pytest.raises(Forbidden):
            refuse_outside(name, given)
    refuse_outside("python_functions", {"case": "stairs"})
    assert TeamContext().environment == ""
