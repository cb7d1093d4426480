"""The questions of learning: only what is offered can be named, and what is long has room."""

from typing import Any

import pytest
from pydantic import BaseModel

from mneme.environments.trial import Trial
from mneme.prompts.learning.compound_learning.challenge import Review, challenge_draft
from mneme.prompts.learning.compound_learning.compile import Experience, compile_lessons
from mneme.prompts.learning.compound_learning.decide import Case, resolve_task
from mneme.prompts.learning.compound_learning.research import (
    Assignment,
    Complaint,
    Draft,
    draft_solution,
    patch_draft,
)
from mneme.prompts.learning.compound_learning.task import MAX_TEXT_CHARS, Known
from mneme.prompts.learning.dispute_resolution import (
    CarriedApproach,
    Contest,
    Guideline,
    Match,
    carry_out,
    resolve_dispute,
)
from mneme.prompts.prompt import Prompt
from tests.doubles.questions import assert_bounded, schema_of

CARD = Known(claim="Index the filter first.", status="verified", confidence=0.8)
DRAFT = Draft(rationale="The card fits.", pattern="INDEX (filter)", used=[0])
TRIAL = Trial(correct=True, gain=4.0, wanted=2.0, solved=True)
OLD, NEW = (Guideline(condition="grouping", pattern=each) for each in ("INDEX (group)", "INDEX (filter)"))
MATCH = Match(features="grouping", old="2 times as fast", new="4 times as fast", winner="new")
ASKED: list[tuple[Prompt[Any, Any], BaseModel]] = [
    (draft_solution, Assignment(task="Faster.", parts=["statements", "query"], cards=[CARD, CARD])),
    (challenge_draft, Review(task="Faster.", draft=str(DRAFT), cards=[CARD], pitfalls=[CARD, CARD])),
    (patch_draft, Complaint(task="Faster.", draft=DRAFT, objections=["It scans."], advice=[])),
    (resolve_task, Case(task="Faster.", draft=DRAFT, iterations=1, trial=TRIAL, cards=[CARD])),
    (compile_lessons, Experience(task="Faster.", solved=True, confidence=0.8, used=[CARD])),
    (
        resolve_dispute,
        Contest(claim="Index it.", old=OLD, new=NEW, conflict_type="contradiction", matches=[MATCH]),
    ),
    (
        carry_out,
        CarriedApproach(task="Faster.", parts=["files"], condition="grouping", pattern="group in a dict"),
    ),
]
BARE: list[tuple[Prompt[Any, Any], BaseModel]] = [
    (draft_solution, Assignment(task="Faster.")),
    (challenge_draft, Review(task="Faster.", draft="Nothing.")),
    (patch_draft, Complaint(task="Faster.", draft=Draft(rationale="None."), objections=[], advice=[])),
    (resolve_task, Case(task="Faster.", draft=DRAFT, iterations=1)),
    (compile_lessons, Experience(task="Faster.", solved=False, confidence=0.1)),
    (resolve_dispute, Contest(claim="It.", old=OLD, new=NEW, conflict_type="contradiction", matches=[])),
]


def field(schema: dict[str, Any], *path: str) -> dict[str, Any]:
    """Return the schema of a field, through the items of lists."""
    for name in path:
        schema = schema["properties"][name]
        schema = schema.get("items", schema)
    return schema


@pytest.mark.parametrize("asked", BARE, ids=lambda asked: asked[0].name)
def test_every_field_of_an_answer_is_bounded_where_little_is_given(
    asked: tuple[Prompt[Any, Any], BaseModel],
) -> None:
    assert_bounded(*asked)


def test_only_what_is_offered_can_be_named() -> None:
    drafted, bare = (schema_of(*asked[0])["properties"]["used"] for asked in (ASKED, BARE))
    assert drafted["items"]["enum"] == [0, 1] and drafted["maxItems"] == 2
    assert bare["items"]["enum"] == [-1] and bare["maxItems"] == 0
    challenged, unopposed = (schema_of(*asked[1]) for asked in (ASKED, BARE))
    assert field(challenged, "objections", "pitfall")["enum"] == [-1, 0, 1]
    assert field(unopposed, "objections", "kind")["enum"] == ["missing_edge_case", "unstated_assumption"]
    assert field(schema_of(*ASKED[3]), "solved")["enum"] == [True], "what was measured decides"
    assert field(schema_of(*BARE[4]), "findings", "event")["enum"] == ["create", "dead_end"]
    assert field(schema_of(*BARE[5]), "recommendation")["enum"] == ["escalate"]


def test_a_long_query_has_room_to_be_written_anew() -> None:
    short, long = (
        Assignment(task="Faster.", parts=["query"], material=f"SELECT {'a, ' * n}b FROM c")
        for n in (10, 1_000)
    )
    rooms = [field(schema_of(draft_solution, each), "query")["maxLength"] for each in (short, long)]
    assert rooms[0] == MAX_TEXT_CHARS and rooms[1] > len(long.material)


def test_a_patch_rests_on_no_card_that_its_draft_did_not_rest_on() -> None:
    given = Complaint(task="Faster.", draft=DRAFT, objections=["It scans."], advice=[])
    made = {"rationale": "Patched.", "answer": "Index it.", "closed": [0]}
    patch_draft.verify(given, patch_draft.answer(**made, used=[0]))
    with pytest.raises(ValueError, match="is 1: choose 0"):
        patch_draft.verify(given, patch_draft.answer(**made, used=[1]))
