"""What a world makes of patterns and of drafts, as agents are shown it.

A world is where solutions are tried (a database, a folder held to tests, …). Patterns are short texts that
name an approach for every task of a world, such as `INDEX (filter, group)`; not every world has them. What
an approach is worth, the world says.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field


class Advice(BaseModel):
    """A pattern under its condition, and what it comes to for this task."""

    condition: str = ""
    pattern: str
    applies: bool | None = Field(None, description="Whether the condition holds here; null: not known.")
    specificity: int = Field(0, description="How much the condition asks for.")
    statements: list[str] = []
    query: str = ""
    files: dict[str, str] = Field({}, description="New contents of files, by path.")
    why_not: str = Field("", description="Why the pattern cannot be carried out here.")
    is_text: bool = Field(False, description="Whether the pattern is words that an agent carries out.")

    def __str__(self) -> str:
        holds = {True: "holds here", False: "does not hold here", None: "may hold"}[self.applies]
        made = [*self.statements, *([self.query] if self.query else []), *map(_as_file, self.files.items())]
        when = f"when {self.condition} ({holds}): " if self.condition else ""
        if self.is_text:
            return f"{when}{self.pattern}"
        return f"{when}{self.pattern} -> {'; '.join(made) or self.why_not or 'nothing changes'}"

    @property
    def feasible(self) -> bool:
        """Say whether the pattern is made out for this task."""
        return not self.why_not and not self.is_text

    def same_as(self, other: "Advice") -> bool:
        """Say whether both come to the same here."""
        mine, theirs = ((each.statements, each.query, each.files) for each in (self, other))
        return mine == theirs


def _as_file(file: tuple[str, str]) -> str:
    return f"\n{file[0]}:\n{file[1]}"


class Metric(BaseModel):
    """One figure of a trial beside the baseline's."""

    name: str
    value: float
    baseline: float | None = None
    better: Literal["lower", "higher"] = "lower"
    wanted: float = Field(0.0, description="How many times as good as the baseline; 0: not asked for.")
    limit: float | None = Field(None, description="What the value may not pass.")
    stopped: bool = Field(False, description="Whether the baseline was stopped: it is at least as large.")

    def __str__(self) -> str:
        said = f"{self.name}: {self.value:.4g}"
        if self.baseline is not None:
            said += f", before {'more than ' if self.stopped else ''}{self.baseline:.4g}"
        said += f"; {self.better} is better"
        said += f"; {self.wanted:g} times as good is wanted" if self.wanted else ""
        return said + (f"; the limit is {self.limit:g}" if self.limit is not None else "")

    @property
    def over(self) -> bool:
        """Say whether the value passes its limit."""
        if self.limit is None:
            return False
        return self.value > self.limit if self.better == "lower" else self.value < self.limit


class Measurement(BaseModel):
    """What a world measured of a draft."""

    correct: bool
    gain: float = Field(description="How many times as good as the baseline, by the first metric.")
    wanted: float
    metrics: list[Metric] = []
    evidence: str = Field("", description="A query's plan, or what a check printed.")
    solved: bool = False
    summary: str = Field("", description="Whether it solves the task, and why not, in the world's words.")
    problem: str = Field("", description="Why it could not be run, or how its result differs.")
    changed: str = Field("", description="What was measured: the solution that was run.")

    def __str__(self) -> str:
        lines = [f"of: {self.changed}"] if self.changed else []
        lines += [self.summary, *map(str, self.metrics)]
        return "\n".join([*lines, *([f"it shows:\n{self.evidence}"] if self.evidence else [])])

    @property
    def over_limit(self) -> bool:
        """Say whether a figure passes its limit."""
        return any(each.over for each in self.metrics)


def best(advice: Sequence[Advice]) -> Advice | None:
    """Return the most specific advice whose condition holds and that can be carried out."""
    fitting = [each for each in advice if each.applies and each.feasible]
    return max(fitting, key=lambda each: each.specificity, default=None)


def about(condition: str, noun: str = "tasks") -> str:
    """Say which tasks a condition is about; a world has its own word for them (`queries`)."""
    return f"For {noun} with {condition.replace(';', ',')}" if condition else f"For such {noun}"
