"""The PDDL worlds: what they read, say, allow and score, against unified-planning's own simulator."""

import json
import os
import re
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unified_planning.engines.sequential_simulator import UPSequentialSimulator
from unified_planning.io import PDDLReader
from unified_planning.shortcuts import get_environment

from mneme.core.errors import BadInput
from mneme.environments.pddl import (
    DOMAINS,
    MAX_STEPS,
    Domain,
    PddlWorld,
    Problem,
    generate,
    generate_suite,
    load,
    load_folder,
)
from mneme.environments.pddl.wording import ILLEGAL, SATISFIED, UNPARSED

Action = tuple[str, ...]
OWN = Path(__file__).resolve().parents[2] / "environments" / "pddl" / "domains"
ASKING = ["check valid actions", "look around"]
TWO_BALLS = """
(define (problem two) (:domain gripper-strips) (:objects rooma roomb ball1 ball2 left right)
  (:init (room rooma) (room roomb) (ball ball1) (ball ball2) (gripper left) (gripper right)
         (at-robby rooma) (at ball1 rooma) (at ball2 rooma) (free left) (free right))
  (:goal (and (at ball1 roomb) (at ball2 roomb))))
"""


def agent_board() -> Path:
    """Return the folder of AgentBoard's problems, or skip."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("MNEME_DATA", beside))
    for place in (folder / "pddl", folder):
        if (place / "gripper" / "domain.pddl").is_file():
            return place
    pytest.skip("neither MNEME_DATA nor ../shared/data holds AgentBoard's PDDL problems")


@pytest.fixture
def two_balls(tmp_path: Path) -> Problem:
    (tmp_path / "two.pddl").write_text(TWO_BALLS)
    return load(OWN / "gripper.pddl", tmp_path / "two.pddl")


def test_plays_a_problem_to_its_end(two_balls: Problem) -> None:
    world = PddlWorld(two_balls)
    assert world.problem.goal == (
        "The goal is to satisfy the following conditions: Ball1 is at roomb. Ball2 is at roomb."
    )
    assert "Ball1 is at rooma. Ball2 is a ball." in world.first_observation
    plan = [
        "pick ball1 rooma left",
        "pick ball2 rooma right",
        "move rooma roomb",
        "drop ball1 roomb left",
        "drop ball2 roomb right",
    ]
    seen = [world.step(action) for action in plan]
    assert [each.progress for each in seen] == [0, 0, 0, 0.5, 1]
    assert [each.success for each in seen] == [False] * 4 + [True]
    assert all(each.valid and each.parsed for each in seen)
    assert "Ball2 is carried by right." in seen[1].text
    assert seen[-1].text.endswith(SATISFIED)
    assert seen[-1].steps == 5


def test_progress_is_never_lost(two_balls: Problem) -> None:
    world = PddlWorld(two_balls)
    for action in ("pick ball1 rooma left", "move rooma roomb", "drop ball1 roomb left"):
        world.step(action)
    taken_back = world.step("pick ball1 roomb left")
    assert taken_back.progress == 0.5
    assert not taken_back.success


def test_illegal_and_unparsed_actions_leave_the_world_as_it_is(two_balls: Problem) -> None:
    world = PddlWorld(two_balls)
    before = world.state()
    illegal = [
        world.step(text) for text in ("drop ball1 rooma left", "pick rooma ball1 left", "move rooma rooma")
    ]
    unparsed = [world.step(text) for text in ("", "fly to roomb", "pick ball1 left", "pick ball9 rooma left")]
    assert {each.text for each in illegal} == {ILLEGAL}
    assert {each.text for each in unparsed} == {UNPARSED}
    assert [each.parsed for each in illegal + unparsed] == [True] * 3 + [False] * 4
    assert not any(each.valid for each in illegal + unparsed)
    assert world.state() == before | {"steps": 7}


def test_asking_costs_a_step_and_is_valid_and_thinking_is_not(two_balls: Problem) -> None:
    world = PddlWorld(two_balls)
    listed = world.step("Check valid actions.")
    assert listed.text == (
        "Valid actions: move rooma roomb; pick ball1 rooma left; pick ball1 rooma right; "
        "pick ball2 rooma left; pick ball2 rooma right; check valid actions; look around"
    )
    assert world.step("look around").text == world.first_observation
    thought = world.step("think: I should check the left gripper first")
    assert (listed.valid, thought.valid, thought.steps, world.valid_steps) == (True, False, 3, 2)


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("Pick up ball1 at rooma with arm left.", ("pick", "ball1", "rooma", "left")),
        ("Action: (pick ball1, rooma, left)", ("pick", "ball1", "rooma", "left")),
        ("MOVE rooma ROOMB now", ("move", "rooma", "roomb")),
        ("left ball1 rooma drop", ("drop", "left", "ball1", "rooma")),
        ("picking ball1 rooma left", None),
    ],
)
def test_reads_an_action_from_free_words(
    two_balls: Problem, text: str, action: tuple[str, ...] | None
) -> None:
    assert PddlWorld(two_balls).parse(text) == action


def test_a_hand_may_stand_before_the_verb() -> None:
    world = PddlWorld(generate("barman", 1))
    seen = world.step("left grasp shot1.")
    assert seen.valid
    assert seen.text == "Left hand holds shot1."


@pytest.mark.parametrize("domain", ["barman", "tyreworld"])
def test_shows_only_what_is_new_where_agent_board_does(domain: Domain) -> None:
    world = PddlWorld(generate(domain, 3))
    first = {"barman": "grasp left shot1", "tyreworld": "open boot"}[domain]
    seen = world.step(first).text
    assert seen in {"Left hand holds shot1.", "Boot is open."}
    assert seen in world.step("look around").text
    assert len(world.first_observation) > 10 * len(seen)


def test_the_manual_speaks_the_observations_words() -> None:
    barman = generate("barman", 2).manual
    assert (
        "- leave <hand> <container>\n  where: <hand> is a hand; <container> is a shaker or a shot" in barman
    )
    assert "  needs: <hand> hand holds <container>.\n" in barman
    assert "  makes untrue: <hand> hand holds <container>." in barman
    assert "left, right (hand)" in barman
    blocks = generate("blockworld", 2, 3).manual
    assert blocks.startswith("Objects: b1, b2, b3\nActions:\n- pickup <block>\n  needs: The arm is empty.")
    assert "where" not in blocks


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_two_literals_of_a_domain_read_alike(domain: Domain) -> None:
    world = PddlWorld(generate(domain, 5))
    random = Random(5)
    seen: set[str] = set()
    for _ in range(200):
        world.step(random.choice(world.valid_actions()))
        said = world.step("look around").text.split(". ")
        assert len(said) == len(world.state()["literals"]) == len(set(said))
        seen.update(said)
    assert len(seen) > 10


def test_goes_on_from_a_state_that_went_through_json() -> None:
    for domain in DOMAINS:
        whole, random = PddlWorld(generate(domain, 7)), Random(7)
        for _ in range(25):
            kept = json.loads(json.dumps(whole.state()))
            again = PddlWorld(Problem.model_validate_json(whole.problem.model_dump_json()), kept)
            action = random.choice(whole.valid_actions())
            assert again.step(action) == whole.step(action)
            assert again.state() == whole.state()


WALK = 40


def walk(problem: Problem, seed: int) -> None:
    """Compare a random walk with unified-planning's simulator: what may be done, and what then holds."""
    reader = PDDLReader()
    parsed = reader.parse_problem_string(problem.domain_pddl.lower(), problem.problem_pddl.lower())
    get_environment().credits_stream = None
    theirs, ours, random = UPSequentialSimulator(parsed), PddlWorld(problem), Random(seed)
    state = theirs.get_initial_state()
    for _ in range(WALK):
        listed = ours.valid_actions()[:-2]
        acting = {
            " ".join([action.name, *map(str, objects)]): theirs.apply_unsafe(state, action, objects)
            for action, objects in theirs.get_applicable_actions(state)
        }
        held = literals(parsed, state)
        changing = {text: after for text, after in acting.items() if literals(parsed, after) != held}
        assert listed == sorted(changing)
        if not listed:
            return
        chosen = random.choice(listed)
        seen, state = ours.step(chosen), changing[chosen]
        assert seen.valid
        assert {tuple(literal) for literal in ours.state()["literals"]} == literals(parsed, state)
        assert seen.success == theirs.is_goal(state)


