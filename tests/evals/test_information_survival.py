"""Information survival: fair storehouses, facts that the program finds itself, and a run that goes on."""

from pathlib import Path

import pytest

from mneme.core.errors import BadInput
from mneme.evals.discussion import information_survival
from mneme.evals.discussion.information_survival import ARMS, Options
from mneme.evals.discussion.storehouse import Fact, storehouse
from mneme.evals.report import Row


@pytest.mark.parametrize(("seed", "roles"), [(1, 2), (2, 4), (3, 8)])
def test_a_fact_is_said_in_one_turn_alone_and_the_task_tells_none(seed: int, roles: int) -> None:
    drawn = storehouse(seed, roles, 40)
    assert [turn.number for turn in drawn.turns] == list(range(1, 41))
    assert drawn == storehouse(seed, roles, 40), "drawn by the seed alone"
    for fact in drawn.facts:
        said = [turn for turn in drawn.turns if fact.stands_in(str(turn))]
        assert [(turn.number, turn.agent) for turn in said] == [(fact.turn, fact.owner)]
        assert not fact.stands_in(drawn.task.text)
    assert {fact.owner for fact in drawn.facts} == set(drawn.roles)


def test_a_fact_is_there_only_where_one_sentence_holds_it_whole() -> None:
    fact = Fact("a", 1, ("Mill", "413"))
    assert fact.stands_in('"The quay of the MILL bears 413 kilograms.",')
    assert not fact.stands_in("The Mill is old. Its quay bears 413 kilograms.")
    assert not fact.stands_in("The Mill's quay bears 4130 kilograms; the Millpond has 413 ducks.")


def looks(rows: list[Row], turn: int, arm: str) -> list[Row]:
    return [look for row in rows for look in row["looks"] if (look["turn"], look["arm"]) == (turn, arm)]


async def test_what_survives_is_measured_at_equal_tokens_and_resumes(tmp_path: Path) -> None:
    options = Options(
        agents="rules",
        roles=3,
        turns=[9, 40],
        seeds=[1],
        context_tokens=600,
        memory_tokens=200,
        out=tmp_path,
    )
    report = await information_survival.run(options)
    assert report.answered_by == "rules" and len(report.tables[0].rows) == 2 * len(ARMS)
    bounded = [look for look in report.rows[0]["looks"] if look["arm"] != "whole conversation"]
    assert all(look["tokens"] <= 600 for look in bounded)
    for turn in (9, 40):
        assert [look["facts"] for look in looks(report.rows, turn, "whole conversation")] == [1.0]
    assert [look["facts"] for look in looks(report.rows, 40, "newest turns")] == [0.0]
    (own,), (other,) = (looks(report.rows, 40, arm) for arm in ("intrinsic", "another agent's"))
    assert own["own"] > 0 == other["own"], "what an agent alone knew is in its own memory, and in no other"
    again = await information_survival.run(options)
    assert [row["at"] for row in again.rows] == [row["at"] for row in report.rows]


async def test_a_look_before_all_facts_are_said_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="until turn 12"):
        await information_survival.run(Options(agents="rules", turns=[8], out=tmp_path))
