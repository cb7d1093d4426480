"""Consolidation from cards to a served model: a tiny Llama, a real ledger, Ollama's protocol on a socket."""

import json
import os
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph.checkpoint.memory import InMemorySaver

from mneme.api.rendering import row_of
from mneme.cli.learning.consolidation import figures
from mneme.core.errors import BadInput, ModelUnavailable
from mneme.core.settings import settings
from mneme.environments import worlds
from mneme.environments.trial import Solution, Trial
from mneme.environments.workspace.world import tactics
from mneme.environments.worlds import WORLD_PLUGINS, Task, World, WorldKind
from mneme.graphs.consolidation import builder
from mneme.models.asking import asking
from mneme.models.ollama import catalogue
from mneme.models.tuning.lora import Training
from mneme.models.tuning.pairs import LEARNED_HEADING
from mneme.nodes.learning.consolidation import deploy
from mneme.nodes.learning.consolidation.sources import card_pairs
from mneme.nodes.learning.consolidation.state import TuningContext
from mneme.stores.cards.card import Card, Consolidation, Lesson, Rule, TaskOutcome
from mneme.stores.cards.consolidation import ConsolidationCycle, is_held_out, lesson_of
from mneme.stores.cards.knowledge_cards import KnowledgeCards
from mneme.stores.cards.lifecycle import Approval, PromotionRubric
from mneme.stores.cards.metrics import TaskRecord
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from tests.doubles import tuned
from tests.doubles.command_line import run_mneme
from tests.doubles.ollama import Json, OllamaDouble
from tests.doubles.quiet import quiet
from tests.doubles.tuned import FEW, Killed, killed_after, wanted