def literals(parsed: Any, state: Any) -> set[tuple[str, ...]]:
    """Return what holds in a state of unified-planning's."""
    return {
        (fluent.fluent().name, *map(str, fluent.args))
        for fluent in parsed.initial_values
        if state.get_value(fluent).is_true()
    }


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("seed", [1, 2])
def test_walks_as_unified_plannings_simulator(domain: Domain, seed: int) -> None:
    walk(generate(domain, seed, {"gripper": 4, "blockworld": 5, "barman": 1, "tyreworld": 1}[domain]), seed)


@pytest.mark.parametrize("place", ["gripper/prob01", "blockworld/problem8", "barman/p01", "tyreworld/p01"])
def test_walks_agent_boards_problems_as_unified_plannings_simulator(place: str) -> None:
    file = agent_board() / f"{place}.pddl"
    walk(load(file.parent / "domain.pddl", file), 3)


def test_loads_agent_boards_folder() -> None:
    problems = load_folder(agent_board())
    names = [problem.name for problem in problems if problem.domain == "gripper"]
    assert {problem.domain for problem in problems} == set(DOMAINS)
    assert names == sorted(names)
    for problem in problems:
        world = PddlWorld(problem)
        assert world.progress == 0
        assert world.valid_actions()[-2:] == ASKING


