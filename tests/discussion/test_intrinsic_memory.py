"""Structured memories, context construction, speaker selection, and whole discussions on a real ledger."""

import json
import re
import sqlite3
from contextlib import closing
from copy import deepcopy
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from tokenizers import Regex, Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Split
from tokenizers.pre_tokenizers import Sequence as PreTokenizers
from tokenizers.trainers import BpeTrainer

from mneme.core.errors import BadAnswer, BadInput, Conflict, MnemeError, NotFound, PromptTooLong
from mneme.graphs.intrinsic_memory import builder
from mneme.library.teams.document import schema
from mneme.library.teams.selection import Floor, sigma
from mneme.library.teams.team import Team, empty, load_team, read_team, shipped
from mneme.models.asking.asking import ask, clear_endpoints
from mneme.models.asking.budget import tokens
from mneme.models.ollama import tokenizers
from mneme.models.ollama.tokenizers import CUTS
from mneme.nodes.discussion.context import DiscussionContext
from mneme.nodes.discussion.experts import Line, told_by
from mneme.nodes.discussion.intrinsic_memory import PASSED
from mneme.nodes.discussion.proposals import proposals_of
from mneme.nodes.task_memories.f_context import f_context
from mneme.nodes.task_memories.salvage import usable_memory
from mneme.prompts.discussion.document import LEFT_OUT, SHORTENED, UNSAID, write_document
from mneme.prompts.discussion.intrinsic_memory import (
    Contribution,
    Delegation,
    Speaking,
    Turns,
    contribute,
    delegate,
    evaluate,
    integrate,
    named,
)
from mneme.prompts.discussion.intrinsic_memory import Issue as Raised
from mneme.prompts.discussion.memory_template import Slots, departures, entries, size
from mneme.prompts.discussion.memory_update import Remembering, update_memory, update_memory_by
from mneme.rules.discussion.memory_update import words
from mneme.rules.discussion.proposals import own_items
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.discussions.agent_memory import AgentMemory, MemoryVersion
from mneme.stores.discussions.discussions import Discussion, Discussions, Turn, acceptance
from mneme.stores.discussions.discussions import Raised as Heard
from mneme.stores.discussions.issues import issues_of
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from tests.doubles.ollama import Model, by_rules
from tests.doubles.scripts import script
from tests.doubles.served import served

TEMPLATE: dict[str, Any] = {
    "position": "What I stand for now",
    "proposals": {
        "components": ["Each component proposed, with its reason"],
        "rejected": ["What was not taken"],
    },
    "risks": ["What may go wrong"],
}
CHANGE = Change(reason="a test", actor="test")
TASK = (
    "Design a data pipeline on AWS for real-time machine learning on cars: 6 camera sources in .jpg, one "
    "lidar source in .pcd.bin, 5 radar sources in .pcd. Training and inference, scalable and cheap to run."
)


def remembering(memory: dict[str, Any], output: str, limit: int = 2000) -> Remembering:
    return Remembering(
        role="Data Engineer", template=Slots(TEMPLATE), memory=Slots(memory), output=output, limit=limit
    )


async def updated(
    memory: dict[str, Any], output: str, who: str = "rules", limit: int = 2000
) -> dict[str, Any]:
    answered = await ask(update_memory_by(TEMPLATE), remembering(memory, output, limit), who)
    return answered.value.slots


class TestMemoryUpdate:
    """f_memory_update (equation 3, figure 2)."""

    async def test_statements_go_into_the_slots_that_they_fit(self) -> None:
        output = "Proposal: Storage (S3) because raw data must be kept.\nRisk: Egress may cost much."
        memory = await updated(empty(TEMPLATE), output)
        assert memory["proposals"]["components"] == ["Storage (S3) because raw data must be kept."]
        assert memory["risks"] == ["Egress may cost much."]

    async def test_history_is_kept_and_the_same_subject_replaced(self) -> None:
        first = await updated(empty(TEMPLATE), "Proposal: Ingestion (Kinesis) because it scales.")
        second = await updated(first, "Proposal: Storage (S3) because it is cheap.")
        third = await updated(second, "Proposal: Ingestion (Kafka) because it runs anywhere.")
        assert [each[:18] for each in third["proposals"]["components"]] == [
            "Storage (S3) becau",
            "Ingestion (Kafka) ",
        ]

    async def test_words_with_accents_are_whole_words(self) -> None:
        memory = await updated(empty(TEMPLATE), "Risk: Der Bär frisst Äpfel.\nRisk: Der Bus frisst Äpfel.")
        assert len(memory["risks"]) == 2
        assert words("Gärten für Äpfel") == {"gärten", "äpfel"}

    async def test_names_with_digits_are_different_subjects(self) -> None:
        memory = await updated(
            empty(TEMPLATE), "Risk: ball1 may fall off the rack.\nRisk: ball2 may fall off the rack."
        )
        assert len(memory["risks"]) == 2

    async def test_the_same_words_in_another_order_are_another_subject(self) -> None:
        output = "Risk: lidar may overtake radar.\nRisk: radar may overtake lidar."
        assert len((await updated(empty(TEMPLATE), output))["risks"]) == 2

    async def test_a_full_memory_is_condensed_to_its_bound_and_loses_no_slot(self) -> None:
        memory = empty(TEMPLATE)
        for number in range(60):
            memory = await updated(
                memory, f"Proposal: Part{number} (X{number}) because {'it is needed ' * 9}.", limit=900
            )
            assert size(memory) <= 900 and not departures(TEMPLATE, memory)
        assert len(memory["proposals"]["components"]) >= 4
        assert memory["proposals"]["components"][-1].startswith("Part59")

    @pytest.mark.parametrize(
        ("wrong", "told"),
        [
            (lambda m: m.pop("risks"), "risks"),
            (lambda m: m.update(extra="x"), "extra"),
            (lambda m: m["proposals"].pop("rejected"), "rejected"),
            (lambda m: m.update(risks="one text"), "risks"),
            (lambda m: m.update(position=["a"]), "position"),
        ],
    )
    async def test_a_slot_lost_or_invented_is_refused(self, wrong: Any, told: str) -> None:
        memory = empty(TEMPLATE)
        wrong(memory)
        script("wrong", {"update_memory": [json.dumps({"reason": "so", "memory": memory})]})
        with pytest.raises(BadAnswer, match=told):
            await updated(empty(TEMPLATE), "anything", "scripted:wrong")

    async def test_an_update_beyond_the_bound_or_without_history_is_refused(self) -> None:
        full = empty(TEMPLATE) | {"risks": [f"Risk number {n}" for n in range(8)]}
        large = empty(TEMPLATE) | {"risks": [f"{n} {'x' * 300}" for n in range(9)]}
        lines = [json.dumps({"reason": "so", "memory": each}) for each in (empty(TEMPLATE), large)]
        script("careless", {"update_memory": lines})
        with pytest.raises(BadAnswer, match="8 entries became 0"):
            await updated(full, "anything", "scripted:careless")
        with pytest.raises(BadAnswer, match="condense"):
            await updated(full, "anything", "scripted:careless")

    async def test_a_model_is_held_to_the_slots_and_repaired(self, monkeypatch: pytest.MonkeyPatch) -> None:
        good = empty(TEMPLATE) | {"risks": ["Egress may cost much."]}
        with served(monkeypatch, Model("llama3.1:8b")) as double:
            lost = {"reason": "so", "memory": {"position": ""}}
            double.chat.reply(json.dumps(lost), json.dumps({"reason": "so", "memory": good}))
            assert await updated(empty(TEMPLATE), "Risk: Egress may cost much.", "ollama:llama3.1:8b") == good
            first, second = double.chats
        slots = first.body["format"]["properties"]["memory"]
        assert set(slots["properties"]) == set(TEMPLATE) and slots["required"] == list(TEMPLATE)
        assert "proposals" in json.dumps(second.body["messages"][-1])

    @drawn(st.lists(st.text(max_size=120), max_size=6))
    async def test_whatever_was_said_the_memory_follows_its_template(self, said: list[str]) -> None:
        memory = empty(TEMPLATE)
        for each in said:
            memory = await updated(memory, each, limit=500)
            assert not departures(TEMPLATE, memory) and size(memory) <= 500


