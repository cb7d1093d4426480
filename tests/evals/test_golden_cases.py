"""The golden cases: every question has its file, and every case can be asked and looked at."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from langchain_core.messages import HumanMessage, SystemMessage

from mneme.core.errors import BadInput
from mneme.evals.discussion.judges import judge_as_printed
from mneme.evals.prompts.cases import CASE_KINDS, Golden, Property, all_questions, file_of, filled, read_cases
from mneme.models.asking.asking import MIN_REPLY_ROOM, TEXT_TOKENS
from mneme.models.asking.counting import tokens_of
from mneme.models.asking.replies import objects
from mneme.prompts.chat.paper_versions import choose_tools
from mneme.prompts.every import Key
from tests.doubles.questions import assert_bounded, assert_examples_hold
from tests.evals.case_checks import check_cases

CONTEXT = 8192
LEAST_CASES, LEAST_KINDS = 6, 3
MOST_BY_CHANCE = 0.75
ALL = [pytest.param(key, id="-".join(key)) for key in all_questions()]


@pytest.mark.parametrize("key", ALL)
def test_a_question_has_cases_of_several_kinds_that_can_be_looked_at(key: Key) -> None:
    kinds = Counter(each.case.kind for each in check_cases(key, file_of(key)))
    assert kinds.total() >= LEAST_CASES
    assert len(kinds) >= LEAST_KINDS
    assert set(kinds) <= set(CASE_KINDS)


@pytest.mark.parametrize("key", ALL)
def test_each_reply_is_bounded_and_each_worked_example_is_one(key: Key) -> None:
    question = all_questions()[key]
    if question.answer is str:
        return
    if question not in (choose_tools, judge_as_printed):  # it calls tools; the paper prints it without one
        assert_examples_hold(question)
    for each in read_cases(key, file_of(key)):
        assert_bounded(each.question, each.given)


@pytest.mark.parametrize("key", ALL)
def test_a_case_fits_the_context(key: Key) -> None:
    needed = {each.name: tokens_needed(each) for each in read_cases(key, file_of(key))}
    assert {name: size for name, size in needed.items() if size > CONTEXT} == {}


def tokens_needed(golden: Golden) -> int:
    """Return the tokens of a prompt and of the room that it must leave for the reply."""
    system, user = golden.question.wording(golden.given)
    kept = TEXT_TOKENS if golden.question.answer is str else MIN_REPLY_ROOM
    return tokens_of([SystemMessage(system), HumanMessage(user)]) + kept


@pytest.mark.parametrize("key", ALL)
def test_no_answer_is_right_whatever_is_asked(key: Key) -> None:
    """Neither a copied example nor one word for everything may pass for an understanding of the question."""
    found = read_cases(key, file_of(key))
    always = [each[each.index("{") :] for each in all_questions()[key].example_texts if "{" in each]
    answers: list[Any] = [objects(each)[0] for each in always] or ["I do not know that.", "Yes."]
    shares = [sum(is_right(each, answer) for each in found) / len(found) for answer in answers]
    assert max(shares) <= MOST_BY_CHANCE
    paths = {each.at for golden in found for each in golden.case.expect if each.one_of is not None}
    assert {path: share for path in paths if (share := constant(found, path)) > MOST_BY_CHANCE} == {}


def is_right(golden: Golden, answer: Any) -> bool:
    return all(each.holds(answer) for each in golden.case.expect)


def constant(found: Sequence[Golden], path: str) -> float:
    """Return the share of cases that one value at a path could be right in, whatever else they expect."""
    accepted = [
        {repr(value) for value in each.one_of}
        for golden in found
        for each in golden.case.expect
        if each.at == path and each.one_of is not None
    ]
    others = len(found) - len(accepted)  # cases that look at other things can tell as well
    most = max(sum(value in each for each in accepted) for value in set().union(*accepted))
    return most / len(found) if others < len(accepted) else 0.0


ANSWER = {
    "route": "store",
    "score": 70,
    "memories": [{"content": "Ada’s  aunt lives in Bonn.", "tags": []}, {"content": "A dog.", "tags": ["x"]}],
}


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        ({"at": "route", "one_of": ["store", "forget"]}, True),
        ({"at": "route", "one_of": ["discard"]}, False),
        ({"at": "memories[].content", "some": ["ada's aunt", "Paris|BONN"]}, True),
        ({"at": "memories[].content", "some": ["Bonn", "Paris"]}, False),
        ({"at": "memories[0].content", "some": ["dog"]}, False),
        ({"at": "memories[].content", "none": ["cat"]}, True),
        ({"at": "memories[].content", "none": ["cat", "a dog"]}, False),
        ({"at": "memories[5].content", "none": ["dog"]}, True),
        ({"at": "memories[5].content", "one_of": ["dog"]}, False),
        ({"at": "memories", "count": [2, None]}, True),
        ({"at": "memories[].tags", "count": [0, 0]}, False),
        ({"at": "memories[].content", "some": ["Bonn"], "none": ["dog"]}, False),
        ({"at": "memories", "some": ["Bonn"], "none": ["cat"], "count": [2, 2]}, True),
        ({"at": "memories", "some": ["Bonn"], "count": [3, 3]}, False),
        ({"at": "score", "between": [None, 70]}, True),
        ({"at": "score", "between": [71, None]}, False),
        ({"at": "", "some": ["bonn", '"route": "store"']}, True),
    ],
)
def test_a_property_looks_at_the_values_of_its_path(wanted: dict[str, Any], holds: bool) -> None:
    assert Property.model_validate(wanted).holds(ANSWER) is holds


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ({"kind": "odd"}, "case a: kind"),
        ({"given": {"massage": "m"}}, "Incoming has no field massage"),
        ({"given": {}}, "given: message: Field required"),
        ({"fill": {"time": 10, "noise": 2}}, "Incoming has no field noise"),
        ({"expect": [{"at": "rout", "one_of": ["store"]}]}, "an answer has no rout"),
        ({"expect": [{"at": "route", "one_of": ["keep"]}]}, "'keep' is never answered"),
        ({"expect": [{"at": "route", "count": [1, 1]}]}, "count is for lists"),
        ({"expect": [{"at": "route"}]}, "give one of one_of"),
        ({"expect": [{"at": "route", "equals": "store"}]}, "equals"),
    ],
)
def test_a_wrong_case_is_named_with_its_file(case: dict[str, Any], said: str, tmp_path: Path) -> None:
    right: dict[str, Any] = {"name": "a", "kind": "plain", "given": {"message": "m"}}
    right["expect"] = [{"at": "route", "one_of": ["store"]}]
    path = tmp_path / "route_message.yaml"
    path.write_text(yaml.safe_dump({"prompt": "route_message", "cases": [right | case]}))
    with pytest.raises(BadInput, match=re.escape(said)) as raised:
        check_cases(("chat", "route_message"), path)
    assert str(raised.value).startswith(str(path))


def test_neutral_text_surrounds_what_is_there() -> None:
    whole = filled({"message": "Ada is deaf.", "turns": ["a", "b"]}, {"message": 5000, "turns": 3000})
    before, _, after = whole["message"].partition("Ada is deaf.")
    assert 4900 < len(whole["message"]) < 5300
    assert abs(len(before) - len(after)) < 300
    at = whole["turns"].index("a")
    assert whole["turns"][at : at + 2] == ["a", "b"]
    assert at == len(whole["turns"]) - 2 - at
    assert len(set(whole["turns"])) == len(whole["turns"])
