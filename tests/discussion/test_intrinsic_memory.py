"""Structured memories: their updates, what an update is shown, their versions, and context construction."""

import json
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Split
from tokenizers.pre_tokenizers import Sequence as PreTokenizers
from tokenizers.trainers import BpeTrainer

from mneme.core.errors import BadAnswer, Conflict, NotFound, PromptTooLong
from mneme.library.teams.team import empty
from mneme.models.asking.asking import ask, clear_endpoints
from mneme.models.asking.counting import tokens
from mneme.models.ollama import tokenizers
from mneme.models.ollama.tokenizers import CUTS
from mneme.nodes.task_memories.f_context import f_context
from mneme.prompts.discussion.document import write_document
from mneme.prompts.discussion.intrinsic_memory import Issue as Raised
from mneme.prompts.discussion.intrinsic_memory import contribute
from mneme.prompts.discussion.memory_template import Slots, departures, size
from mneme.prompts.discussion.memory_update import Remembering, update_memory, update_memory_by
from mneme.rules.discussion.memory_update import words
from mneme.stores.discussions.agent_memory import AgentMemory
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change
from tests.doubles.discussing import (
    AGREED,
    GREENHOUSE,
    SMALL,
    TASK,
    discuss,
    given,
    greenhouse_team,
    menu,
    noted,
)
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