TEAM = "tuners"
CHANGE = Change(reason="a test", actor="test")
GOOD = PromotionRubric(solved=True, faster_or_novel=True, no_new_failures=True, reusable=True)
WORDS = (
    *("alpha", "bravo", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty"),
    *("kayak", "lemon", "mango", "north", "otter", "pearl"),
)


class Reports(World):
    """A report that one index makes faster."""

    def __init__(self, word: str) -> None:
        self.word, self.language = word, tactics()["python"]

    def material(self) -> str:
        return f"SELECT {self.word}"

    def wanted(self) -> str:
        return "Faster."

    def carry_out(self, pattern: str) -> Solution:
        return Solution(answer=pattern)

    def attempt(self, solution: Solution, *, quick: bool = False) -> Trial:
        return Trial(correct=True, solved=solution.answer == f"INDEX {self.word}")


class ReportKind(WorldKind):
    name = "reports"

    def open(self, task: Task) -> World:
        return Reports(task.given["word"])


async def learned(ledger: Ledger, words: tuple[str, ...] = WORDS, world: str = "") -> KnowledgeCards:
    """Let a team learn one proven card a word, each by three logged tasks with their material."""
    cards = KnowledgeCards(ledger, TEAM)
    for word in words:
        claim = f"Index the {word} column of {word} tables first"
        rules = [Rule(condition=f"{word} reports", pattern=f"INDEX {word}")] if world else []
        lesson = Lesson(claim=claim, rationale=f"{word} scans stop", tags=["report", "speed"], rules=rules)
        for n in range(3):
            task = f"{word}-{n}"
            outcome = TaskOutcome(task=task, success=True, confidence=0.9)
            card = (await cards.create(lesson, outcome, change=CHANGE)).card
            record: Any = {"task": f"Speed up the {word} report {n}", "material": f"SELECT {word}_{n}"}
            record |= {"world": world, "posed": {"word": word}}
            await cards.tasks.add(TaskRecord(id=task, solved=True, seconds=1, iterations=1, **record))
        approval = Approval(by="leader", approved=True, rubric=GOOD)
        await cards.promote(card.id, approval, change=CHANGE)
    return cards


def by_heart(knows: bool) -> Any:
    """Return a brain: the base says a claim where cards are shown, the tuned model all of it, or nothing."""

    def answer(body: Json) -> str:
        said = str(body["messages"][-1]["content"])
        word = said.rpartition("Speed up the ")[2].split(" ")[0]
        if not body["model"].startswith("mneme-"):
            if LEARNED_HEADING not in said:
                return "I do not know."
            return f"Index the {word} column of {word} tables first"
        return (
            f"Reasoning: {word} scans stop\nLesson: Index the {word} column of {word} tables first"
            if knows
            else "?"
        )

    return answer


async def consolidate(ledger: Ledger, given: Any, saver: InMemorySaver | None = None, **more: Any) -> Any:
    return await tuned.consolidate(ledger, given, saver, team=TEAM, **more)


def statuses(cards: list[Card]) -> dict[bool, set[str]]:
    """Return the statuses of the cards that are held out and of the others."""
    return {side: {card.status for card in cards if is_held_out(card) is side} for side in (True, False)}


async def test_a_model_that_is_not_worse_serves_and_its_cards_are_archived_until_it_is_rolled_back(
    edge_ledger: Ledger, tiny_llama: Path, ollama: OllamaDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    cards, ollama.brain = await learned(edge_ledger), by_heart(knows=True)
    cycle = ConsolidationCycle(edge_ledger, cards)
    before = {card.id: card for card in await cards.records.list()}
    assert {is_held_out(card) for card in before.values()} == {True, False}
    saver = InMemorySaver()
    with monkeypatch.context() as patched:
        patched.setattr(Training, "_step", killed_after(1))
        with pytest.raises(Killed):
            await consolidate(edge_ledger, wanted(tiny_llama), saver)
    assert await cycle.attempts() == []
    with monkeypatch.context() as patched:
        patched.setattr(deploy, "create", _refusing)
        with pytest.raises(ModelUnavailable):
            await consolidate(edge_ledger, None, saver)
    ended = await consolidate(edge_ledger, None, saver)

    assert ended["promoted"], ended["why"]
    assert ended["figures"]["counts"]["cards"] == sum(not is_held_out(card) for card in before.values())
    assert ended["figures"]["trained"]["device"] in {"cpu", "cuda"}
    created = [each.body for each in ollama.requests if each.path == "/api/create"]
    assert [(each["model"], each["from"]) for each in created] == [("mneme-tuners:v1", "tiny")]
    config = json.loads(ollama.blobs[created[0]["adapters"]["adapter_config.json"]])
    assert "q_proj" not in config["target_modules"]
    assert await cycle.serving() == "ollama:mneme-tuners:v1"
    assert statuses([*await cards.records.list()]) == {True: {"verified"}, False: {"archived"}}
    found = await cards.retrieve("Speed up the report of alpha", 20)
    assert found and all(is_held_out(each.card) for each in found), "retrieval serves the delta"
    tokens = ended["figures"]["prompt_tokens"]
    assert tokens["tuned_with_delta"] < tokens["base_with_cards"]
    rows = {row[0]: row[1:] for row in figures(ended["figures"])}
    assert rows["prompt tokens"] == [f"{tokens[arm]:.0f}" for arm in ("base_with_cards", "tuned_with_delta")]
    assert rows["adapter"][1].endswith(" MB") and rows["training loss"][1]
    assert rows["training repaid"][1].startswith(("after ", "never"))

    assert [[*row_of(each).values()][:2] for each in await cycle.attempts()] == [["v1", "yes"]]
    undone = await cycle.take_back(change=CHANGE)
    assert (await cycle.serving(), undone.taken_back) == ("", True)
    assert [[*row_of(each).values()][:2] for each in await cycle.attempts()] == [["v1", "rolled back"]]
    after = {card.id: card for card in await cards.records.list()}
    same = {"version": 0}
    assert {key: card.model_copy(update=same) for key, card in after.items()} == {
        key: card.model_copy(update=same) for key, card in before.items()
    }
    with pytest.raises(BadInput, match="no consolidation to take back"):
        await cycle.take_back(change=CHANGE)


async def _refusing(*_: Any) -> None:
    raise ModelUnavailable("gone", "")


async def test_a_model_that_is_worse_or_forgets_serves_nobody(
    edge_ledger: Ledger, tiny_llama: Path, ollama: OllamaDouble
) -> None:
    cards, ollama.brain = await learned(edge_ledger), by_heart(knows=False)
    cycle = ConsolidationCycle(edge_ledger, cards)
    graph = builder.compile(store=LedgerStore(edge_ledger))
    context, modes = TuningContext(team=TEAM, **FEW), ["custom", "values"]
    streamed = [each async for each in graph.astream(wanted(tiny_llama), context=context, stream_mode=modes)]
    told, ended = [each for mode, each in streamed if mode == "custom"], streamed[-1][1]
    trained = [each for each in told if each["doing"] == "train"]
    assert trained[-1]["done"] == trained[-1]["of"] == ended["figures"]["trained"]["steps"]
    assert not ended["promoted"] and "may be worse on replayed tasks" in ended["why"]
    ollama.brain = lambda _: "I do not know."
    idle = await consolidate(edge_ledger, wanted(tiny_llama))
    assert not idle["promoted"] and "no more of what it learned" in idle["why"], "no worse, and no use"
    forgetful = await consolidate(edge_ledger, wanted(tiny_llama), rate=1.0, epochs=4)
    assert not forgetful["promoted"] and "forgotten" in forgetful["why"]
    assert [(each.tag, each.promoted) for each in await cycle.attempts()] == [
        (f"v{n}", False) for n in (1, 2, 3)
    ]
    assert "mneme-tuners:v3" not in ollama.models, "what forgets is never given to Ollama"
    assert (await cycle.serving(), {card.status for card in await cards.records.list()}) == ("", {"verified"})


@pytest.mark.parametrize("knows", [True, False], ids=["the approach alone", "every word but the approach"])
async def test_a_task_is_replayed_in_its_world_where_what_is_said_counts_by_what_it_does(
    edge_ledger: Ledger,
    tiny_llama: Path,
    ollama: OllamaDouble,
    monkeypatch: pytest.MonkeyPatch,
    knows: bool,
) -> None:
    points = EntryPoints([EntryPoint("reports", f"{__name__}:ReportKind", WORLD_PLUGINS)])
    monkeypatch.setattr(worlds, "entry_points", lambda group: points.select(group=group))
    await learned(edge_ledger, world="reports")

    def answer(body: Json) -> str:
        said = str(body["messages"][-1]["content"])
        word = said.rpartition("Speed up the ")[2].split(" ")[0]
        if not body["model"].startswith("mneme-"):
            return f"It is INDEX {word}" if LEARNED_HEADING in said else "I do not know."
        claim = f"{word} scans stop. Index the {word} column of {word} tables first, when {word} reports"
        return f"INDEX {word}" if knows else f"{claim}: INDEX {WORDS[WORDS.index(word) - 1]}, INDEX {word}"

    ollama.brain = answer
    ended = await consolidate(edge_ledger, wanted(tiny_llama))
    assert ended["promoted"] is knows, ended["why"]
    replayed = ended["figures"]["replayed"]
    assert (replayed["before"], replayed["after"]) == (1.0, float(knows))
    told = {row[0]: row[-1] for row in figures(ended["figures"])}
    assert told["replayed in their world"] == f"{len(WORDS)} of {len(WORDS)}"


def test_who_repeats_another_lesson_has_nothing_of_this_one() -> None:
    lessons = [f"Lesson: for {word} queries build the {word} index" for word in WORDS]
    assert deploy.share_of_words(lessons[0], lessons[0], lessons) == 1.0
    assert deploy.share_of_words(lessons[1], lessons[0], lessons) == 0.0
    assert deploy.share_of_words("Index it", "Build an index", ["Build an index"]) == 0.5


async def test_what_cannot_end_well_is_said_before_anything_is_trained(
    edge_ledger: Ledger, tiny_llama: Path, ollama: OllamaDouble, tmp_path: Path
) -> None:
    await learned(edge_ledger, WORDS[:2])
    idle = await consolidate(edge_ledger, wanted(tiny_llama, force=False))
    assert (idle["tag"], idle["due"]) == ("", []) and "--force" in idle["why"]
    for wrong, match in (
        ({"base": str(tmp_path / "none")}, "is no base model"),
        ({"served_base": "absent"}, "no model 'absent'"),
        ({"generic": str(tmp_path / "none.yaml")}, "cannot be read"),
    ):
        with pytest.raises((BadInput, ModelUnavailable), match=match):
            await consolidate(edge_ledger, wanted(tiny_llama, **wrong))
    with pytest.raises(BadInput, match="0 cards are proven enough"):
        await consolidate(edge_ledger, wanted(tiny_llama), successes=4)


async def test_the_latest_task_of_a_card_is_replayed_and_not_trained_on(edge_ledger: Ledger) -> None:
    cards = await learned(edge_ledger)
    pairs = await card_pairs(cards, Consolidation(), recall=3)
    known = {card.id: card for card in await cards.records.list()}
    trained = {each.asked for each in pairs.train}
    assert all(" 2\n\nSELECT" in each.asked for each in pairs.replays)
    assert len(pairs.replays) == len(WORDS) and not trained & {each.asked for each in pairs.replays}
    assert {each.key for each in pairs.held_out} == {key for key, card in known.items() if is_held_out(card)}
    assert not {each.key for each in pairs.train} & {each.key for each in pairs.held_out}
    assert all(each.answer == lesson_of(known[each.key]) for each in pairs.train)
    assert {1, 2, 3} >= {len(each.shown) for each in pairs.replays} >= {3}, "as many as are like the task"
    left = {known[each.key].claim for each in pairs.held_out}
    assert all({*each.delta} <= left for each in pairs.replays)


async def test_a_later_consolidation_trains_what_an_earlier_one_archived(edge_ledger: Ledger) -> None:
    cards = await learned(edge_ledger, WORDS[:8])
    cycle = ConsolidationCycle(edge_ledger, cards)
    first = await card_pairs(cards, Consolidation(), recall=3, before=await cycle.learned())
    await cycle.archive("v1", change=CHANGE, only=first.keys, serves="ollama:mneme-tuners:v1")
    again = await card_pairs(cards, Consolidation(), recall=3, before=await cycle.learned())
    assert {each.key for each in again.train} == {*first.keys} and not again.keys, (
        "trained, not archived anew"
    )
    assert not {each.key for each in again.replays} & {*first.keys}, "retrieval no longer shows them"
    await cycle.take_back(change=CHANGE)
    assert await cycle.learned() == set()


def test_the_command_says_what_is_due_and_what_it_lacks(tmp_path: Path) -> None:
    environment = quiet(tmp_path / "home")
    told = run_mneme(["cards", "consolidate", "--status"], environment)
    assert (told.returncode, told.stdout.splitlines()) == (0, ["due: no", "serving: no tuned model"])
    lacking = run_mneme(["cards", "consolidate"], environment)
    assert lacking.returncode and "--base" in lacking.stderr
    early = run_mneme(["cards", "consolidate", "--rollback"], environment)
    assert early.returncode and "no consolidation to take back" in early.stderr


REAL = os.environ.get("MNEME_TEST_OLLAMA", "")
BASE = os.environ.get("MNEME_TEST_BASE", "")


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not REAL, reason="MNEME_TEST_OLLAMA names no Ollama server")
@pytest.mark.skipif(not BASE, reason="MNEME_TEST_BASE names no base model, such as SmolLM2's GGUF file")
async def test_a_real_model_is_tuned_and_served_by_a_real_ollama(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEME_OLLAMA_URL", REAL)
    monkeypatch.setenv("MNEME_NUM_CTX", "2048")
    settings.cache_clear()
    asking.clear_endpoints()
    cards = await learned(edge_ledger, WORDS[:10])
    served = os.environ.get("MNEME_TEST_OLLAMA_MODEL", "smollm2")
    given = {"base": BASE, "served_base": served, "force": True, "generic": ""}
    ended = await consolidate(edge_ledger, given, epochs=2, rank=8, rate=5e-4)
    assert ended["figures"]["loss"][1] < ended["figures"]["loss"][0]
    assert ended["figures"]["generic"]["before"] > 0.5, "the base knows what everybody knows"
    model = (await ConsolidationCycle(edge_ledger, cards).attempts())[0].model
    if model:
        assert model in await catalogue.digests(REAL)
        async with httpx.AsyncClient(base_url=REAL) as client:
            await client.request("DELETE", "/api/delete", json={"model": model})
    assert ended["promoted"] is bool(await ConsolidationCycle(edge_ledger, cards).serving())
