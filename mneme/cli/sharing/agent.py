"""`mneme share agent …`: agents of one's own, known by name."""

from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import Field, create_model
from rich.markup import escape

from mneme.api.pools import Pools
from mneme.cli.derived import Fields
from mneme.cli.options import Agents, Team
from mneme.cli.show import console, emit, print_result, print_rows, say
from mneme.client.home import open_operations
from mneme.core.errors import BadInput, MnemeError
from mneme.core.yaml_files import read_yaml, text_of
from mneme.library.agents.agent import AGENTS, Agent, load_agent
from mneme.library.agents.own import AGENT_EXAMPLE, own_agents, own_text, save_agent

AGENT_FIELDS: dict[str, Any] = {
    name: (str, Field("", description=each.description)) for name, each in Agent.model_fields.items()
}
del AGENT_FIELDS["name"]  # it is the argument
Given = create_model("Given", **AGENT_FIELDS)


async def new(
    name: Annotated[str, "Its short name: small letters, digits and _."],
    fields: Annotated[dict[str, str], Fields(Given)],
    file: Annotated[Path | None, "A YAML file that describes it."] = None,
    replace: Annotated[bool, "In place of the one of this name."] = False,
    agents: Agents = "auto",
    team: Team = "local",
) -> None:
    """Make an agent of your own; with its name alone, write a file to fill in."""
    given = {field: value for field, value in fields.items() if value}
    if file is None and not given:
        _write_example(name)
        return
    agent = save_agent(*_described(name, file, given), replace=replace)
    emit(agent)
    console.print(f'{agent.name} is known now: mneme share ask --agent {agent.name} "…"')
    try:
        async with open_operations(Pools, team, reading=True) as shared:
            known = {each.rubric.name for each in await shared.rubrics()}
        if agent.domain not in known:
            from mneme.cli.sharing import rubric  # slow to import

            await rubric.design(agent.domain, {"team": team, "designer": agents}, [agent.task])
    except MnemeError as error:
        saved = f"{agent.name} is saved, but its domain {agent.domain} may lack a rubric: {error}"
        hint = f"Then draft one: mneme share rubric design {agent.domain}"
        raise MnemeError(saved, f"{error.hint} {hint}".strip()) from error


def _write_example(name: str) -> None:
    """Write a documented template to fill in."""
    path = Path(f"{name}.yaml")
    try:  # "x": what somebody has filled in is not overwritten
        with path.open("x", encoding="utf-8") as made:
            made.write(AGENT_EXAMPLE.format(name=name))
    except FileExistsError as there:
        hint = f"mneme share agent new {name} --file {path} saves the agent that it describes."
        raise BadInput(f"{path} is there already.", hint) from there
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}.", "Choose another folder.") from error
    say(f"Change {path}, then: mneme share agent new {name} --file {path}")


def _described(name: str, file: Path | None, given: dict[str, str]) -> tuple[str, str]:
    """Return the YAML text of an agent, and where it comes from."""
    if file is None:
        described = {"name": name, "domain": name, "title": name, "language": "en"} | given
        return yaml.safe_dump(described, allow_unicode=True, sort_keys=False), "The agent"
    if given:
        raise BadInput("Both a file and single fields are given.", "Give one of them.")
    text = text_of(file)
    if (named := read_yaml(text, Agent, str(file)).name) != name:
        raise BadInput(f"{file} describes {named}, not {name}.", "Give the same name in both.")
    return text, str(file)


def list_() -> None:
    """List the shipped agents and yours."""
    own = own_agents()
    agents = [*map(load_agent, AGENTS), *(read_yaml(own_text(name) or "", Agent, name) for name in own)]
    rows = [
        {"agent": each.name, "domain": each.domain, "whose": "yours" if each.name in own else "shipped"}
        for each in agents
    ]
    print_result(agents, lambda _: print_rows(rows))


def fields() -> None:
    """Show the fields of an agent's file, with an example."""
    for name, field in Agent.model_fields.items():
        needed = "" if field.is_required() else " (optional)"
        say(f"[bold]{name}[/]{needed}: {escape(field.description or '')}")
    say(escape("\n" + AGENT_EXAMPLE.format(name="haiku")))
