"""Whole discussions on a real ledger, persons who join in, and what goes on after a failure."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from mneme.core.errors import BadInput, MnemeError, NotFound
from mneme.graphs.intrinsic_memory import builder
from mneme.library.teams.team import empty, load_team
from mneme.models.asking.counting import tokens
from mneme.prompts.discussion.document import UNSAID, write_document
from mneme.prompts.discussion.intrinsic_memory import (
    Contribution,
    Delegation,
    Speaking,
    Turns,
    contribute,
    delegate,
    evaluate,
    integrate,
)
from mneme.prompts.discussion.memory_template import Slots, departures, entries
from mneme.prompts.discussion.memory_update import update_memory
from mneme.rules.discussion.proposals import own_items
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.discussions.discussions import Discussions
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.discussing import (
    GREENHOUSE,
    TASK,
    context,
    discuss,
    given,
    greenhouse_team,
    turns_of,
    with_model,
)
from tests.doubles.ollama import Model, by_rules
from tests.doubles.scripts import script
from tests.doubles.served import served


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