def test_reads_agent_boards_own_layout_and_its_tyreworld(tmp_path: Path) -> None:
    """As published, it declares constants late and twice, and types a predicate the wrong way round."""
    problem = generate("tyreworld", 1, 1)
    constants = "(:constants wrench jack pump - tool)"
    domain = problem.domain_pddl.replace(constants, "")
    domain = domain.replace("(in ?o - obj ?c - container)", "(in ?c - container ?o - obj)")
    domain = domain.replace("  (:action open", f"  {constants}\n  (:action open")
    (tmp_path / "tyreworld.pddl").write_text(domain)
    (tmp_path / "tyreworld").mkdir()
    for number in (10, 2):
        text = problem.problem_pddl.replace("(:objects", "(:objects wrench jack pump - tool")
        (tmp_path / "tyreworld" / f"p{number}.pddl").write_text(text)
    loaded = load_folder(tmp_path)
    assert [each.name for each in loaded] == ["tyreworld/p2", "tyreworld/p10"]
    assert PddlWorld(loaded[0]).state() == PddlWorld(problem).state()
    assert PddlWorld(loaded[0]).step("open boot").valid


def test_an_unknown_domain_is_said_in_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "domain.pddl").write_text(
        "(define (domain lamps) (:predicates (lit ?lamp) (dark ?lamp))"
        " (:action switch :parameters (?lamp) :precondition (dark ?lamp)"
        " :effect (and (lit ?lamp) (not (dark ?lamp)))))"
    )
    (tmp_path / "p.pddl").write_text(
        "(define (problem p) (:domain lamps) (:objects Desk hall) (:init (dark Desk)) (:goal (lit DESK)))"
    )
    (problem,) = load_folder(tmp_path)
    assert problem.name == "lamps/p"
    assert PddlWorld(problem).step("switch desk").text == "Lit desk. The goal is satisfied."


