"""The questions of Memory Sharing: what rules answer passes, and what a rubric bounds."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from mneme.library.agents.rubric import RUBRICS, load_rubric
from mneme.prompts.prompt import Prompt
from mneme.prompts.sharing.answering import AskedQuestion, answer
from mneme.prompts.sharing.examples import Criteria, Criterion, Example
from mneme.prompts.sharing.grading import Comparison, grade_contradiction
from mneme.prompts.sharing.rubric_design import Domain, Drafted, draft_rubric
from mneme.prompts.sharing.scoring import Gradeable, Judgeable, Score, score_pair, score_whole
from mneme.prompts.sharing.standard_answers import MAX_QUESTION_CHARS, Standard, ask_for
from mneme.rules.registry import answer as by_rule
from tests.doubles.questions import schema_of, unbounded

CRITERIA = [
    Criterion(name="Rhyme", points=60, looks_at="The scheme AABBA."),
    Criterion(name="Wit", points=40, looks_at="It makes one laugh."),
]
PAIR = Judgeable(question="Sing of a cat.", answer="A cat sat on a mat.", criteria=CRITERIA)
COMPARED = Comparison(example=Example(answer="La."), question="Sing.", answer="La, la.")
ASKED: list[tuple[Prompt[Any, Any], BaseModel]] = [
    (score_pair, PAIR),
    (score_whole, Gradeable(rubric="Rhyme: 60. Wit: 40.", question="Sing.", answer="A cat sat on a mat.")),
    (grade_contradiction, COMPARED),
    (ask_for, Standard(does="A limerick.", questions="Any.", answer="A cat sat on a mat.")),
    (draft_rubric, Domain(domain="songs", tasks=["Songs of cats."])),
]


@pytest.mark.parametrize(("prompt", "given"), ASKED, ids=lambda each: getattr(each, "name", ""))
def test_what_the_rules_answer_passes(prompt: Prompt[Any, Any], given: BaseModel) -> None:
    answer = by_rule(prompt, given)
    assert prompt.verify(given, answer) == answer


def test_each_criterion_earns_from_nothing_to_its_most() -> None:
    points = schema_of(score_pair, PAIR)["properties"]["points"]
    assert points["required"] == ["Rhyme", "Wit"] and not points["additionalProperties"]
    assert [(each["minimum"], each["maximum"]) for each in points["properties"].values()] == [
        (0, 60),
        (0, 40),
    ]


def test_what_is_shown_has_its_roles_and_no_numbers_that_nothing_refers_to() -> None:
    turns = Example(question="Another?", answer="No.", leading=["user: A pun?", "assistant: Yes."])
    assert str(turns) == "Question: user: A pun? / assistant: Yes. / user: Another?\nAnswer: No."
    assert str(Example(answer="La.")) == "Question: (no question)\nAnswer: La."
    system, scored = score_pair.wording(PAIR)
    assert "- Rhyme (0 to 60): The scheme AABBA.\n- Wit (0 to 40)" in scored and "[0] Rhyme" not in scored
    assert "The form that a program checked: (none)" in scored and "((none))" not in scored
    assert '"points": {"' in system
    _, asked = answer.wording(AskedQuestion(does="Write puns.", question="A pun?"))
    assert "Your task: Write puns." in asked and "<task>" not in asked


@pytest.mark.parametrize("rubric", RUBRICS)
def test_a_pair_can_be_scored_by_every_shipped_rubric(rubric: str) -> None:
    criteria = [Criterion(**each.model_dump()) for each in load_rubric(rubric).criteria]
    given = Judgeable(question=PAIR.question, answer=PAIR.answer, criteria=Criteria(criteria))
    assert unbounded(schema_of(score_pair, given)) == []
    assert list(score_pair.verify(given, by_rule(score_pair, given)).points) == [e.name for e in criteria]


@pytest.mark.parametrize(
    ("points", "why"),
    [
        ({"Rhyme": 60}, "one for each of Rhyme, Wit"),
        ({"Rhyme": 60, "Wit": 1, "Metre": 1}, "one for each of Rhyme, Wit"),
        ({"Rhyme": 61, "Wit": 1}, "points.Rhyme is 61: choose 0 to 60"),
        ({"Rhyme": 6, "Wit": -1}, "points.Wit is -1: choose 0 to 40"),
    ],
)
def test_points_that_a_rubric_does_not_give_are_refused(points: dict[str, int], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        score_pair.verify(PAIR, Score(rationale="So it is.", points=points))


def test_the_rules_ask_no_question_that_is_too_long() -> None:
    given = Standard(does="verse " * 400, questions="Any.", answer="A cat sat on a mat.")
    assert len(by_rule(ask_for, given).question) == MAX_QUESTION_CHARS


@pytest.mark.parametrize("wrong", [{"points": 0}, {"name": ""}, {"looks_at": "x" * 301}])
def test_a_drafted_criterion_has_points_a_name_and_one_sentence(wrong: dict[str, Any]) -> None:
    plain = {"name": "Wit", "points": 100, "looks_at": "It makes one laugh."}
    with pytest.raises(ValidationError):
        Drafted.model_validate({"criteria": [plain | wrong]})
