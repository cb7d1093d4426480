"""`mneme discuss new-team`: memory templates from roles and a task, reviewed before they are used."""

import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml
from rich.syntax import Syntax

from mneme.discuss import task_of
from mneme.errors import BadInput, StorageFailure
from mneme.show import console, print_json
from mneme.talk import show_notice
from models.asking import ask
from prompts.template_making import Place, make_template, named_after
from teams.team import Delegated, Team, load_team, read_team

REVIEW = (
    "# The memory templates below were made from the roles and a task: read them, change what does not fit."
)
Values = dict[str, Any]
NAMED = re.compile("[a-z]")


async def new_team(
    name: str,
    task: str,
    roles: Sequence[str],
    like: str,
    out: Path | None,
    agents: str,
    yes: bool,
    as_json: bool,
) -> int:
    """Make a team of experts around the facilitators of another; return 1 where it was not accepted."""
    model = load_team(like)
    experts = [_expert(role) for role in roles] or _experts_of(model)
    path = out or Path(f"{name}.yaml")
    if path.exists():
        raise BadInput(f"{path} exists already.", "Choose another name, or another file with --out.")
    await show_notice(agents)
    made = [{**each, "memory": await _template(each, task_of(task), model, agents)} for each in experts]
    team = _team(name, made, model)
    text = f"{REVIEW}\n{yaml.safe_dump(team, sort_keys=False, allow_unicode=True, width=100)}"
    if not as_json:
        console.print(Syntax(text, "yaml", word_wrap=True))
    reviewed = yes or await asyncio.to_thread(_is_accepted, as_json)
    _write(path, text.replace("reviewed: false", f"reviewed: {str(reviewed).lower()}", 1))
    _say(path, team, reviewed, as_json)
    return 0 if reviewed else 1


def _expert(role: str) -> Values:
    """Read "Title: what it is for"."""
    title, colon, duties = (part.strip() for part in role.partition(":"))
    if not (title and colon and duties):
        raise BadInput(
            f"--role {role}: say who it is and what for.", '--role "Data Engineer: ingestion, storage"'
        )
    named = named_after(title)
    if not NAMED.match(named):
        raise BadInput(f"--role {title}: its title has no Latin letter to begin a name with.", "Add one.")
    return {"name": named, "title": title, "description": duties}


def _experts_of(team: Team) -> list[Values]:
    return [team.role(name).model_dump(include={"name", "title", "description"}) for name in team.deciders]


async def _template(expert: Values, task: str, model: Team, agents: str) -> Values:
    place = Place(
        role=expert["title"],
        duties=expert["description"],
        task=task,
        item=model.document.item,
        fields=", ".join(model.document.item_fields),
    )
    return (await ask(make_template, place, agents, lane="user")).value.template


def _team(name: str, experts: list[Values], model: Team) -> Values:
    """Return the new team: the experts, and of the model team all but its own experts. Raises BadInput."""
    kept = [role for role in model.roles if role.name not in model.deciders or role.name == model.document.by]
    names = [each["name"] for each in experts]
    speakers: Values = {"kind": "round_robin", "order": names}
    if isinstance(model.speakers, Delegated):
        speakers = {**model.speakers.model_dump(), "workers": names}
    others = [role.model_dump() for role in kept if role.name not in names]
    team = {
        **model.model_dump(exclude={"roles", "speakers"}),
        "name": name,
        "purpose": f"Made for a task; facilitators and document as in {model.name}.",
        "reviewed": False,
        "roles": [*experts, *others],
        "speakers": speakers,
    }
    read_team({**team, "reviewed": True}, f"the new team {name}")
    return team


def _is_accepted(as_json: bool) -> bool:
    if as_json or not sys.stdin.isatty():
        return False
    console.print("Have you read the templates, and shall they be used so? [y/N]> ", end="", markup=False)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageFailure(
            f"Cannot write {path}: {error.strerror}.", "Give another file with --out."
        ) from error


def _say(path: Path, team: Values, reviewed: bool, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(path), "reviewed": reviewed, "team": team})
    elif reviewed:
        console.print(f"{path}: use it with mneme discuss TASK.md --team {path}", soft_wrap=True)
    else:
        console.print(f"{path}: read it, change what does not fit, and set reviewed: true.", soft_wrap=True)
