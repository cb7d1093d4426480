"""Speaker selection, and teams as files."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from mneme.core.errors import BadInput
from mneme.library.teams.document import schema
from mneme.library.teams.selection import Floor, sigma
from mneme.library.teams.team import load_team, read_team, shipped


class TestTeams:
    """Teams as data, and σ."""

    def test_algorithm_2_gives_each_worker_the_floor_and_ends_rounds(self) -> None:
        team, floor, order = load_team("data_pipeline"), Floor(), []
        for _ in range(20):
            floor = sigma(team, floor)
            order.append(floor.speaker)
        cda, kia, era = "conversation_delegation", "knowledge_integration", "evaluation"
        boa, dea, mle, ia = team.deciders
        assert order[:10] == [cda, boa, cda, dea, cda, mle, cda, ia, kia, era]
        assert order[10:] == order[:10]

    def test_round_robin_goes_round(self) -> None:
        team, floor, order = load_team("pddl"), Floor(), []
        for _ in range(4):
            floor = sigma(team, floor)
            order.append(floor.speaker)
        assert order == ["solver", "second_agent"] * 2

    @pytest.mark.parametrize("name", shipped())
    def test_shipped_teams_are_sound_and_their_schemas_are_valid(self, name: str) -> None:
        team = load_team(name)
        assert read_team(team.model_dump(mode="json")) == team
        assert schema(team.document)["required"]

    @pytest.mark.parametrize(
        ("change", "told"),
        [
            (
                lambda t: t["speakers"]["workers"].pop(),
                r"roles\.infrastructure_engineer: this role never speaks",
            ),
            (
                lambda t: t["roles"].append(deepcopy(t["roles"][0])),
                "roles: business_objectives is there twice",
            ),
            (
                lambda t: t["roles"][1].update(memory="notes"),
                r"roles\.data_engineer\.memory is a text, not an object",
            ),
            (lambda t: t["roles"][1].update(memory=["notes"]), r"roles\.data_engineer\.memory is a list"),
            (lambda t: t["roles"][1].update(memory={}), "has no slots"),
            (lambda t: t["roles"][1].update(memory={"a": {"b": 3}}), r"memory\.a\.b is a number"),
            (lambda t: t["roles"][1].update(memory={"A b": "x"}), "no name of a slot"),
            (
                lambda t: t["speakers"].update(delegate="nobody"),
                r"speakers\.delegate: there is no role nobody",
            ),
            (lambda t: t["speakers"]["workers"].append("evaluation"), ""),
            (lambda t: t.update(memory_tokens=5000), "memory_tokens"),
            (lambda t: t.update(surprise=1), "surprise"),
            (lambda t: t["roles"][0].pop("title"), r"roles\.0\.title"),
            (lambda t: t.update(reviewed=False), "reviewed"),
            (lambda t: t["document"].update(name="../x.json"), r"document\.name"),
            (lambda t: t["document"]["fields"].update({"Component 1": "x"}), "items are numbered so"),
            (lambda t: t["document"]["ratings"].update({"component 12": "x"}), "items are numbered so"),
            (lambda t: t["document"]["ratings"].update(Platform="x"), "Platform is a field already"),
            (lambda t: t["document"]["item_fields"].update(name="x"), r"document\.item_fields: name"),
            (lambda t: t["document"]["item_fields"].update({"a, b": "x"}), r"document\.item_fields: 'a, b'"),
            (
                lambda t: t["document"]["item_fields"].update(Pros="x"),
                r"document\.item_fields: pros is there",
            ),
            (lambda t: t["document"].update(item_fields=["pros"]), r"document\.item_fields"),
        ],
    )
    def test_a_team_that_cannot_work_is_refused_with_its_field(self, change: Any, told: str) -> None:
        team = load_team("data_pipeline").model_dump(mode="json")
        change(team)
        if not told:
            assert read_team(team).deciders[-1] == "evaluation"
            return
        with pytest.raises(BadInput, match=told) as refused:
            read_team(team)
        assert refused.value.hint

    def test_files_that_are_no_teams_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "list.yaml").write_text("- a\n- b\n")
        (tmp_path / "broken.yaml").write_text("a: [")
        for name in ("list.yaml", "broken.yaml", "absent.yaml", "no_such_team"):
            with pytest.raises(BadInput):
                load_team(str(tmp_path / name))
