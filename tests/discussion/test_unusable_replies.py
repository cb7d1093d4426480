"""What is taken of a reply that cannot be used whole, and what the writer of a document reads."""

import json
import re
from typing import Any

import pytest

from mneme.core.errors import BadAnswer
from mneme.library.teams.team import load_team
from mneme.nodes.discussion.intrinsic_memory import PASSED_TURN
from mneme.nodes.task_memories.salvage import usable_memory
from mneme.prompts.discussion.document import write_document
from mneme.prompts.discussion.intrinsic_memory import Issue as Raised
from mneme.prompts.discussion.intrinsic_memory import contribute, delegate, evaluate, integrate
from mneme.prompts.discussion.memory_template import Slots
from mneme.prompts.discussion.memory_update import Remembering, update_memory
from mneme.stores.discussions.discussions import Discussions
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.discussing import AGREED, SMALL, discuss, given, menu, noted, small, turns_of
from tests.doubles.ollama import Model, by_rules
from tests.doubles.scripts import script
from tests.doubles.served import served


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
        assert "the Cook passes" in turns[0].complaint and PASSED_TURN in str(turns[0])
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
