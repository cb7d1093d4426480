"""A solution, and the result of its trial in a world: metrics beside a baseline's."""

from typing import Literal

from pydantic import BaseModel, Field

SMALLEST = 1e-9  # divides in place of 0
NOISE = 0.15
"""Relative difference of two measurements that counts as noise."""


class Solution(BaseModel):
    """A solution; a world reads the parts that it takes, and leaves the others alone."""

    statements: list[str] = Field([], description="CREATE INDEX or ANALYZE, in order.")
    query: str = Field("", description="The query to run instead; empty where it stays as it is.")
    files: dict[str, str] = Field({}, description="New contents of files, by their paths in the workspace.")
    diff: str = Field("", description="A unified diff, instead of whole files.")
    answer: str = ""

    @property
    def text(self) -> str:
        """Return the program to run, or the answer; empty if there is no action."""
        files = (f"{path}:\n{text}" for path, text in self.files.items())
        return "\n".join(filter(None, [*self.statements, self.query, *files, self.diff, self.answer]))


class Metric(BaseModel):
    """One metric of a trial beside the baseline's, and the improvement that is wanted."""

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
    def gain(self) -> float:
        """Return how many times as good as the baseline the value is; 0 without a baseline."""
        if self.baseline is None:
            return 0.0
        good, bad = (self.baseline, self.value) if self.better == "lower" else (self.value, self.baseline)
        return max(good, 0.0) / max(bad, SMALLEST)  # a negative value is no gain, whatever the other is

    @property
    def over(self) -> bool:
        """Return whether the value exceeds its limit."""
        if self.limit is None:
            return False
        return self.value > self.limit if self.better == "lower" else self.value < self.limit

    @property
    def met(self) -> bool:
        return not self.over and self.gain >= self.wanted


class Trial(BaseModel):
    """The result of trying a solution; a solution that cannot be tried is a failed trial, never an error."""

    correct: bool = False
    solved: bool = False
    gain: float = Field(0.0, description="Of the first metric: how many times as good as the baseline.")
    wanted: float = 0.0
    metrics: list[Metric] = []
    evidence: str = Field("", description="What the world shows of it: a plan, what a check printed.")
    summary: str = Field("", description="Whether it solves the task, and why not, in one line.")
    problem: str = Field("", description="Why it could not be run, or what is wrong with its result.")

    def __str__(self) -> str:
        shown = [f"it shows:\n{self.evidence}"] if self.evidence else []
        return "\n".join([self.summary, *map(str, self.metrics), *shown])

    @property
    def nearly_does(self) -> bool:
        """Return whether the trial reached its target, or missed it by no more than noise."""
        # Where no gain is wanted, a trial that is not solved has missed something else.
        return self.solved or (self.correct and self.gain >= (1 - NOISE) * self.wanted > 0)

    @property
    def seconds(self) -> float | None:
        """Return the time that a correct solution took, where it was measured."""
        # `seconds` in query tuning, `cpu_seconds` of a command.
        found = [each.value for each in self.metrics if each.name.endswith("seconds")]
        return found[0] if found and self.correct else None

    @property
    def over_limit(self) -> bool:
        """Return whether any metric exceeds its limit."""
        return any(each.over for each in self.metrics)


def failed(problem: str, evidence: str = "", wanted: float = 0.0) -> Trial:
    """Return the trial of a solution that was refused or whose result is wrong."""
    return Trial(problem=problem, summary=problem, evidence=evidence, wanted=wanted)
