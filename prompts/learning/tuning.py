"""What the rules know of query tuning: what a textbook begins with, and how a plan is read.

Patterns (`INDEX (filter, group)`) and features (`one range filter; grouping`) are the words of the
query-tuning world. Here is only which pattern to think of at which symptom of a plan; what a pattern is
worth, the database says.
"""

from collections.abc import Sequence

from pydantic import BaseModel, Field


class Advice(BaseModel):
    """A pattern under its condition, and what it comes to for this task."""

    condition: str = ""
    pattern: str
    applies: bool | None = Field(None, description="Whether the condition holds here; null: not known.")
    specificity: int = Field(0, description="How much the condition asks for.")
    statements: list[str] = []
    query: str = ""
    why_not: str = Field("", description="Why the pattern cannot be carried out here.")

    def __str__(self) -> str:
        holds = {True: "holds here", False: "does not hold here", None: "may hold"}[self.applies]
        made = (
            "; ".join([*self.statements, *([self.query] if self.query else [])]) or self.why_not or "nothing"
        )
        when = f"when {self.condition} ({holds}): " if self.condition else ""
        return f"{when}{self.pattern} -> {made}"

    @property
    def feasible(self) -> bool:
        return not self.why_not

    def same_as(self, other: "Advice") -> bool:
        """Say whether both come to the same here."""
        return (self.statements, self.query) == (other.statements, other.query)


class Measurement(BaseModel):
    """The measured result of a draft in the environment."""

    correct: bool
    speed_up: float
    wanted: float
    seconds: float = 0.0
    baseline: float = 0.0
    index_share: float = 0.0
    budget: float = 1.0
    plan: str = ""
    solved: bool = False
    summary: str = Field(
        "", description="Whether it solves the task, and why not, in the environment's words."
    )
    problem: str = Field("", description="Why it could not be run, or how its result differs.")

    def __str__(self) -> str:
        return f"{self.summary}\nindexes: {self.index_share:.0%} of the tables\nplan:\n{self.plan}"


def best(advice: Sequence[Advice]) -> Advice | None:
    """Return the most specific advice whose condition holds and that can be carried out."""
    fitting = [each for each in advice if each.applies and each.feasible]
    return max(fitting, key=lambda each: each.specificity, default=None)


def about(condition: str) -> str:
    """Say which queries a condition is about."""
    return f"For queries with {condition.replace(';', ',')}"


REMEDIES = (
    *("INDEX (filter, group)", "INDEX (equality, range, group)", "INDEX (equality)", "INDEX (join)"),
    *("COVERING INDEX (filter, group)", "COVERING INDEX (selective, group)"),
    *("COVERING INDEX (group, filters)", "COVERING INDEX (join)", "COVERING INDEX (join, filters)"),
    *("INDEX (range, group) WHERE equality", "COVERING INDEX (range, group) WHERE equality"),
    *("INDEX (equality, order)", "INDEX (order)", "INDEX (expression)", "COVERING INDEX (hidden)"),
    *("REWRITE sargable; INDEX (filters, group)", "REWRITE correlated", "REWRITE correlated; INDEX (join)"),
    *("EACH INDEX (alternatives)", "REWRITE alternatives; EACH INDEX (alternatives)"),
)
"""The remedies that the rules think of."""
