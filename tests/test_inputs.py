"""The inputs and contexts of all graphs, as Studio and the API show them."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mneme.environments.household.episode import GOAL_CATEGORIES
from mneme.environments.pddl import DOMAINS
from mneme.environments.sql_tuning.generating import SCHEMAS
from mneme.graphs import load
from mneme.library.teams.team import shipped

ROOT = Path(__file__).parent.parent
GRAPHS = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["graphs"]
Schema = Mapping[str, Any]


def fields(name: str) -> Iterator[tuple[str, Schema, bool]]:
    """Yield each field of a graph's input and context with its schema, and whether it is optional."""
    graph = load(name).graph
    for kind, schema in (
        ("input", graph.get_input_jsonschema()),
        ("context", graph.get_context_jsonschema()),
    ):
        for field, about in schema["properties"].items():
            yield f"{name}: {kind}: {field}", about, field not in schema.get("required", ())


@pytest.mark.parametrize("name", GRAPHS)
def test_every_field_says_what_it_is_with_an_example_and_a_default(name: str) -> None:
    described = list(fields(name))
    assert described
    for field, about, optional in described:
        assert about.get("description"), f"{field} has no description"
        assert about.get("examples"), f"{field} has no example"
        assert "default" in about or not optional, f"{field} has no default"
        if "enum" in about:
            assert {about.get("default", about["enum"][0]), *about["examples"]} <= {*about["enum"]}, field


def shown(name: str, kind: str, field: str) -> Any:
    return next(about for each, about, _ in fields(name) if each == f"{name}: {kind}: {field}")


def test_what_can_be_chosen_is_offered() -> None:
    assert shown("pddl_team", "input", "domain")["enum"] == [*DOMAINS]
    assert shown("compound_learning", "context", "schema_name")["enum"] == [*SCHEMAS]
    assert "story-1-discovery" in shown("compound_learning", "input", "example")["enum"]
    assert shown("intrinsic_memory", "input", "team")["anyOf"][0]["enum"] == shipped()
    for household in ("mita", "coela", "proagent", "mhp"):
        assert shown(household, "input", "category")["enum"] == ["", *GOAL_CATEGORIES]
