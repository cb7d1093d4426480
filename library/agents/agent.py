"""The agents that share memories: nine in three domains (§4.1), a YAML file each, and users' own."""

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from mneme.core.errors import BadInput
from mneme.core.yaml_files import read_yaml, text_of

HOME = Path(__file__).parent / "team"
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
UNCHECKED = frozenset(("puzzle", "riddle", "pun", "study", "travel", "fitness"))
"""Forms that code once checked and a rubric judges now; files that name one stay readable."""


class Agent(BaseModel):
    """One agent: its task, its questions and the form of its answers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        """Return what it writes, and what it is asked."""
        return f"{self.does} Its questions: {self.questions}"


def load_agent(name_or_path: str | Path) -> Agent:
    """Load a shipped agent by name or another from a YAML file; an unknown one raises `BadInput`."""
    if str(name_or_path) in AGENTS:
        return _shipped(str(name_or_path))
    path = Path(name_or_path)
    if path.suffix not in {".yaml", ".yml"}:
        raise BadInput(
            f'There is no agent "{name_or_path}".',
            f"Agents: {', '.join(AGENTS)}; or give the path of an agent's YAML file.",
        )
    return read_yaml(text_of(path), Agent, str(path))


def agents_of(domain: str) -> tuple[Agent, ...]:
    """Give a domain's shipped agents; an unknown domain raises `BadInput`."""
    if domain not in DOMAINS:
        raise BadInput(f'There is no domain "{domain}".', f"Domains: {', '.join(DOMAINS)}.")
    return tuple(agent for agent in map(_shipped, AGENTS) if agent.domain == domain)


@cache
def _shipped(name: str) -> Agent:
    path = HOME / f"{name}.yaml"
    return read_yaml(text_of(path), Agent, str(path))