class TestContext:
    """f_context (algorithm 1)."""

    @drawn(st.lists(st.text(min_size=1, max_size=300), max_size=12), st.integers(20, 400))
    def test_task_and_memory_first_then_the_newest_turns_in_order(self, turns: list[str], room: int) -> None:
        window = f_context("the task", "a memory", turns, room, tokens)
        assert window.turns == turns[window.first :]
        assert (
            window.tokens == tokens("the task") + tokens("a memory") + sum(map(tokens, window.turns)) <= room
        )
        if window.first:
            assert window.tokens + tokens(turns[window.first - 1]) > room, "another turn would have fitted"

    def test_a_task_that_does_not_fit_is_an_error(self) -> None:
        with pytest.raises(PromptTooLong, match="context"):
            f_context("word " * 100, "memory", [], 50, tokens)


def trained() -> Tokenizer:
    """Train a byte-level BPE such as models have, on a few sentences."""
    cut = Split(Regex(CUTS["llama-bpe"]), "isolated")
    made = Tokenizer(BPE())
    made.pre_tokenizer = PreTokenizers([cut, ByteLevel(add_prefix_space=False, use_regex=False)])
    trainer = BpeTrainer(vocab_size=600, initial_alphabet=ByteLevel.alphabet(), show_progress=False)
    made.train_from_iterator([TASK, "Lidar frames arrive late, 123456 of them, and nobody's there."], trainer)
    return made


class TestTokenizers:
    """Tokens are counted by the model's own tokenizer where it is known."""

    @pytest.mark.parametrize("text", [TASK, "Überraschung: 1234567 Bälle!\n\n  don't", "", "x" * 500])
    async def test_a_models_own_vocabulary_counts(self, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
        own = trained()
        bpe = json.loads(own.to_str())["model"]
        vocabulary = {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "llama-bpe",
            "tokenizer.ggml.tokens": sorted(bpe["vocab"], key=bpe["vocab"].get),
            "tokenizer.ggml.merges": [" ".join(pair) for pair in bpe["merges"]],
        }
        clear_endpoints()
        with served(monkeypatch, Model("llama3.1:8b", vocabulary=vocabulary)):
            count = await tokenizers.counter_of("ollama:llama3.1:8b")
        clear_endpoints()
        assert count(text) == len(own.encode(text).ids)

    @pytest.mark.parametrize("pre", ["some-new-way", ""])
    async def test_any_other_tokenizer_is_estimated(self, pre: str, monkeypatch: pytest.MonkeyPatch) -> None:
        told = {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": pre, "tokenizer.ggml.tokens": ["a"]}
        clear_endpoints()
        with served(monkeypatch, Model("llama3.1:8b", vocabulary=told)):
            assert (await tokenizers.counter_of("ollama:llama3.1:8b"))(TASK) == tokens(TASK)
        clear_endpoints()
        assert (await tokenizers.counter_of("rules"))(TASK) == tokens(TASK)


class TestVersions:
    """M_{n,m} in the ledger."""

    async def test_every_turn_is_a_version_with_a_diff_and_is_written_once(self, ledger: Ledger) -> None:
        memory = AgentMemory(ledger, ("teams", "t", "discussions", "d"), "data_engineer")
        begun = await memory.begin(empty(TEMPLATE), change=CHANGE)
        again = await memory.begin({"other": ""}, change=CHANGE)
        assert again.memory == begun.memory
        full = empty(TEMPLATE) | {"risks": ["late frames"]}
        kept = await memory.update(full, turn=4, change=CHANGE, expected_version=1)
        replayed = await memory.update(empty(TEMPLATE), turn=4, change=CHANGE, expected_version=1)
        assert (kept, replayed.memory) == (replayed, full)
        with pytest.raises(Conflict):
            await memory.update(full, turn=9, change=CHANGE, expected_version=1)
        assert [each.turn for each in await memory.history()] == [0, 4]
        assert (await memory.at_turn(3)).memory == empty(TEMPLATE)
        assert (await memory.at_turn(4)).memory == (await memory.now()).memory == full
        assert '+  "late frames"' in await memory.diff(0, 4)
        with pytest.raises(NotFound):
            await AgentMemory(ledger, ("teams", "t", "discussions", "d"), "ml_engineer").now()


class TestTeams:
    """Teams as data, and σ."""

    def test_algorithm_2_gives_each_worker_the_floor_and_ends_rounds(self) -> None:
        team, floor, order = load_team("data_pipeline"), Floor(), []
        for _ in range(20):
            floor = sigma(team, floor)
            order.append(floor.speaker)
        cda, kia, era = "conversation_delegation", "knowledge_integration", "evaluation"
        boa, dea, mle, ia = team.deciders
        assert order[:10] == [cda, boa, cda, dea, cda, mle, cda, ia, kia, era]
        assert order[10:] == order[:10]

    def test_round_robin_goes_round(self) -> None:
        team, floor, order = load_team("pddl"), Floor(), []
        for _ in range(4):
            floor = sigma(team, floor)
            order.append(floor.speaker)
        assert order == ["solver", "second_agent"] * 2

    @pytest.mark.parametrize("name", shipped())
    def test_shipped_teams_are_sound_and_their_schemas_are_valid(self, name: str) -> None:
        team = load_team(name)
        assert read_team(team.model_dump(mode="json")) == team
        assert schema(team.document)["required"]

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            (
                lambda t: t["speakers"]["workers"].pop(),
                r"roles\.infrastructure_engineer: this role never speaks",
            ),
            (
                lambda t: t["roles"].append(deepcopy(t["roles"][0])),
                "roles: business_objectives is there twice",
            ),
            (
                lambda t: t["roles"][1].update(memory="notes"),
                r"roles\.data_engineer\.memory is a text, not an object",
            ),
            (lambda t: t["roles"][1].update(memory=["notes"]), r"roles\.data_engineer\.memory is a list"),
            (lambda t: t["roles"][1].update(memory={}), "has no slots"),
            (lambda t: t["roles"][1].update(memory={"a": {"b": 3}}), r"memory\.a\.b is a number"),
            (lambda t: t["roles"][1].update(memory={"A b": "x"}), "no name of a slot"),
            (
                lambda t: t["speakers"].update(delegate="nobody"),
                r"speakers\.delegate: there is no role nobody",
            ),
            (lambda t: t["speakers"]["workers"].append("evaluation"), ""),
            (lambda t: t.update(memory_tokens=5000), "memory_tokens"),
            (lambda t: t.update(surprise=1), "surprise"),
            (lambda t: t["roles"][0].pop("title"), r"roles\.0\.title"),
            (lambda t: t.update(reviewed=False), "reviewed"),
            (lambda t: t["document"].update(name="../x.json"), r"document\.name"),
            (lambda t: t["document"]["fields"].update({"Component 1": "x"}), "items are numbered so"),
            (lambda t: t["document"]["ratings"].update({"component 12": "x"}), "items are numbered so"),
            (lambda t: t["document"]["ratings"].update(Platform="x"), "Platform is a field already"),
            (lambda t: t["document"]["item_fields"].update(name="x"), r"document\.item_fields: name"),
            (lambda t: t["document"]["item_fields"].update({"a, b": "x"}), r"document\.item_fields: 'a, b'"),
            (
                lambda t: t["document"]["item_fields"].update(Pros="x"),
                r"document\.item_fields: pros is there",
            ),
            (lambda t: t["document"].update(item_fields=["pros"]), r"document\.item_fields"),
        ],
    )
    def test_a_team_that_cannot_work_is_refused_with_its_field(self, change: Any, told: str) -> None:
        team = load_team("data_pipeline").model_dump(mode="json")
        change(team)
        if not told:
            assert read_team(team).deciders[-1] == "evaluation"
            return
        with pytest.raises(BadInput, match=told) as refused:
            read_team(team)
        assert refused.value.hint

    def test_files_that_are_no_teams_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "list.yaml").write_text("- a\n- b\n")
        (tmp_path / "broken.yaml").write_text("a: [")
        for name in ("list.yaml", "broken.yaml", "absent.yaml", "no_such_team"):
            with pytest.raises(BadInput):
                load_team(str(tmp_path / name))


