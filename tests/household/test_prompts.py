"""The questions of households: bounded where nothing is offered, and answered by rules within the bounds."""

from typing import Any

import pytest
from pydantic import BaseModel

from mneme.prompts.household import coela, mita, proagent, synopsis
from mneme.prompts.household.proagent import Observed
from mneme.prompts.household.synopsis import Passage
from mneme.prompts.prompt import MAX_REASON_CHARS, Prompt
from mneme.rules.registry import answer as by_rule
from tests.doubles.apartment import FRIDGE, HALL, KITCHEN, STUDY, TABLE
from tests.doubles.household import cross_context, passage, situation
from tests.doubles.questions import assert_bounded, schema_of
from tests.household.test_household_rivals import planning_of, scene, view

BOB = Observed(teammate=1, name="Bob", seen=5, room=KITCHEN)
ASKED: list[tuple[Prompt[Any, Any], BaseModel]] = [
    (coela.draft_message, planning_of(view())),
    (coela.choose_action, planning_of(view())),
    (proagent.plan_skill, scene(observed=[BOB])),
    (mita.propose_action, situation()),
    (mita.allocate_actions, cross_context()),
    (synopsis.summarise_passage, passage()),
]
NOTHING = Passage(task="t", actions="", beliefs="", change="nothing", progress="p")


@pytest.mark.parametrize(
    ("prompt", "given"),
    [
        (coela.choose_action, planning_of(view(options=[]))),
        (proagent.plan_skill, scene(options=[])),
        (mita.propose_action, situation().model_copy(update={"options": []})),
        (synopsis.summarise_passage, NOTHING),
    ],
)
def test_no_field_of_a_reply_is_open_ended_where_nothing_is_offered(
    prompt: Prompt[Any, Any], given: BaseModel
) -> None:
    assert_bounded(prompt, given)


@pytest.mark.parametrize(("prompt", "given"), ASKED, ids=lambda each: getattr(each, "name", ""))
def test_what_the_rules_answer_is_within_the_bounds(prompt: Prompt[Any, Any], given: BaseModel) -> None:
    answer = prompt.verify(given, by_rule(prompt, given))
    assert_within(answer.model_dump(), schema_of(prompt, given))


def assert_within(value: Any, schema: dict[str, Any]) -> None:
    """Assert that a value is one of those which a schema's bounds let pass."""
    if isinstance(value, dict):
        assert value.keys() == schema["properties"].keys()
        for name, inner in value.items():
            assert_within(inner, schema["properties"][name])
    elif isinstance(value, list):
        assert schema.get("minItems", 0) <= len(value) <= schema["maxItems"]
        for inner in value:
            assert_within(inner, schema["items"])
    elif isinstance(value, str):
        assert len(value) <= schema["maxLength"]
    else:
        assert value in schema["enum"]


def test_a_reason_that_runs_on_is_shortened() -> None:
    proposal = mita.Proposal(reason="It is near. " * 100, choice=0)
    assert len(proposal.reason) <= MAX_REASON_CHARS
    fields = schema_of(mita.propose_action, situation())["properties"]
    assert fields["reason"]["maxLength"] == MAX_REASON_CHARS


def test_each_member_is_allotted_one_of_its_own_options() -> None:
    asked = cross_context()
    asked.members[1].options.pop()
    choices = schema_of(mita.allocate_actions, asked)["properties"]["choices"]
    assert choices["required"] == ["M0", "M1"] and not choices["additionalProperties"]
    assert [choices["properties"][name]["enum"] for name in ("M0", "M1")] == [[0, 1, 2], [0, 1]]


def test_only_what_is_chosen_by_number_is_numbered() -> None:
    said = ["Bob at step 1: <fridge> (17) is open.", "Bob at step 2: I wait."]
    told = coela.choose_action.user_text(planning_of(view(history=["at step 0: wait: done"]), dialogue=said))
    task, actions = told.split("Possible actions:")
    assert "[0]" not in task and actions.startswith("\n[0] ")
    assert "\n".join(said) in told


def test_a_teammate_has_one_number_and_what_it_goes_for_a_name() -> None:
    thought = {"intended": TABLE, "since": 3, "contradicted": [FRIDGE, 99], "did": ["step 5: here"]}
    bob = BOB.model_copy(update=thought | {"labels": {TABLE: "<table> (1)", FRIDGE: "<fridge> (2)"}})
    told = proagent.plan_skill.user_text(scene(observed=[bob]))
    assert "\nBob (member 1): last seen at step 5" in told
    assert "you thought it goes for <table> (1); it does not go for <fridge> (2) nor (99)" in told


def test_an_intention_is_of_a_teammate_that_was_seen_and_of_a_known_target() -> None:
    intentions = schema_of(proagent.plan_skill, scene(observed=[BOB]))["properties"]["intentions"]
    assert (intentions["minItems"], intentions["maxItems"]) == (1, 1)
    fields = intentions["items"]["properties"]
    assert fields["teammate"]["enum"] == [1]
    assert set(fields["target"]["enum"]) == {proagent.UNKNOWN_ROOM, KITCHEN, HALL, STUDY, FRIDGE, TABLE}


def test_a_synopsis_may_name_what_the_record_bears_out() -> None:
    fields = schema_of(synopsis.summarise_passage, passage())["properties"]
    ids = {name: fields[name]["items"].get("enum") for name in ("checked", "unchecked", "explored")}
    assert ids == {"checked": [40], "unchecked": [41], "explored": [1]}
    assert fields["placed"]["maxItems"] == 0
    assert fields["found"]["items"]["properties"]["place"]["enum"] == [1, 40]


def test_a_narrative_by_rules_is_never_too_long() -> None:
    rooms = [passage().rooms[0].model_copy(update={"id": number}) for number in range(1000, 1200)]
    long = passage().model_copy(update={"rooms": rooms, "searched": {each.id: ["M0"] for each in rooms}})
    made = synopsis.summarise_passage.verify(long, by_rule(synopsis.summarise_passage, long))
    assert len(made.narrative) <= synopsis.NARRATIVE
