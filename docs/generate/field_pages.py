"""The fields of files that users write, from the models that read them."""

from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import BaseModel
from tables import ON_PAGE, fields

from mneme.environments.household.episode import Episode
from mneme.environments.household.generator import generate
from mneme.library.agents import agent, rubric
from mneme.library.agents.agent import Agent
from mneme.library.agents.rubric import Rubric
from mneme.library.teams import team
from mneme.library.teams.team import Delegated, Team

Examples = Mapping[str, Mapping[str, Any]]
"""The name of a model to an object of it, from which examples of fields are taken."""


def teams() -> str:
    """Write the fields of a team's file."""
    text = (team.TEAMS_FOLDER / "design_review.yaml").read_text(encoding="utf-8")
    given = yaml.safe_load(text)
    delegated = yaml.safe_load((team.TEAMS_FOLDER / "data_pipeline.yaml").read_text(encoding="utf-8"))[
        "speakers"
    ]
    examples = {
        "Team": given,
        "Role": given["roles"][0],
        "Document": given["document"],
        given["speakers"]["kind"].title().replace("_", ""): given["speakers"],
        Delegated.__name__: delegated,
    }
    return (
        "The YAML (or JSON) file of `mneme discuss --experts FILE`; [Make a team](../how-to/own-team.md) "
        "shows how to get one. A field that is not listed is refused.\n\n"
        f"{_models(Team, examples)}{_file('design_review.yaml', text)}"
    )


def agents() -> str:
    """Write the fields of an agent's and a rubric's file."""
    files = agent.AGENTS_FOLDER / "limerick.yaml", rubric.RUBRICS_FOLDER / "plan_generation.yaml"
    one, other = (file.read_text(encoding="utf-8") for file in files)
    scores = yaml.safe_load(other)
    return (
        "The YAML files of `mneme share ask --agent FILE` and `mneme share rubric freeze FILE`; [Add an "
        "agent that shares a pool](../how-to/own-pool-agent.md) shows both in use. A field not listed "
        "is refused.\n\n"
        f"{_models(Agent, {'Agent': yaml.safe_load(one)})}{_file('limerick.yaml', one)}"
        f"{_models(Rubric, {'Rubric': scores, 'Criterion': scores['criteria'][0]})}"
        f"{_file('plan_generation.yaml', other)}"
    )


def worlds() -> str:
    """Write the fields of an episode of the household, and of a task of `mneme learn`."""
    from mneme.cli.learning.learn import Given  # noqa: PLC0415  (it loads the whole team)
    from mneme.nodes.learning.worlds import STORY  # noqa: PLC0415

    tasks = [
        {"id": each.id, "task": each.description, "schema": each.schema_name, "query": each.query}
        for each in STORY.values()
    ]
    text = yaml.safe_dump(tasks, sort_keys=False, width=100)
    return (
        "[Make a world of your own](../how-to/own-world.md) shows them in use.\n\n"
        "## An episode of the household\n\nThe JSON file of `mneme household run --episode FILE`. Lengths "
        f"are in metres, y is up.\n\n{_models(Episode, _of_an_episode())}"
        "## A task of `mneme learn`\n\nThe YAML list of `mneme learn --file FILE`; a task may also be a text "
        f"alone.\n\n{_models(Given, {'Given': tasks[0]})}{_file('story.yaml', text)}"
    )


def _of_an_episode() -> Examples:
    episode = generate(1, "Prepare Tea").model_dump(mode="json")
    first = {name: episode[name][:1] for name in ("things", "doors", "open", "starts", "goals")}
    first["places"] = dict(list(episode["places"].items())[:2])
    return {"Episode": episode | first, "Goal": episode["goals"][0], "Start": episode["starts"][0]}


def _models(kind: type[BaseModel], examples: Examples) -> str:
    """Write a table for a model and one for each model within it."""
    schema = kind.model_json_schema()
    parts = {name: {**part, ON_PAGE: True} for name, part in schema.pop("$defs", {}).items()}
    written = [_model(schema, parts, examples)]
    written += [_model(each, parts, examples) for each in parts.values() if "properties" in each]
    return "".join(written)


def _model(schema: Mapping[str, Any], parts: Mapping[str, Any], examples: Examples) -> str:
    name = schema["title"]
    listed = fields({**schema, "$defs": parts}, examples.get(name), of=name)
    return f"### {name}\n\n{schema.get('description', '')}\n\n{listed}"


def _file(name: str, text: str) -> str:
    return f"A whole file, `{name}`:\n\n```yaml\n{text.strip()}\n```\n\n"
