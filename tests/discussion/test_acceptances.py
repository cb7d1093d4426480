"""What counts as accepted: acceptances, the issues that revoke them, and proposals as a writer reads them."""

import json
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import jsonschema_rs
import pytest

from mneme.library.teams.document import schema
from mneme.library.teams.team import read_team
from mneme.models.asking.counting import tokens
from mneme.nodes.discussion.experts import Line, expert_lines
from mneme.nodes.discussion.proposals import proposals_of
from mneme.prompts.discussion.document import ENTRIES_LEFT_OUT, SHORTENED, UNSAID
from mneme.prompts.discussion.intrinsic_memory import (
    Contribution,
    Delegation,
    Speaking,
    contribute,
    item_name,
)
from mneme.prompts.discussion.intrinsic_memory import Issue as Raised
from mneme.prompts.discussion.memory_template import departures
from mneme.stores.discussions.agent_memory import MemoryVersion
from mneme.stores.discussions.discussions import Discussion, Turn, acceptance
from mneme.stores.discussions.discussions import Raised as Heard
from mneme.stores.discussions.issues import issues_of
from mneme.stores.ledger.ledger import Ledger
from tests.doubles.discussing import AGREED, NOTES, SMALL, discuss, given, menu, noted, small, turns_of
from tests.doubles.ollama import Model
from tests.doubles.served import served


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
    whole = expert_lines([], histories, 10_000, tokens)
    tight = expert_lines([], histories, tokens(whole) * 0.75, tokens)
    assert all(f"Part {n} (choice {n}) because" in tight for n in range(1, 16))
    assert tokens(tight) <= tokens(whole) * 0.75 and tight.endswith(SHORTENED)
    assert whole.count("Cook, parts:") == tight.count("Cook, parts:") == 1
    assert "because it is good it is good it is good it is good end. [2]" in tight, "short ones stay whole"
    assert Line("Cook, parts", "Tea (hot) because it warms. Pros: none at all.", [3]).within(40) == (
        "- Tea (hot) because it warms. … [3]"
    )
    assert SHORTENED not in whole and expert_lines([], histories, 200, tokens).endswith(ENTRIES_LEFT_OUT)


def test_the_turns_of_an_entry_follow_it_when_it_is_rewritten() -> None:
    carried = "Stew (beef) because guests like it."
    history = remembered(
        [carried],
        [carried, "Soup (lentils) because it stays warm for hours."],
        [carried, "For hours it stays warm: lentil soup (of lentils).", "Twelve guests come at noon."],
        ["Soup of lentils, which stays warm for hours; no celery.", "Twelve guests come at noon."],
    )
    assert expert_lines([], [("Cook", history)], 1000, tokens).splitlines() == [
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
    told = expert_lines([*found.values()], [("Cook", history)], 1000, tokens)
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
    tight = expert_lines([*found.values()], [("Cook", history)], 75, tokens)
    assert "Soup (lentils)" in tight and "Pie (spinach)" in tight
    assert "guests" not in tight and tight.endswith(ENTRIES_LEFT_OUT)


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
    assert item_name(said) == name.lower()


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
    assert not item_name(f"{prose} (at night) because it is so.")


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
