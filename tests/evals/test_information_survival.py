"""Information survival: fair puzzles, facts that the program finds itself, answers that only quote."""

from pathlib import Path

import pytest

from mneme.core.errors import BadAnswer, BadInput
from mneme.evals.discussion import information_survival
from mneme.evals.discussion.from_context import FromContext, Shown, answer_from_context
from mneme.evals.discussion.hidden_profiles import hidden_profile
from mneme.evals.discussion.information_survival import Options
from mneme.evals.discussion.puzzle import Fact, Puzzle
from mneme.evals.discussion.storehouse import storehouse
from mneme.evals.report import Row
from mneme.models.asking.asking import ask, script


@pytest.mark.parametrize("draw", [hidden_profile, storehouse])
@pytest.mark.parametrize(("seed", "roles"), [(1, 2), (2, 4), (3, 8)])
def test_a_fact_is_said_in_one_turn_alone_and_the_task_tells_none(
    draw: object, seed: int, roles: int
) -> None:
    puzzle: Puzzle = draw(seed, roles, 40)  # type: ignore[operator]
    assert [turn.number for turn in puzzle.turns] == list(range(1, 41))
    assert puzzle == draw(seed, roles, 40), "drawn by the seed alone"  # type: ignore[operator]
    for fact in puzzle.facts:
        said = [turn for turn in puzzle.turns if fact.stands_in(str(turn))]
        assert [(turn.number, turn.agent) for turn in said] == [(fact.turn, fact.owner)]
        assert not fact.stands_in(puzzle.task.text)
    assert {fact.owner for fact in puzzle.facts} == set(puzzle.roles)


def test_a_fact_is_there_only_where_one_sentence_holds_it_whole() -> None:
    fact = Fact("a", 1, ("Mill", "413"))
    assert fact.stands_in('"The quay of the MILL bears 413 kilograms.",')
    assert not fact.stands_in("The Mill is old. Its quay bears 413 kilograms.")
    assert not fact.stands_in("The Mill's quay bears 4130 kilograms; the Millpond has 413 ducks.")


async def test_an_answer_must_quote_what_is_shown() -> None:
    given = Shown(task="t", turns="[1] a: Shed 3 holds the bell.", question="?", options=["shed 3", "shed 4"])
    made_up = FromContext(quotes=["Shed 4 holds the bell."], reason="So.", option=1)
    script("inventor", {"answer_from_context": [made_up, made_up.model_copy(update={"quotes": []})]})
    with pytest.raises(BadAnswer, match="does not stand in the memory or the turns"):
        await ask(answer_from_context, given, "scripted:inventor")
    with pytest.raises(BadAnswer, match="rests on no quote"):
        await ask(answer_from_context, given, "scripted:inventor")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("survival")


def looks(rows: list[Row], turn: int, arm: str) -> list[Row]:
    return [look for row in rows for look in row["looks"] if (look["turn"], look["arm"]) == (turn, arm)]


async def test_what_survives_is_measured_at_equal_tokens_and_resumes(out: Path) -> None:
    options = Options(
        agents=["rules"], roles=[3], turns=[9, 40], seeds=[1], context_tokens=600, memory_tokens=200, out=out
    )
    report = await information_survival.run(options)
    assert report.answered_by == "rules" and report.plots[0].exists()
    for row in report.rows:
        bounded = [look for look in row["looks"] if look["arm"] != "whole conversation"]
        assert all(look["tokens"] <= 600 for look in bounded)
        answers = [answer for look in row["looks"] for answer in look["answers"]]
        assert all(answer["there"] for answer in answers if answer["verdict"] == "right"), (
            "rules guess nothing"
        )
    for turn in (9, 40):
        assert all(all(look["facts"]) for look in looks(report.rows, turn, "whole conversation"))
    assert not any(any(look["facts"]) for look in looks(report.rows, 40, "newest turns"))
    (own,) = looks(report.rows[:1], 40, "intrinsic")
    (other,) = looks(report.rows[:1], 40, "another agent's")
    assert own["own"] > 0 == other["own"], "what an agent alone knew is in its own memory, and in no other"
    again = await information_survival.run(options)
    assert [row["at"] for row in again.rows] == [row["at"] for row in report.rows]


async def test_a_grid_that_no_puzzle_can_be_drawn_for_is_refused(out: Path) -> None:
    with pytest.raises(BadInput, match="2 to 8 agents"):
        await information_survival.run(Options(agents=["rules"], roles=[9], out=out))
    with pytest.raises(BadInput, match="until turn 12"):
        await information_survival.run(Options(agents=["rules"], turns=[8], out=out))
