"""Rubrics that score a pair from 0 to 100: criteria with points (A.1), one per domain and one for all.

Criteria and points are the paper's, in our words. Where its literary rubric names what one form asks (five
syllables, AABBA, the sonnet's parts), ours speaks of the form that was asked for, since one rubric scores all
three forms of that domain.
"""

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, Field, field_validator, model_validator

from mneme.core.yaml_files import read_yaml, text_of
from mneme.library.agents.agent import DOMAINS, load_named
from mneme.prompts.sharing import examples

RUBRICS_FOLDER = Path(__file__).parent / "rubrics"
SINGLE_POOL = "single_pool"
RUBRICS = (*DOMAINS, SINGLE_POOL)
"""The shipped rubrics: each domain's, and that of one pool for all."""


class Criterion(examples.Criterion, frozen=True, extra="forbid"):
    """A criterion, and the maximum points that it can earn."""

    name: str = Field(min_length=1, max_length=80, description="Name of the criterion; no two have one.")
    points: int = Field(ge=1, le=examples.TOTAL_POINTS, description="The most that it can earn.")
    looks_at: str = Field(min_length=1, max_length=1000, description="What earns the points.")
    agents: tuple[str, ...] = Field(
        (), description="Whose answers it is for; none: all. Others are scored without it, scaled to 100."
    )
    of_question: bool = Field(
        False, description="Whether it judges the question: that may raise a score, and lowers no answer's."
    )


class Rubric(BaseModel, frozen=True, extra="forbid"):
    """A rubric; the points of its criteria sum to 100."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$", description="The domain that it scores.")
    title: str = Field(min_length=1, max_length=120, description="Name for people.")
    criteria: tuple[Criterion, ...] = Field(
        min_length=1, max_length=40, description="What is scored; the points must sum to 100."
    )

    @field_validator("criteria")
    @classmethod
    def _names_differ(cls, criteria: tuple[Criterion, ...]) -> tuple[Criterion, ...]:
        if len({each.name.casefold() for each in criteria}) < len(criteria):
            raise ValueError("two criteria have one name")
        return criteria

    @model_validator(mode="after")
    def _sums_to_hundred(self) -> "Rubric":
        total = sum(each.points for each in self.criteria)
        if total != examples.TOTAL_POINTS:
            raise ValueError(f"the points of the criteria sum to {total}, not to {examples.TOTAL_POINTS}")
        return self

    def of(self, agent: str) -> tuple[Criterion, ...]:
        """Return the criteria by which an agent's answers are scored; all where none would be left."""
        own = tuple(each for each in self.criteria if not each.agents or agent in each.agents)
        return own or self.criteria

    def total(self, agent: str, points: Mapping[str, int]) -> int:
        """Return a pair's score out of 100."""
        # The better of two: a plain question takes nothing from a good answer.
        every = self.of(agent)
        of_answer = tuple(each for each in every if not each.of_question)
        shares = [
            sum(points[each.name] for each in some) / sum(each.points for each in some)
            for some in (every, of_answer)
            if some
        ]
        return round(examples.TOTAL_POINTS * max(shares))

    def as_text(self) -> str:
        """Return the rubric as lines, one per criterion, for a prompt or a person."""
        return "\n".join(f"- {each.name} (0-{each.points}): {each.looks_at}" for each in self.criteria)


def load_rubric(name_or_path: str | Path) -> Rubric:
    """Load a shipped rubric by name or another from a YAML file; an unusable one raises `BadInput`."""
    return load_named(str(name_or_path), Rubric, RUBRICS, RUBRICS_FOLDER)


def read_rubric(text: str, where: str = "The rubric") -> Rubric:
    """Parse a rubric from YAML or JSON. Raises `BadInput` with `where` and the field."""
    return read_yaml(text, Rubric, where)


def printed(rubric: Rubric) -> str:
    """Return a shipped rubric as the paper prints it (A.1), any other one as lines."""
    path = RUBRICS_FOLDER / f"{rubric.name}.txt"
    return text_of(path) if rubric.name in RUBRICS else rubric.as_text()
