"""A team as data, read from YAML or JSON and checked, with the field named, before a model is asked.

Imports of ours: the errors, and what a memory template may look like (`prompts/discussion`).
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError

from mneme.core.errors import BadInput, first_fault
from mneme.core.yaml_files import text_of
from mneme.prompts.discussion.memory_template import size, wrong_in

TEAMS_FOLDER = Path(__file__).parent
NAME_PATTERN = r"^[a-z][a-z0-9_]{0,47}$"
CHARACTERS_PER_TOKEN = 3  # at least: a memory is bounded in characters so that it keeps its limit of tokens
PART_NAME = re.compile(r"[^\W\d_][\w -]{0,59}")
"""The name of a part of a document."""
SKELETON = 0.5
"""Share of a memory's bound that its empty template may take."""


class Strict(BaseModel, extra="forbid", frozen=True):
    """A part of a team's file; an unknown field is refused, since it may be misspelt."""


class Role(Strict):
    """R_n: who an agent is, and the template of its memory."""

    name: str = Field(pattern=NAME_PATTERN, description="Short name, by which other fields mean it.")
    title: str = Field(min_length=1, max_length=80, description="Name for people.")
    description: str = Field(min_length=1, max_length=4000, description="Expertise and objectives.")
    model: str = Field("", description="Who answers for it; empty: as for the whole team.")
    memory: Any = Field(description="MT_n: slots, nested; each says what it is for.")

    @property
    def specification(self) -> str:
        """Return R_n in words: who it is, and its expertise and objectives."""
        return f"{self.title}: {self.description}"


class RoundRobin(Strict):
    """σ that goes round: each speaks in turn, until all have accepted."""

    kind: Literal["round_robin"] = Field(description="Each speaks in turn.")
    order: list[str] = Field(min_length=1, description="The roles that speak, in this order.")


class Delegated(Strict):
    """σ of algorithm 2: the delegate gives the floor to each worker; then integration and evaluation."""

    kind: Literal["delegated"] = Field(description="One role gives the floor to the others.")
    workers: list[str] = Field(min_length=1, description="The roles that contribute, and must accept.")
    delegate: str = Field(description="The role that gives the floor to each worker.")
    integrator: str = Field(description="The role that puts together what a round has brought.")
    evaluator: str = Field(description="The role that judges what was put together.")


class Document(Strict):
    """The team's product: a JSON file of some fields, numbered items and ratings; and prose."""

    # No path: the file is written into a folder that the user names.
    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,60}\.json$", description="The name of its file.")
    by: str = Field(description="The role that writes it.")
    fields: dict[str, str] = Field({}, description="Single fields, each with what it is for.")
    item: str = Field(min_length=1, max_length=40, description="What an item is called, e.g. Component.")
    least: int = Field(1, ge=0, description="How many items a document must have.")
    item_fields: dict[str, str] = Field(min_length=1, description="An item's fields beside its name.")
    ratings: dict[str, str] = Field({}, description="Numbers from 1 to 10, each with what it rates.")
    report: dict[str, str] = Field({}, description="Prose for the report, each with what it is about.")