WRONG = {
    "truncated": ("domain", r"\(:action stack.*", "", r"Expected '\)'"),
    "empty": ("domain", r".*", "", r"no \(define \(domain NAME\)"),
    "a variable of no parameter": ("domain", r"\(clear \?block\)\)\n", "(clear ?bl))\n", "bl"),
    "an undeclared predicate": ("domain", r"\(arm-empty\) \(on-table", "(arm-idle) (on-table", "arm-idle"),
    "a negative condition": (
        "domain",
        r"\(and (\(holding \?block\))\)",
        r"(not \1)",
        "positive literal",
    ),
    "no goal": ("problem", r"\(:goal.*", ")", "goal"),
    "an unknown object": ("problem", r"\(arm-empty\)", "(clear b9)", "b9"),
    "an unknown predicate": ("problem", r"\(arm-empty\)", "(arm-idle)", "arm-idle"),
    "too many arguments": ("problem", r"\(arm-empty\)", "(arm-empty b1)", "arity"),
    "an object twice": ("problem", r"b1 b2", "b1 b1 b2", "b1 already defined"),
    "a negative goal": ("problem", r"\(:goal .*", "(:goal (not (on b1 b2))))", "positive literal"),
    "a choice as goal": ("problem", r"\(:goal \(and", "(:goal (or", "positive literal"),
    "too deep a goal": ("problem", r"\(:goal ", "(:goal " + "(and " * 3000, "recursion|Expected"),
    "another domain": ("problem", r"blocksworld-4ops", "barman", "is of the domain barman"),
    "not PDDL": ("problem", r".*", "Once upon a time", r"names no \(:domain NAME\)"),
}


@cache
def blocks() -> Problem:
    return generate("blockworld", 1, 3)


@pytest.mark.parametrize("case", WRONG)
def test_a_bad_file_is_named_with_the_place(tmp_path: Path, case: str) -> None:
    wrong, part, put, told = WRONG[case]
    files = {"domain": blocks().domain_pddl, "problem": blocks().problem_pddl}
    files[wrong] = re.sub(part, put, files[wrong], count=1, flags=re.DOTALL)
    assert files != {"domain": blocks().domain_pddl, "problem": blocks().problem_pddl}
    for name, text in files.items():
        (tmp_path / f"{name}.pddl").write_text(text)
    with pytest.raises(BadInput, match=told) as failed:
        load_folder(tmp_path)
    assert str(failed.value).startswith(f"{tmp_path / wrong}.pddl: ")
    assert failed.value.hint


def test_a_folder_without_problems_or_a_domain_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is not a folder"):
        load_folder(tmp_path / "absent")
    with pytest.raises(BadInput, match="has no PDDL problems"):
        load_folder(tmp_path)
    (tmp_path / "alone.pddl").write_text(blocks().problem_pddl)
    with pytest.raises(BadInput, match=r"alone.pddl has no domain"):
        load_folder(tmp_path)
    with pytest.raises(BadInput, match=r"Cannot read .*absent\.pddl"):
        load(OWN / "absent.pddl", tmp_path / "alone.pddl")


@pytest.mark.long
def test_a_suite_has_agent_boards_shares_and_repeats_by_seed() -> None:
    suite = generate_suite(12, 4)
    assert suite == generate_suite(12, 4)
    assert suite != generate_suite(12, 5)
    assert [sum(problem.domain == domain for problem in suite) for domain in DOMAINS] == [4, 2, 4, 2]
    assert len({problem.name for problem in suite}) == 12
    assert all(PddlWorld(problem).progress == 0 for problem in suite)


@pytest.mark.parametrize("domain", DOMAINS)
def test_sizes_are_as_asked_and_checked(domain: Domain) -> None:
    large = generate(domain, 1, 9)
    assert "9" in large.name
    with pytest.raises(BadInput, match="size 0"):
        generate(domain, 1, 0)


def test_an_unknown_domain_is_not_generated() -> None:
    with pytest.raises(BadInput, match="no domain 'chess'"):
        generate("chess", 1)  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60))
def test_any_text_costs_one_step_and_breaks_nothing(text: str) -> None:
    world = PddlWorld(blocks())
    assert world.step(text).steps == 1
    assert MAX_STEPS == 30