def given(**more: Any) -> Any:
    return {"task": TASK, "team": "data_pipeline", "discussion_id": "d", **more}


def context(**more: Any) -> DiscussionContext:
    return DiscussionContext(**{"agents": "rules", **more})


async def discuss(
    ledger: Ledger, what: Any = None, saver: BaseCheckpointSaver[str] | None = None, **more: Any
) -> Any:
    graph = builder.compile(store=LedgerStore(ledger), checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "d"}}
    return await graph.ainvoke(what or given(), config, context=context(**more))


async def turns_of(ledger: Ledger, result: Any) -> list[Turn]:
    return await Discussions(ledger, "local").conversation(result["discussion_id"]).all(result["turn"])


class TestDiscussions:
    """The graph."""

    async def test_a_team_discusses_until_all_accept_and_writes_its_document(self, ledger: Ledger) -> None:
        result = await discuss(ledger)
        turns = await turns_of(ledger, result)
        team = load_team("data_pipeline")
        assert result["ended"] == "consensus" and turns[-1].finalize
        latest = {turn.speaker: turn.accept for turn in turns}
        assert all(latest[name] for name in team.deciders)
        document = result["document"]
        assert document["Platform"] == UNSAID and "Component 12" in document
        assert 1 <= document["Implementation difficulties"] <= 10
        assert "Ingestion" in json.dumps(document) and set(result["report"]) == set(team.document.report)
        kept = await Discussions(ledger, "local").get("d")
        assert (kept.ended, kept.document, kept.turns) == ("consensus", document, len(turns))
        assert kept.answered_by["data_engineer"] == "rules"

    async def test_each_memory_grows_by_its_own_outputs_alone(self, ledger: Ledger) -> None:
        result = await discuss(ledger)
        turns, discussions = await turns_of(ledger, result), Discussions(ledger, "local")
        for role in load_team("data_pipeline").roles:
            history = await discussions.memory("d", role.name).history()
            assert [each.turn for each in history] == [
                0,
                *(t.number for t in turns if t.speaker == role.name),
            ]
            assert all(not departures(role.memory, each.memory) for each in history)
        known = entries((await discussions.memory("d", "data_engineer").now()).memory)
        own = " ".join(turn.message for turn in turns if turn.speaker == "data_engineer")
        assert known and all(each[:20].rstrip("…") in own for each in known), "nobody else's words"

    async def test_contexts_keep_to_their_budget_and_memories_to_their_bound(
        self, edge_ledger: Ledger
    ) -> None:
        result = await discuss(edge_ledger, context_tokens=1500)
        turns = await turns_of(edge_ledger, result)
        assert max(turn.context_tokens for turn in turns) <= 1500
        memory = (await Discussions(edge_ledger, "local").memory("d", "data_engineer").now()).memory
        assert tokens(str(Slots(memory))) <= load_team("data_pipeline").memory_within(1500)

    async def test_without_a_memory_nothing_is_remembered(self, edge_ledger: Ledger) -> None:
        result = await discuss(edge_ledger, given(discussion_id="b"), memory="none", context_tokens=2048)
        assert "Component 1" in result["document"]
        with pytest.raises(NotFound):
            await Discussions(edge_ledger, "local").memory("b", "data_engineer").now()

    async def test_a_bound_with_nothing_said_yet_ends_in_no_document_and_says_so(
        self, edge_ledger: Ledger
    ) -> None:
        result = await discuss(edge_ledger, max_turns=1)
        assert (result["ended"], result["turn"], result["document"]) == ("turn limit", 1, {})
        assert (
            result["lacks"]
            == "No PIPELINE_OVERVIEW.json: it needs at least 1 of Component, and 0 were found."
        )
        assert "Not agreed by all" in result["report"]["summary"]
        kept = await Discussions(edge_ledger, "local").get("d")
        assert (kept.ended, kept.lacks) == ("turn limit", result["lacks"])

    async def test_fewer_items_than_a_document_needs_make_none(self, edge_ledger: Ledger) -> None:
        team = load_team("data_pipeline").model_dump(mode="json")
        team["document"]["least"] = 50
        result = await discuss(edge_ledger, given(team=team))
        assert result["ended"] == "consensus" and not result["document"]
        assert "at least 50 of Component" in result["lacks"] and "Ingestion" in result["report"]["summary"]

    async def test_what_a_discussion_was_begun_with_holds_when_it_is_resumed(
        self, edge_ledger: Ledger
    ) -> None:
        saver = InMemorySaver()
        begun = {"person": "data_engineer", "max_turns": 6, "approve": True, "context_tokens": 3000}
        await discuss(edge_ledger, saver=saver, **begun)
        said: Any = {"message": "Proposal: Paper archive (shelves) because of the law.", "accept": True}
        waits = await discuss(edge_ledger, Command(resume=said), saver)
        (question,) = waits["__interrupt__"]
        assert question.value["ended"] == "turn limit" and waits["turn"] == 6
        turns = await turns_of(edge_ledger, waits)
        assert max(turn.context_tokens for turn in turns) <= 3000

    async def test_no_acceptance_is_older_than_the_last_proposal(self, edge_ledger: Ledger) -> None:
        """What all accept is the solution as it stands: one full round since the last new item."""
        result = await discuss(edge_ledger)
        turns = await turns_of(edge_ledger, result)
        last = max(turn.number for turn in turns if turn.changes)
        team = load_team("data_pipeline")
        accepted = {turn.speaker for turn in turns if turn.number >= last and turn.accept}
        assert result["ended"] == "consensus" and accepted >= set(team.deciders)
        assert "Proposal:" in turns[last - 1].message

    async def test_roles_of_an_unknown_field_propose_what_the_task_demands(self, edge_ledger: Ledger) -> None:
        result = await discuss(edge_ledger, given(task=GREENHOUSE, team=greenhouse_team()))
        document = result["document"]
        assert result["ended"] == "consensus" and len(document) > 4, document
        assert "below 28" in json.dumps(document) and "28 degrees" in result["report"]["plan"]

    async def test_a_task_without_demands_leaves_the_roles_their_duties(self, edge_ledger: Ledger) -> None:
        result = await discuss(edge_ledger, given(task="A greenhouse for tomatoes.", team=greenhouse_team()))
        assert result["ended"] == "consensus" and "mould" in json.dumps(result["document"]).lower()

    async def test_the_bound_on_turns_is_kept_and_said(self, edge_ledger: Ledger) -> None:
        result = await discuss(edge_ledger, max_turns=7)
        assert (result["ended"], result["turn"]) == ("turn limit", 7)
        assert result["document"]["Component 1"] and "Not agreed by all" in result["report"]["summary"]

    async def test_the_delegate_cannot_finalise_before_all_have_accepted(self, edge_ledger: Ledger) -> None:
        hasty = Delegation(reasoning="Enough.", message="Write it.", finalize=True)
        known = {
            "reason": "So.",
            "memory": empty(load_team("data_pipeline").role("conversation_delegation").memory),
        }
        script("hasty", {"delegate": [hasty], "update_memory": [json.dumps(known)]})
        team = with_model(load_team("data_pipeline"), "conversation_delegation", "scripted:hasty")
        result = await discuss(edge_ledger, given(team=team), max_turns=2)
        first = (await turns_of(edge_ledger, result))[0]
        assert (first.message, first.finalize) == ("Write it.", False)
        assert "finalize is true: choose false. Of this turn only its words were taken" in first.complaint
        assert result["complaints"] == [first.complaint]

    async def test_other_teams_discuss_too(self, edge_ledger: Ledger) -> None:
        plan = "The robot must move ball1 to roomb. The robot must be at rooma. Reach the goal by actions."
        planned = await discuss(edge_ledger, given(task=plan, team="pddl", discussion_id="p"))
        assert planned["document"]["Step 1"]

    @pytest.mark.parametrize(
        ("what", "more", "told"),
        [
            ({"task": "  "}, {}, "task"),
            ({"task": "word " * 5000}, {}, "context_tokens"),
            ({"team": "no_team"}, {}, "team"),
            ({"team": "../teams/pddl.yaml"}, {}, "team"),
            ({"team": {"name": "x"}}, {}, "roles"),
            ({}, {"person": "nobody"}, "nobody"),
            ({}, {"person": "documentation"}, "never has the floor"),
            *(
                ({"discussion_id": each}, {}, "cannot be an id")
                for each in ("../../x", "a/b", "..", "a b", ".x")
            ),
        ],
    )
    async def test_bad_input_is_refused_before_any_model_is_asked(
        self, edge_ledger: Ledger, what: Any, more: Any, told: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with served(monkeypatch, Model("llama3.1:8b")) as double:
            with pytest.raises(BadInput, match=told) as refused:
                await discuss(edge_ledger, given(**what), agents="ollama:llama3.1:8b", **more)
            assert refused.value.hint and not double.chats
        assert not await Discussions(edge_ledger, "local").all()

    async def test_an_id_is_not_taken_for_another_discussion(self, edge_ledger: Ledger) -> None:
        await discuss(edge_ledger, max_turns=2)
        with pytest.raises(BadInput, match="another discussion"):
            await discuss(edge_ledger, given(task="Another task on AWS."))

    async def test_it_runs_over_the_wire_with_a_model(
        self, edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        prompts = (contribute, delegate, integrate, evaluate, update_memory, write_document)
        with served(monkeypatch, Model("llama3.1:8b"), brain=by_rules(*prompts)) as double:
            result = await discuss(edge_ledger, agents="ollama:llama3.1:8b", max_turns=12)
        assert result["answered_by"]["data_engineer"] == "ollama:llama3.1:8b"
        assert result["document"]["Component 1"]["pros"] == UNSAID
        assert len(double.chats) == 2 * 12 + 1, "a turn and a memory update each, and the document"


GREENHOUSE = """Plan the climate control of a greenhouse.
- The air must stay below 28 degrees in summer.
- The sensors should work for a season without a new battery.
- Mould must be seen within a day."""


def greenhouse_team() -> dict[str, Any]:
    """Return a team of a field that rules know nothing of, led as the shipped one is."""
    team = load_team("data_pipeline").model_dump(mode="json")
    template = team["roles"][0]["memory"]
    grown = {"name": "grower", "title": "Grower", "description": "what plants need, mould, harvest"}
    wired = {"name": "electrician", "title": "Electrician", "description": "sensors, wiring, power"}
    experts = [each | {"memory": template} for each in (grown, wired)]
    others = [each for each in team["roles"] if each["name"] not in team["speakers"]["workers"]]
    speakers = team["speakers"] | {"workers": ["grower", "electrician"]}
    return team | {"name": "greenhouse", "roles": [*experts, *others], "speakers": speakers}


def proposed(*said: str) -> list[str]:
    """Return the names of what the data engineer proposes by rules after what a person said."""
    duties = load_team("data_pipeline").role("data_engineer").description
    turns = [f"Client (a person):\n{each}" for each in said]
    speaking = Speaking(role="Data Engineer", duties=duties, task=TASK, turns=Turns(turns))
    return [item.name for item in own_items(speaking)]


def test_what_a_person_says_is_proposed_in_their_words() -> None:
    assert "Where is the data catalogue" in proposed("Where is the data catalogue?")
    assert "No data catalogue please" in proposed("No data catalogue, please.")
    job = "The night job that refreshes the sales view must be done by 6:00"
    assert job in proposed(f"{job}.")
    assert "It runs since Monday 2026-11-23 at 1.5 GB" in proposed(
        "It runs since Monday 2026-11-23 at 1.5 GB; slowly."
    )


async def test_rules_do_not_review(edge_ledger: Ledger) -> None:
    design = "A new public API endpoint lets users upload orders; the service writes to a database table."
    with pytest.raises(BadInput, match="design_review needs a model for the Security Reviewer"):
        await discuss(edge_ledger, given(task=design, team="design_review"))
    assert not await Discussions(edge_ledger, "local").all()


def with_model(team: Team, name: str, who: str) -> dict[str, Any]:
    given = team.model_dump(mode="json")
    for role in given["roles"]:
        if role["name"] == name:
            role["model"] = who
    return given


class TestPersons:
    """A person joins in."""

    async def test_a_chat_is_a_task(self, edge_ledger: Ledger) -> None:
        chat = {"messages": [{"role": "user", "content": "Design a pipeline for weather stations."}]}
        done = await discuss(edge_ledger, {**chat, "discussion_id": "chat"}, max_turns=2)
        about = await Discussions(edge_ledger, "local").get(done["discussion_id"])
        assert about.task == chat["messages"][0]["content"]

    async def test_a_person_speaks_as_a_role_with_its_memory(self, edge_ledger: Ledger) -> None:
        saver = InMemorySaver()
        waiting = await discuss(edge_ledger, saver=saver, person="data_engineer", max_turns=12)
        (question,) = waiting["__interrupt__"]
        assert question.value["role"] == "Data Engineer" and "components" in question.value["memory"]
        assert "message" in question.response_schema["properties"]
        asked_again = await discuss(
            edge_ledger, Command(resume={"accept": True}), saver, person="data_engineer"
        )
        assert "message" in asked_again["__interrupt__"][0].value["wrong"]
        said: Any = {
            "message": "Proposal: Paper archive (shelves) because the law asks for it.",
            "accept": False,
        }
        on = await discuss(edge_ledger, Command(resume=said), saver, person="data_engineer", max_turns=6)
        turn = (await turns_of(edge_ledger, on))[3]
        assert turn.person and turn.answered_by == "a person" and "(a person)" in str(turn)
        memory = await Discussions(edge_ledger, "local").memory("d", "data_engineer").at_turn(4)
        assert "Paper archive" in json.dumps(memory.memory)
        assert "Paper archive" in json.dumps(on["document"])

    @pytest.mark.parametrize(
        "answer",
        [{"approve": True}, {"decisions": [{"type": "approve"}]}, [{"type": "accept", "args": None}]],
        ids=["plain", "agent-chat-ui", "agent-inbox"],
    )
    async def test_a_person_approves_the_document(self, edge_ledger: Ledger, answer: Any) -> None:
        saver = InMemorySaver()
        waiting = await discuss(edge_ledger, saver=saver, approve=True)
        (question,) = waiting["__interrupt__"]
        assert question.value["document"] and question.value["action_requests"][0]["name"] == "finalise"
        again = await discuss(edge_ledger, Command(resume=[{"type": "ignore"}]), saver, approve=True)
        assert "yes or no" in again["__interrupt__"][0].value["wrong"]
        done = await discuss(edge_ledger, Command(resume=answer), saver, approve=True)
        assert done["ended"] == "consensus"

    @pytest.mark.parametrize("passes", [False, True])
    async def test_a_person_answers_from_agent_inbox(self, edge_ledger: Ledger, passes: bool) -> None:
        saver, how = InMemorySaver(), {"person": "data_engineer", "max_turns": 5}
        waiting = await discuss(edge_ledger, saver=saver, **how)
        (question,) = waiting["__interrupt__"]
        args = question.value["action_requests"][0]["args"]
        assert None not in args.values(), "agent-inbox cannot show it"
        said = {"action": "speak", "args": {**args, "message": "Proposal: Paper archive.", "accept": "false"}}
        answer: Any = [{"type": "ignore"}] if passes else {"decisions": [{"type": "edit", "args": said}]}
        on = await discuss(edge_ledger, Command(resume=answer), saver, **how)
        (message,) = [turn.message for turn in await turns_of(edge_ledger, on) if turn.person]
        assert message == ("I have nothing to add." if passes else "Proposal: Paper archive.")

    async def test_remarks_reopen_the_discussion(self, edge_ledger: Ledger) -> None:
        saver, remarks = InMemorySaver(), {"approve": False, "remarks": "Where is the data catalogue?"}
        first = await discuss(edge_ledger, saver=saver, approve=True)
        assert "data catalogue" not in json.dumps(first["document"])
        second = await discuss(edge_ledger, Command(resume=remarks), saver, approve=True)
        assert second["turn"] > first["turn"] and "data catalogue" in json.dumps(second["document"])
        done = await discuss(edge_ledger, Command(resume={"approve": True}), saver, approve=True)
        assert done["ended"] == "consensus"

    async def test_remarks_after_the_bound_get_a_round_of_their_own(self, edge_ledger: Ledger) -> None:
        saver, remarks = InMemorySaver(), {"approve": False, "remarks": "Where is the data catalogue?"}
        first = await discuss(edge_ledger, saver=saver, approve=True, max_turns=5)
        assert first["turn"] == 5 and "data catalogue" not in json.dumps(first["document"])
        second = await discuss(edge_ledger, Command(resume=remarks), saver)
        turns = await turns_of(edge_ledger, second)
        assert {turn.speaker for turn in turns[6:]} >= set(load_team("data_pipeline").deciders)
        assert "data catalogue" in json.dumps(second["document"])

    async def test_only_the_delegate_may_call_for_the_document(self, edge_ledger: Ledger) -> None:
        saver = InMemorySaver()
        waits = await discuss(edge_ledger, saver=saver, person="evaluation")
        assert waits["__interrupt__"][0].value["may_finalize"] is False


class Dead(MnemeError):  # noqa: N818
    """The process would have died here."""


class TestResuming:
    """A discussion that stopped goes on, and nothing is said or remembered twice."""

    async def test_a_failed_turn_is_taken_again_and_nothing_twice(
        self, edge_ledger: Ledger, tmp_path: Path
    ) -> None:
        team, file = load_team("data_pipeline"), str(tmp_path / "checkpoints.sqlite")
        scripted = with_model(team, "ml_engineer", "scripted:mortal")
        script("mortal", {"contribute": [Dead("dead")]})
        async with open_checkpointer(file) as saver:
            with pytest.raises(Dead):
                await discuss(edge_ledger, given(team=scripted), saver, max_turns=9)
        said = Contribution(reasoning="so", message="Going on.", changes=False, accept=True)
        memory = {"reason": "so", "memory": empty(team.role("ml_engineer").memory)}
        script("mortal", {"contribute": [said], "update_memory": [json.dumps(memory)]})
        async with open_checkpointer(file) as saver:  # as another process would
            result = await go_on(edge_ledger, saver, max_turns=9)
        turns = await turns_of(edge_ledger, result)
        assert [turn.number for turn in turns] == list(range(1, 10))
        assert turns[5].message == "Going on."
        history = await Discussions(edge_ledger, "local").memory("d", "data_engineer").history()
        assert [each.turn for each in history] == [0, 4]

    async def test_what_was_kept_before_the_death_is_not_asked_for_again(self, edge_ledger: Ledger) -> None:
        first = await discuss(edge_ledger, max_turns=3)
        known = await turns_of(edge_ledger, first)
        again = await discuss(edge_ledger, max_turns=3)  # no checkpoint of it is left; the ledger is
        assert await turns_of(edge_ledger, again) == known
        history = await Discussions(edge_ledger, "local").memory("d", "business_objectives").history()
        assert [each.turn for each in history] == [0, 2]

    async def test_checkpoints_hold_no_words_of_the_conversation(
        self, edge_ledger: Ledger, tmp_path: Path
    ) -> None:
        file = tmp_path / "checkpoints.sqlite"
        async with open_checkpointer(str(file)) as saver:
            await discuss(edge_ledger, saver=saver, max_turns=9)
        with closing(sqlite3.connect(file)) as connection:
            ((states,),) = connection.execute(
                "SELECT count(*) FROM checkpoints WHERE instr(checkpoint, 'because it is a duty')"
            )
        turns = await Discussions(edge_ledger, "local").conversation("d").all(9)
        assert sum("because it is a duty" in turn.message for turn in turns) >= 2
        assert states <= 2, "the states after the document was written, which hold it"


async def go_on(ledger: Ledger, saver: BaseCheckpointSaver[str], **more: Any) -> Any:
    graph = builder.compile(store=LedgerStore(ledger), checkpointer=saver)
    config: Any = {"configurable": {"thread_id": "d"}}
    return await graph.ainvoke(None, config, context=context(**more))


NOTES: dict[str, Any] = {"notes": ["Each fact"], "plan": "Next"}
SMALL: dict[str, Any] = {
    "name": "pair",
    "roles": [
        {"name": name, "title": name.title(), "description": "Speaks.", "memory": NOTES}
        for name in ("cook", "waiter")
    ],
    "speakers": {"kind": "round_robin", "order": ["cook", "waiter"]},
    "document": {
        "name": "MENU.json",
        "by": "cook",
        "item": "Dish",
        "item_fields": {"price": "Its price"},
        "fields": {"Days": "For how many days"},
        "ratings": {"Effort": "From 1 to 10"},
        "report": {"summary": "The menu"},
    },
}
AGREED = Contribution(reasoning="So.", message="Soup it is.", changes=False, accept=True)


def noted(plan: str, *notes: str) -> str:
    return json.dumps({"reason": "New.", "memory": {"notes": list(notes), "plan": plan}})


def menu(**more: Any) -> str:
    """Return a reply that holds the document of the small team."""
    whole = {
        "report": {"summary": "Soup."},
        "fields": {"Days": 4},
        "items": [{"name": "Soup", "price": "3 euros", "turns": [1]}],
        "ratings": {"Effort": 2},
    }
    return json.dumps(whole | more)


async def small(ledger: Ledger, name: str, said: dict[str, list[Any]], **more: Any) -> Any:
    """Discuss in the small team, whose every answer is in a script."""
    script(name, said)
    asked = given(team=SMALL, task="Agree on a menu.", discussion_id=more.pop("discussion_id", "d"))
    return await discuss(ledger, asked, agents=f"scripted:{name}", **more)


async def test_an_acceptance_beside_an_own_issue_does_not_count(edge_ledger: Ledger) -> None:
    """Algorithm 2: who raises an issue has not accepted."""
    wine = Raised(about="And the wine?", concerns=["Waiter"])
    torn = AGREED.model_copy(update={"raises": [wine]})
    said: dict[str, list[Any]] = {
        "contribute": [AGREED, torn, AGREED.model_copy(update={"answers": [0]}), AGREED]
    }
    said |= {"update_memory": [noted("Eat.", "Soup")] * 4, "write_document": [menu()]}
    result = await small(edge_ledger, "torn acceptance", said)
    assert [turn.accept for turn in await turns_of(edge_ledger, result)] == [True, False, True, True]
    assert result["ended"] == "consensus" and result["turn"] == 4
    with pytest.raises(ValueError, match="accept, or raise it"):
        contribute.doubts[0](Speaking(role="Cook", duties="Cooks.", task="A menu."), torn)


def test_an_acceptance_that_ended_is_told_with_the_turn_that_ended_it() -> None:
    def turn(number: int, speaker: str, **more: Any) -> Turn:
        return Turn(number=number, speaker=speaker, title=speaker.title(), message="So.", **more)

    said = [turn(1, "cook", accept=True), turn(2, "waiter", accept=True), turn(3, "guest", changes=True)]
    assert acceptance(said, "cook") == (1, 3) and acceptance(said, "guest") == (0, 0)
    assert acceptance([*said, turn(4, "cook", accept=True)], "cook") == (4, 0)
    assert acceptance([*said[:2], turn(3, "waiter")], "waiter") == (2, 3)
    about = Heard(about="And the wine?", concerns=["cook"])
    raised = [*said[:2], turn(3, "guest", raises=[about])]
    assert (acceptance(raised, "cook"), acceptance(raised, "waiter")) == ((1, 3), (2, 0))


async def test_the_delegate_is_told_why_an_acceptance_is_missing(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    led = deepcopy(SMALL)
    for name in ("host", "writer", "critic"):
        led["roles"].append({"name": name, "title": name.title(), "description": "Leads.", "memory": NOTES})
    facilitators = {"delegate": "host", "integrator": "writer", "evaluator": "critic"}
    led["speakers"] = {"kind": "delegated", "workers": ["cook", "waiter"], **facilitators}
    change = AGREED.model_copy(update={"changes": True, "accept": False})
    turns = iter([AGREED, change, AGREED, AGREED])

    def brain(body: Any) -> str:
        asked = body["messages"][-1]["content"]
        if "newest output" in asked:
            return noted("Eat.", "Soup")
        if "The summary may have" in asked:
            return json.dumps({"reasoning": "So.", "message": "Soup."})
        if "Say each gap in a line" in asked:
            return json.dumps({"reasoning": "So.", "message": "Good.", "raises": [], "answers": []})
        if "Whose acceptance is missing" in asked:
            ends = "nobody need speak" in asked
            return Delegation(reasoning="So.", message="Go on.", finalize=ends).model_dump_json()
        is_document = "What the document consists of" in asked
        return menu() if is_document else next(turns).model_dump_json()

    with served(monkeypatch, Model("llama3.1:8b"), brain=brain) as double:
        told = given(team=led, task="Agree on a menu.")
        result = await discuss(edge_ledger, told, agents="ollama:llama3.1:8b")
        asked = [chat.body["messages"][-1]["content"] for chat in double.chats]
    assert result["ended"] == "consensus"
    shown = [each.partition("counts no more):\n")[2] for each in asked if "counts no more):" in each]
    assert shown[0].startswith("[0] Cook\n[1] Waiter\n")
    assert any("[0] Cook (accepted in turn 2; turn 4 ended that)" in each for each in shown), shown
    assert shown[-1].startswith("(none)\n\nNext to speak: nobody need speak")


def test_all_faults_of_a_reply_are_told_at_once() -> None:
    speaking = Speaking(role="Cook", duties="Cooks.", task="A menu.", experts=["Cook"], room=200)
    issue = Raised(about="And the wine?", concerns=["Waiter"])
    wrong = AGREED.model_copy(update={"answers": [7], "raises": [issue], "message": "x" * 999})
    with pytest.raises(ValueError) as told:
        contribute.verify(speaking, wrong)
    assert all(each in str(told.value) for each in ("answers[] is 7", '"Waiter"', "999 characters; 200"))
    template, memory = {"a": "A", "b": ["B"]}, {"b": "no list", "c": "new"}
    assert len(departures(template, memory)) == 3


def remembered(*memories: list[str]) -> list[MemoryVersion]:
    """Return a cook's memory after turns 0, 2, 4 and so on."""
    return [
        MemoryVersion(agent="cook", turn=2 * n, version=n + 1, memory={"parts": parts}, at=datetime.now(UTC))
        for n, parts in enumerate(memories)
    ]


def test_a_writers_window_shortens_all_entries_before_it_drops_one() -> None:
    entries = [f"Part {n} (choice {n}) because {'it is good ' * (4 * n)}end." for n in range(1, 16)]
    histories = [("Cook", remembered([], entries))]
    whole = told_by([], histories, 10_000, tokens)
    tight = told_by([], histories, tokens(whole) * 0.75, tokens)
    assert all(f"Part {n} (choice {n}) because" in tight for n in range(1, 16))
    assert tokens(tight) <= tokens(whole) * 0.75 and tight.endswith(SHORTENED)
    assert whole.count("Cook, parts:") == tight.count("Cook, parts:") == 1
    assert "because it is good it is good it is good it is good end. [2]" in tight, "short ones stay whole"
    assert Line("Cook, parts", "Tea (hot) because it warms. Pros: none at all.", [3]).within(40) == (
        "- Tea (hot) because it warms. … [3]"
    )
    assert SHORTENED not in whole and told_by([], histories, 200, tokens).endswith(LEFT_OUT)


def test_the_turns_of_an_entry_follow_it_when_it_is_rewritten() -> None:
    carried = "Stew (beef) because guests like it."
    history = remembered(
        [carried],
        [carried, "Soup (lentils) because it stays warm for hours."],
        [carried, "For hours it stays warm: lentil soup (of lentils).", "Twelve guests come at noon."],
        ["Soup of lentils, which stays warm for hours; no celery.", "Twelve guests come at noon."],
    )
    assert told_by([], [("Cook", history)], 1000, tokens).splitlines() == [
        "Cook, parts:",
        "- Soup of lentils, which stays warm for hours; no celery. [2, 4, 6]",
        "- Twelve guests come at noon. [4]",
    ]


def test_the_writer_is_shown_what_was_agreed_before_all_else_and_as_it_was_last_worded() -> None:
    cook, waiter = {"speaker": "cook", "title": "Cook"}, {"speaker": "waiter", "title": "Waiter"}
    soup, pie = "Soup (lentils) because it stays warm.", "Pie (spinach) because it is eaten out of hand."
    turns = [
        Turn(number=1, message=f"Proposal: {soup}\nProposal: Jelly (green) because it is fun.", **cook),
        Turn(number=2, message="I accept soup and jelly.", accept=True, **waiter),
        Turn(number=3, message="- Jelly (red) because green is odd. Pros: bright.", **cook),
        Turn(number=4, message=f"Proposal: {pie}", **waiter),
        Turn(number=5, message="Summary: Soup (lentils) because it stays warm for hours.", **waiter),
        Turn(number=6, message="I accept.", accept=True, **cook),
    ]
    found = {each.name: each for each in proposals_of(turns)}
    agreed, changed = found["Soup"], found["Jelly"]
    assert (agreed.turns, agreed.by, agreed.accepted) == ([1, 5], "Cook", ["Waiter", "Cook"])
    assert (changed.choice, changed.accepted, changed.is_accepted) == ("red", ["Cook"], False)
    history = remembered([], [soup, "Twelve guests come at noon.", "Jelly (green) because it is fun."])
    told = told_by([*found.values()], [("Cook", history)], 1000, tokens)
    assert told.splitlines() == [
        "Proposals that were accepted, as last worded:",
        "- Soup (lentils) because it stays warm for hours. [1, 5]",
        "  proposed by Cook; accepted by Waiter, Cook",
        f"- {pie} [4]",
        "  proposed by Waiter; accepted by Cook",
        "Proposals that nobody else accepted:",
        "- Jelly (red) because green is odd. Pros: bright. [1, 3]",
        "  proposed by Cook; accepted by Cook",
        "Cook, parts:",
        "- Twelve guests come at noon. [2]",
    ]
    tight = told_by([*found.values()], [("Cook", history)], 75, tokens)
    assert "Soup (lentils)" in tight and "Pie (spinach)" in tight
    assert "guests" not in tight and tight.endswith(LEFT_OUT)


WHICH = f"it shows {'which shops ' * 15}are missing"


@pytest.mark.parametrize(
    ("line", "name", "choice"),
    [
        ("Proposal: {} because it is so.", "Start at 01:00 with a retry at 03:00", "pg_cron"),
        ("- {} because it is so.", "Lateness alarm at 04:30, by page", "a check"),
        ('  "[3] {} because it is so.",', "Pump of 2.5 kW", "electric"),
        ("Summary: {} because it is so.", "Alarm (at 04:30) by pager", "pg_cron"),
        ("{} because it is so. [1, 4]", "Storage", "S3 (Standard), 1,000 GB"),
        ("Proposal: {} because it is so.", "pg_cron vs. cron: which?", "pg_cron"),
        ("**Proposal:** {} because it is so.", "Soup", "lentils"),
        ("Part: {} because it is so.", "Mother's 2 / 3-way tap & pipe", "brass"),
        ("Proposal: {} because it is so.", "Banner", WHICH),
    ],
)
def test_a_proposal_is_read_however_name_and_choice_are_worded(line: str, name: str, choice: str) -> None:
    said = line.format(f"{name} ({choice})")
    turn = Turn(number=1, speaker="cook", title="Cook", message=f"So be it.\n{said}\nDone.")
    assert [(each.name, each.choice) for each in proposals_of([turn])] == [(name, choice)]
    assert named(said) == name.lower()


def test_an_agreement_labels_its_parts_and_stays_withdrawn_in_an_earlier_versions_words() -> None:
    parts = {
        "name": "Banner (red)",
        "reason": "It is seen.",
        "risk": "People stop reading it.",
        "design": UNSAID,
    }
    talk = Discussion(
        id="d", task="t", team={}, memory="", document={"Component 1": parts, "Alarm": "At 04:30."}
    )
    agreed = "Banner (red): reason: It is seen; risk: People stop reading it"
    assert talk.agreements == [agreed, "Alarm: At 04:30."]
    for withdrawn in (agreed, "Banner (red): It is seen.; People stop reading it."):
        assert talk.model_copy(update={"withdrawn": [withdrawn]}).agreements == ["Alarm: At 04:30."]


@pytest.mark.parametrize("prose", ["I accept. The alarm", "Agreed: you start none. Our cron", "pg_cron"])
def test_prose_is_no_proposal(prose: str) -> None:
    assert not named(f"{prose} (at night) because it is so.")


class TestUnusableReplies:
    """What can be used of a bad reply is taken, the rest stays, and both are told."""

    async def test_a_bad_update_is_merged_slot_by_slot_and_told(self, edge_ledger: Ledger) -> None:
        bad = json.dumps({"reason": "x", "memory": {"notes": "no list", "plan": "Serve at noon."}})
        cut = '{"reason": "x", "memory": {"notes": ["Guests: 12"], "plan": "Serve at '
        replies = [bad, noted("Serve.", "Soup"), noted("Eat.", "Soup"), "nothing at all"]
        said = {"contribute": [AGREED.model_copy(update={"accept": False})] * 2 + [AGREED] * 2}
        result = await small(
            edge_ledger, "torn", {**said, "update_memory": replies, "write_document": [menu()]}
        )
        assert result["ended"] == "consensus" and result["turn"] == 4
        first, last = result["complaints"]
        assert "Turn 1" in first and "plan was taken; as before: notes" in first
        assert "Turn 4" in last and "nothing was taken; as before: notes, plan" in last
        cook, waiter = (Discussions(edge_ledger, "local").memory("d", name) for name in ("cook", "waiter"))
        assert (await cook.at_turn(1)).memory == {"notes": [], "plan": "Serve at noon."}
        assert (await waiter.now()).memory == {"notes": ["Soup"], "plan": "Serve."}
        assert "as before: notes, plan" in (await waiter.now()).reason
        assert (await Discussions(edge_ledger, "local").get("d")).complaints == result["complaints"]
        assert usable_memory(remembering_small(), cut)[0] == {"notes": ["Guests: 12"], "plan": "Wait."}

    async def test_a_bad_document_keeps_what_can_be_used(self, edge_ledger: Ledger) -> None:
        items = [
            {"name": "Soup", "price": "3", "turns": [1, 2]},
            {"name": "soup", "price": "4"},
            {"name": "Pie"},
        ]
        said: dict[str, list[Any]] = {
            "contribute": [AGREED] * 2,
            "update_memory": [noted("Eat.", "Soup")] * 2,
        }
        written = [menu(items=items, ratings={"Effort": 70})]
        result = await small(edge_ledger, "half", {**said, "write_document": written})
        document = result["document"]
        assert document["Days"] == "4" and document["Dish 1"]["name"] == "Soup" and "Effort" not in document
        assert document["Dish 1"]["turns"] == [1, 2]
        assert "Dish 2" not in document and "Effort, Dish 2, Dish 3" in result["lacks"]
        assert result["complaints"] == [result["lacks"]]

    async def test_who_gives_no_usable_turn_passes_but_not_for_ever(self, edge_ledger: Ledger) -> None:
        cut = '{"reasoning": "So.", "message": "Soup it '
        wordy = json.dumps({"reasoning": "So.", "message": "Soup it is.", "accept": "perhaps"})
        said: dict[str, list[Any]] = {
            "contribute": [cut, wordy, cut, cut, cut],
            "update_memory": [noted("Eat.", "Soup")],
        }
        with pytest.raises(BadAnswer, match="cut off"):
            await small(edge_ledger, "mute", said, max_turns=9)
        turns = await Discussions(edge_ledger, "local").conversation("d").all(9)
        assert [turn.passed for turn in turns] == [True, False, True, True]
        assert "the Cook passes" in turns[0].complaint and PASSED in str(turns[0])
        assert (turns[1].message, turns[1].accept, turns[1].changes) == ("Soup it is.", False, True)
        waiter = Discussions(edge_ledger, "local").memory("d", "waiter")
        assert [each.turn for each in await waiter.history()] == [0, 2], "who passes has nothing to remember"

    async def test_an_issue_that_is_raised_twice_in_a_turn_is_raised_once(self, edge_ledger: Ledger) -> None:
        asked = AGREED.model_copy(update={"raises": [Raised(about="Who pays?")] * 3})
        said: dict[str, list[Any]] = {"contribute": [asked], "update_memory": [noted("Eat.")]}
        said["write_document"] = [menu()]
        result = await small(edge_ledger, "insistent", said, max_turns=1)
        assert [each.about for each in (await turns_of(edge_ledger, result))[0].raises] == ["Who pays?"]

    async def test_items_that_say_the_same_are_one(self, edge_ledger: Ledger) -> None:
        items = [{"name": "Soup", "price": "3", "turns": [1, turn]} for turn in (1, 2)]
        said: dict[str, list[Any]] = {
            "contribute": [AGREED] * 2,
            "update_memory": [noted("Eat.", "Soup")] * 2,
            "write_document": [menu(items=items)],
        }
        result = await small(edge_ledger, "twins", said)
        assert result["document"]["Dish 1"] == {"name": "Soup", "price": "3", "turns": [1, 2]}
        assert "Dish 2" not in result["document"] and not result["lacks"]

    async def test_a_team_s_own_field_called_turns_keeps_its_text(self, edge_ledger: Ledger) -> None:
        document = {**SMALL["document"], "item_fields": {"turns": "How often it is turned over"}}
        said: dict[str, list[Any]] = {
            "contribute": [AGREED] * 2,
            "update_memory": [noted("Eat.", "Soup")] * 2,
            "write_document": [menu(items=[{"name": "Pancake", "turns": "twice"}])],
        }
        script("turned", said)
        asked = given(team={**SMALL, "document": document}, task="Agree on a menu.", discussion_id="d")
        result = await discuss(edge_ledger, asked, agents="scripted:turned")
        assert result["document"]["Dish 1"] == {"name": "Pancake", "turns": "twice"}

    async def test_of_a_document_that_was_cut_off_whole_items_are_kept(self, edge_ledger: Ledger) -> None:
        said: dict[str, list[Any]] = {
            "contribute": [AGREED] * 2,
            "update_memory": [noted("Eat.", "Soup")] * 2,
        }
        items = [{"name": name, "price": "3", "turns": [1]} for name in ("Soup", "Pie", "Tart")]
        whole = menu(items=items)
        cut = whole[: whole.index("Tart") + 2]
        result = await small(edge_ledger, "cut", {**said, "write_document": [cut]})
        document = result["document"]
        assert [document[f"Dish {n}"]["name"] for n in (1, 2)] == ["Soup", "Pie"]
        assert "Dish 3" not in document and "Not usable: Effort." in result["lacks"]


def remembering_small() -> Remembering:
    template = SMALL["roles"][0]["memory"]
    known = {"notes": [], "plan": "Wait."}
    return Remembering(role="Cook", template=Slots(template), memory=Slots(known), output="x", limit=900)


async def test_an_update_is_shown_the_task_and_what_others_accepted(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = (contribute, update_memory, write_document)
    with served(monkeypatch, Model("llama3.1:8b"), brain=by_rules(*prompts)) as double:
        await discuss(
            edge_ledger, given(team=greenhouse_pair(), task=GREENHOUSE), agents="ollama:llama3.1:8b"
        )
        asked = [chat.body["messages"][-1]["content"] for chat in double.chats]
    updates = [each for each in asked if "The agent's newest output" in each]
    assert all("stay below 28 degrees" in each for each in updates)
    assert any("Electrician [ACCEPT]" in each.partition("as they accepted")[2] for each in updates)


async def test_an_update_is_shown_what_its_turn_raised_and_accepted(
    edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    asks = AGREED.model_copy(update={"accept": False, "raises": [Raised(about="And the wine?", concerns=[])]})
    answers = AGREED.model_copy(update={"answers": [0]})
    turns = iter([asks, answers, AGREED])

    def brain(body: Any) -> str:
        if "newest output" in body["messages"][-1]["content"]:
            return noted("Eat.", "Soup")
        is_document = "What the document consists of" in body["messages"][-1]["content"]
        return menu() if is_document else next(turns).model_dump_json()

    with served(monkeypatch, Model("llama3.1:8b"), brain=brain) as double:
        await discuss(edge_ledger, given(team=SMALL, task="Agree on a menu."), agents="ollama:llama3.1:8b")
        asked = [chat.body["messages"][-1]["content"] for chat in double.chats]
    shown = [each.partition("newest output:\n")[2] for each in asked if "newest output" in each]
    assert "Issue raised: And the wine?" in shown[0] and "I accept" not in shown[0]
    assert "I accept the solution as it stands." in shown[1] and "wine" not in shown[1]
    assert "And the wine? (raised in turn 1 by Cook, open)" in asked[2]
    form = contribute.example_texts[0]
    assert form.index("reasoning") < form.index("message") < form.index("raises") < form.index("accept")


def greenhouse_pair() -> dict[str, Any]:
    team = greenhouse_team()
    order = ["grower", "electrician"]
    roles = [each for each in team["roles"] if each["name"] in {*order, team["document"]["by"]}]
    return team | {"roles": roles, "speakers": {"kind": "round_robin", "order": order}}


class TestIssues:
    """What is raised is answered before a consensus, and revokes the acceptances of whom it concerns."""

    async def discussed(self, ledger: Ledger, name: str, *turns: Contribution, **more: Any) -> Any:
        said: dict[str, list[Any]] = {
            "contribute": list(turns),
            "update_memory": [noted("Eat.", "Soup")] * len(turns),
        }
        return await small(ledger, name, {**said, "write_document": [menu()]}, **more)

    async def test_a_consensus_with_an_unanswered_gap_is_none(self, edge_ledger: Ledger) -> None:
        gap = Raised(about="Nobody has asked for allergies.")
        asks = AGREED.model_copy(update={"raises": [gap]})
        answers = AGREED.model_copy(update={"answers": [0]})
        result = await self.discussed(edge_ledger, "gap", asks, AGREED, AGREED, answers)
        turns = await turns_of(edge_ledger, result)
        assert (result["ended"], result["turn"]) == ("consensus", 4)
        (issue,) = issues_of(turns)
        assert (issue.raised_in, issue.answered_in, issue.status) == (1, 4, "answered")
        later = turns[0].model_copy(update={"number": 5, "raises": [], "accept": True})
        assert issues_of([*turns, later])[0].status == "accepted"
        minutes = result["document"]["Minutes"]
        assert minutes["accepted by"] == ["Cook", "Waiter"] and not minutes["unanswered issues"]

    async def test_an_issue_revokes_the_acceptances_of_those_whom_it_concerns(
        self, edge_ledger: Ledger
    ) -> None:
        def asks(whom: str) -> Contribution:
            raised = Raised(about="And the wine?", concerns=[whom, whom])
            return AGREED.model_copy(update={"changes": True, "raises": [raised]})

        own = await self.discussed(edge_ledger, "own", AGREED, asks("Waiter"), max_turns=2)
        assert own["document"]["Minutes"]["accepted by"] == ["Cook"], "who raises has not accepted"
        assert own["ended"] == "turn limit"
        (open_,) = own["document"]["Minutes"]["unanswered issues"]
        assert open_ == "And the wine? (raised in turn 2 by Waiter for Waiter, open)"
        other = await self.discussed(
            edge_ledger, "other", AGREED, asks("Cook"), max_turns=2, discussion_id="e"
        )
        minutes = other["document"]["Minutes"]
        assert (minutes["ended"], minutes["dissent"], minutes["turns"]) == (
            "turn limit",
            ["Cook", "Waiter"],
            2,
        )
        assert minutes["written by"] == "scripted:other"
        jsonschema_rs.validate(schema(read_team(SMALL).document), other["document"])

    async def test_a_change_without_an_issue_revokes_all_and_an_unknown_issue_is_refused(
        self, edge_ledger: Ledger
    ) -> None:
        change = AGREED.model_copy(update={"changes": True})
        result = await self.discussed(edge_ledger, "change", AGREED, change, AGREED)
        assert (result["ended"], result["turn"]) == ("consensus", 3)
        answers = AGREED.model_copy(update={"answers": [3]})
        refused = await self.discussed(edge_ledger, "wrong", answers, discussion_id="e", max_turns=1)
        assert "answers[] is 3" in refused["complaints"][0]


class TestWriter:
    """The document is written from what all remember, and says where each item comes from."""

    async def test_the_writer_reads_all_memories_with_their_turns(
        self, edge_ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        prompts = (contribute, delegate, integrate, evaluate, update_memory, write_document)
        with served(monkeypatch, Model("llama3.1:8b"), brain=by_rules(*prompts)) as double:
            result = await discuss(edge_ledger, agents="ollama:llama3.1:8b", context_tokens=2500)
            asked = double.chats[-1].body["messages"][-1]["content"]
        turns = await turns_of(edge_ledger, result)
        team = load_team("data_pipeline")
        for title in (team.role(name).title for name in team.deciders):
            assert f"{title}, " in asked
        shown = re.findall(r"^\[(\d+)\] \w", asked, re.MULTILINE)
        assert int(shown[0]) > 1 and int(shown[-1]) == len(turns), "numbers hold where the window cuts"
        items = [part for name, part in result["document"].items() if name.startswith("Component")]
        for item in items:
            name = item["name"].partition(" (")[0]
            assert item["turns"] and all(name in turns[number - 1].message for number in item["turns"])
