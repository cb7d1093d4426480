"""`mneme discuss new-team`: make a team with memory templates, which a person reviews."""

import re
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import yaml

from mneme.cli.chat.responders import show_notice
from mneme.cli.discussion.discuss import agrees, task_of
from mneme.cli.options import Agents
from mneme.cli.show import emit, from_person, print_code, prints_json, say
from mneme.core.errors import BadInput, StorageFailure
from mneme.library.teams.team import Delegated, Document, RoundRobin, Team, load_team, read_team
from mneme.models.asking.asking import ask, resolve
from mneme.prompts.discussion.team_making import Assignment, design_team
from mneme.prompts.discussion.template_making import Place, make_template, plain_words

REVIEW_COMMENT = "# The memory templates below were made by a model. Read them and change what does not fit."
Values = dict[str, Any]
BASE_TEAM = "data_pipeline"
"""Team whose leading roles and writer are reused."""
EVALUATION_ROLE = "evaluation"
"""Role that judges the solution, by the new task's criteria."""
DRAFT_PARTS = ("fields", "item_fields", "ratings", "report")
LETTER = re.compile("[a-z]")


async def new_team(
    name: Annotated[str, "The team's name; the file is NAME.yaml."],
    task: Annotated[str, "A file with the task, or the task in words.", "--task"],
    roles: Annotated[list[str] | None, 'An expert: "Title: duties"; repeatable.', "--role"] = None,
    like: Annotated[str, "A team to copy document and facilitators from; else designed."] = "",
    out: Annotated[Path | None, "The file; default: NAME.yaml."] = None,
    agents: Agents = "auto",
    yes: Annotated[bool, "Use the templates without review.", "--yes -y"] = False,
) -> int:
    """Make a team: a model designs it for the task, with memory templates, and you review it."""
    roles = roles or []
    experts = [_expert(role) for role in roles]
    path = out or Path(f"{name}.yaml")
    if path.exists():  # before a model is asked; a person may have changed its templates
        raise BadInput(f"{path} exists already.", "Choose another name, or another file with --out FILE.")
    await show_notice(agents)
    if like:
        model = load_team(like, "--like")
        fields = {"name", "title", "description"}
        experts = experts or [model.role(each).model_dump(include=fields) for each in model.deciders]
    else:
        model, experts = await _designed(task_of(task), roles, experts, agents)
    made = []
    for each in experts:
        place = Place(
            role=each["title"],
            duties=each["description"],
            task=task_of(task),
            item=model.document.item,
            fields=", ".join(model.document.item_fields),
        )
        template = (await ask(make_template, place, agents, lane="user")).value.template
        made.append({**each, "memory": template})
    team = _team(name, made, model)
    text = f"{REVIEW_COMMENT}\n{yaml.safe_dump(team, sort_keys=False, allow_unicode=True, width=100)}"
    print_code(text, "yaml")
    asks = sys.stdin.isatty() and not prints_json()
    accepted = "Have you read the templates, and may they be used?"
    # a template decides what an agent can remember: nobody but a person says that a model's draft is fit
    reviewed = yes or (asks and await from_person(partial(agrees, accepted)))
    try:
        path.write_text(text.replace("reviewed: false", f"reviewed: {str(reviewed).lower()}", 1), "utf-8")
    except OSError as error:
        hint = "Choose another file with --out FILE."
        raise StorageFailure(f"Cannot write {path}: {error.strerror}.", hint) from error
    emit({"file": str(path), "reviewed": reviewed, "team": team})
    use = f"use it with `mneme discuss TASK.md --experts {path}`"
    change = "read it, change what does not fit, and set reviewed: true."
    say(f"{path}: {use if reviewed else change}")
    return 0 if reviewed else 1  # the team is refused until somebody has read it


async def _designed(
    task: str, roles: Sequence[str], given: list[Values], agents: str
) -> tuple[Team, list[Values]]:
    """Return a team whose speakers and document are designed for a task, and its experts."""
    if await resolve(agents) == "rules":
        raise BadInput(
            "To design a team for a task needs a model.",
            "Give one with --agents, or a team with --like TEAM.",
        )
    draft = (await ask(design_team, Assignment(task=task, experts=list(roles)), agents, lane="user")).value
    known = {each["name"] for each in given}  # a person's experts stay as they were named
    added = [_expert(f"{each.title}: {each.duties}") for each in draft.experts]
    experts = [*given, *(each for each in added if each["name"] not in known)]
    leading = load_team(BASE_TEAM)
    document = {
        "name": f"{draft.document}.json",
        "by": leading.document.by,
        "item": draft.item,
        **{part: {each.name: each.purpose for each in getattr(draft, part)} for part in DRAFT_PARTS},
    }
    judged = ", ".join(filter(None, map(str.strip, draft.criteria)))
    evaluates = f"Evaluates the solution as it stands for {judged}, and names what is missing."
    return leading.model_copy(
        update={
            "roles": [
                role.model_copy(update={"description": evaluates}) if role.name == EVALUATION_ROLE else role
                for role in leading.roles
            ],
            "document": Document.model_validate(document),
            "speakers": leading.speakers
            if draft.led
            else RoundRobin(kind="round_robin", order=leading.deciders),
        }
    ), experts


def _expert(role: str) -> Values:
    """Read an expert from "Title: duties"."""
    title, colon, duties = (part.strip() for part in role.partition(":"))
    if not (title and colon and duties):
        raise BadInput(
            f"--role {role}: give a title and duties.",
            'For example: --role "Data Engineer: ingestion, storage"',
        )
    named = "_".join(plain_words(title))
    if not LETTER.match(named):
        raise BadInput(f"--role {title}: a title needs a Latin letter, for the role's name.", "Add one.")
    return {"name": named, "title": title, "description": duties}


def _team(name: str, experts: list[Values], model: Team) -> Values:
    """Return the new team: the given experts, and the other team without its experts. Raises BadInput."""
    names, led = [each["name"] for each in experts], isinstance(model.speakers, Delegated)
    kept = [
        role
        for role in model.roles
        if role.name == model.document.by or (led and role.name not in model.deciders)
    ]
    speakers: Values = {"kind": "round_robin", "order": names}
    if led:
        speakers = {**model.speakers.model_dump(), "workers": names}
    others = [role.model_dump() for role in kept if role.name not in names]
    team = {
        **model.model_dump(exclude={"roles", "speakers"}),
        "name": name,
        "purpose": f"Made for a task; the result is {model.document.name}.",
        "reviewed": False,
        "roles": [*experts, *others],
        "speakers": speakers,
    }
    read_team({**team, "reviewed": True}, f"the new team {name}")  # for its errors, before it is written
    return team