class Team(Strict):
    """N agents, who speaks when, and the bounds of their discussion."""

    name: str = Field(pattern=NAME_PATTERN, description="Short name of the team.")
    purpose: str = Field("", description="What the team is for; for people.")
    reviewed: bool = Field(
        True, description="Whether a person has reviewed the templates; needed before use."
    )
    needs_model: bool = Field(
        False, description="Whether a model must answer for every role: rules cannot judge what it is about."
    )
    roles: list[Role] = Field(min_length=1, description="The agents; each must speak.")
    speakers: Annotated[RoundRobin | Delegated, Field(discriminator="kind")] = Field(
        description="Who speaks when (σ)."
    )
    document: Document = Field(description="What the team is to write.")
    max_turns: int = Field(60, ge=1, le=10_000, description="The most turns that a discussion may take.")
    context_tokens: int = Field(4096, ge=256, description="Tokens of task, memory and turns (algorithm 1).")
    memory_tokens: int = Field(900, ge=100, description="The most that one agent's memory may take of them.")

    def role(self, name: str) -> Role:
        """Return the role of that name. Raises BadInput."""
        found = next((role for role in self.roles if role.name == name), None)
        if found is None:
            raise BadInput(f"The team {self.name} has no role {name!r}.", f"It has: {', '.join(self.names)}.")
        return found

    @property
    def names(self) -> list[str]:
        return [role.name for role in self.roles]

    @property
    def deciders(self) -> list[str]:
        """Return the roles that must all accept before the document is written."""
        return self.speakers.workers if isinstance(self.speakers, Delegated) else self.speakers.order

    def cramped(self, context_tokens: int) -> str:
        """Return the first role whose memory would have no room within a context; "" if all have."""
        room = SKELETON * CHARACTERS_PER_TOKEN * self.memory_within(context_tokens)
        return next((role.name for role in self.roles if size(empty(role.memory)) > room), "")

    def memory_within(self, context_tokens: int) -> int:
        """Return the bound of a memory in tokens: the team's, or the same share of a smaller context."""
        return min(self.memory_tokens, self.memory_tokens * context_tokens // self.context_tokens)


def shipped() -> list[str]:
    """Return the names of the teams that come with Mneme."""
    return sorted(path.stem for path in TEAMS_FOLDER.glob("*.yaml"))


def load_team(name_or_path: str, option: str = "--experts") -> Team:
    """Return a shipped team by its name, or one of your own by its file's path. Raises BadInput."""
    known = name_or_path in shipped()
    path = TEAMS_FOLDER / f"{name_or_path}.yaml" if known else Path(name_or_path).expanduser()
    if not known and path.suffix not in {".yaml", ".yml", ".json"}:
        hint = f"{option}: one of {', '.join(shipped())}, or a YAML file."
        raise BadInput(f"No team that discusses is called {name_or_path!r}.", hint)
    try:
        return read_team(yaml.safe_load(text_of(path)), str(path))
    except yaml.YAMLError as error:
        raise BadInput(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error


def read_team(given: object, where: str = "team") -> Team:
    """Return the team that plain JSON describes. Raises BadInput, naming the field."""
    if not isinstance(given, Mapping):
        raise BadInput(f"{where}: a team is an object with name, roles, speakers and document.", TEAM_HINT)
    try:
        team = Team.model_validate(given)
    except ValidationError as error:
        raise BadInput(f"{where}: {first_fault(error)}", TEAM_HINT) from error
    if wrong := next(_wrong(team), ""):
        raise BadInput(f"{where}: {wrong}", TEAM_HINT)
    return team


TEAM_HINT = "See library/teams/data_pipeline.yaml, or make a team: `mneme discuss new-team`."


def _wrong(team: Team) -> Iterator[str]:
    if not team.reviewed:
        yield "reviewed: a model wrote the templates; review them, then set reviewed: true."
    yield from _twice("roles", team.names)
    yield from _twice("roles (titles)", [role.title for role in team.roles])
    named: dict[str, list[str] | str] = team.speakers.model_dump(exclude={"kind"})
    speaking = ((field, [each] if isinstance(each, str) else each) for field, each in named.items())
    selected = [(f"speakers.{field}", name) for field, names in speaking for name in names]
    selected.append(("document.by", team.document.by))
    yield from (
        f"{field}: there is no role {name}; there are {', '.join(team.names)}."
        for field, name in selected
        if name not in team.names
    )
    yield from _twice("speakers", team.deciders)
    yield from (
        f"roles.{name}: this role never speaks; name it under speakers or document.by."
        for name in team.names
        if name not in {each for _, each in selected}
    )
    yield from filter(None, (wrong_in(role.memory, f"roles.{role.name}.memory") for role in team.roles))
    if cramped := team.cramped(team.context_tokens):
        yield f"roles.{cramped}.memory has too many slots for {team.memory_tokens} memory_tokens."
    yield from _clashes(team.document)
    # Algorithm 1 lets task and memory exceed the context; a server would cut such a prompt without a word.
    if team.memory_tokens >= team.context_tokens:
        yield f"memory_tokens: {team.memory_tokens} leave nothing of {team.context_tokens} context_tokens."


def _clashes(document: Document) -> Iterator[str]:
    """Yield the names of a document's parts that collide in its file, or that are invalid."""
    # In the file an item is `Component 1`, beside the fields and the ratings.
    numbered = re.compile(rf"{re.escape(document.item)} [1-9][0-9]*", re.IGNORECASE)
    for part in ("fields", "ratings", "item_fields", "report"):
        given: dict[str, str] = getattr(document, part)
        yield from (
            f"document.{part}: {name!r} is not a name: use a letter, then letters, digits, blanks, - and _."
            for name in given
            if not PART_NAME.fullmatch(name)
        )
        yield from _twice(f"document.{part}", [name.lower() for name in given])
        yield from (
            f"document.{part}: {name}: items are numbered so." for name in given if numbered.fullmatch(name)
        )
    if any(name.lower() == "name" for name in document.item_fields):
        yield "document.item_fields: name: each item has a name beside these; leave it out."
    if both := sorted(document.fields.keys() & document.ratings.keys()):
        yield f"document.ratings: {both[0]} is a field already; give it another name."


def _twice(field: str, names: list[str]) -> Iterator[str]:
    yield from (
        f"{field}: {name} is there twice; each needs a name of its own."
        for number, name in enumerate(names)
        if name in names[:number]
    )


def empty(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return M_{n,0}: every slot of the template, with nothing in it."""
    return {
        name: empty(slot) if isinstance(slot, Mapping) else [] if isinstance(slot, list) else ""
        for name, slot in template.items()
    }
