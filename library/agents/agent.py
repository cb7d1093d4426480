"""The agents that share memories: nine in three domains (§4.1), a YAML file each, and users' own."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, Field, field_validator

from mneme.core.errors import BadInput
from mneme.core.yaml_files import read_yaml, text_of

AGENTS_FOLDER = Path(__file__).parent / "team"
DOMAINS = {
    "literary_creation": "Literary Creation",
    "unconventional_logic": "Unconventional Logic Problem-solving",
    "plan_generation": "Plan Generation",
}
"""Domain -> the paper's name of it."""
AGENTS = (
    *("limerick", "wuyanlvshi", "sonnet"),
    *("puzzle", "riddle", "pun"),
    *("study", "travel", "fitness"),
)
"""The shipped agents, three to a domain, in the order of `DOMAINS`."""
Form = Literal["limerick", "wuyanlvshi", "sonnet"]
# Forms that code once checked by outward signs ("Answer:") and a rubric judges now. Files may still name one.
UNCHECKED = frozenset(("puzzle", "riddle", "pun", "study", "travel", "fitness"))


class Agent(BaseModel, frozen=True, extra="forbid"):
    """One agent: its task, its questions and the form of its answers."""

    # It names a file in the home folder, too: no path fits the pattern.
    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$", description="Short name, as on the command line.")
    domain: str = Field(
        pattern=r"^[a-z][a-z0-9_]{0,39}$", description="The domain whose pool and rubric it uses."
    )
    title: str = Field(min_length=1, max_length=80, description="Name for people.")
    does: str = Field(min_length=1, max_length=2000, description="What it writes, as an instruction to it.")
    questions: str = Field(min_length=1, max_length=2000, description="What its questions look like.")
    language: str = Field(pattern=r"^[a-z]{2,3}$", description="Language of its answers, by ISO 639.")
    form: Form | None = Field(None, description="The check of its answers' form, if one fits.")

    @field_validator("form", mode="before")
    @classmethod
    def _checked_form(cls, form: object) -> object:
        return None if form in UNCHECKED else form

    @property
    def task(self) -> str:
        """Return what the agent writes, and the question it is asked."""
        return f"{self.does} Its questions: {self.questions}"


def load_agent(name_or_path: str | Path) -> Agent:
    """Load a shipped agent by name or another from a YAML file; an unknown one raises `BadInput`."""
    return load_named(str(name_or_path), Agent, AGENTS, AGENTS_FOLDER)


def agents_of(domain: str) -> tuple[Agent, ...]:
    """Return a domain's shipped agents. Raises `BadInput` for an unknown domain."""
    if domain not in DOMAINS:
        raise BadInput(f'There is no domain "{domain}".', f"Domains: {', '.join(DOMAINS)}.")
    return tuple(agent for agent in map(load_agent, AGENTS) if agent.domain == domain)


Kind = TypeVar("Kind", bound=BaseModel)


@cache  # a shipped file does not change while the process runs; one's own may
def _shipped(path: Path, kind: type[Kind]) -> Kind:
    return read_yaml(text_of(path), kind, str(path))


def load_named(named: str, kind: type[Kind], known: Sequence[str], home: Path) -> Kind:
    """Load what is shipped by its name, or one of your own from a YAML file. Raises BadInput."""
    if named in known:
        shipped: Kind = _shipped(home / f"{named}.yaml", kind)
        return shipped
    if Path(named).suffix in {".yaml", ".yml"}:
        return read_yaml(text_of(Path(named)), kind, named)
    noun = kind.__name__.lower()
    hint = f"{kind.__name__}s: {', '.join(known)}; or give the path of the YAML file of a {noun}."
    raise BadInput(f'There is no {noun} "{named}".', hint)
