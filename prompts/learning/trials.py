"""What a world makes of patterns, as agents are shown it.

A world is where solutions are tried (a database, a folder held to tests, …). Patterns are short texts that
name an approach for every task of a world, such as `INDEX (filter, group)`; not every world has them. What
an approach is worth, the world says.
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
    files: dict[str, str] = Field({}, description="New contents of files, by path.")
    why_not: str = Field("", description="Why the pattern cannot be carried out here.")
    is_text: bool = Field(False, description="Whether the pattern is words that an agent carries out.")

    def __str__(self) -> str:
        made = [*self.statements, *([self.query] if self.query else []), *map(_as_file, self.files.items())]
        when = said_when(self.condition, self.applies)
        if self.is_text:
            return f"{when}{self.pattern}"
        return f"{when}{self.pattern} -> {'; '.join(made) or self.why_not or 'nothing changes'}"

    @property
    def feasible(self) -> bool:
        """Say whether the pattern is made out for this task."""
        return not self.why_not and not self.is_text

    @property
    def changes(self) -> bool:
        """Say whether anything is done here."""
        return bool(self.statements or self.query or self.files)

    def same_as(self, other: "Advice") -> bool:
        """Say whether both come to the same here."""
        mine, theirs = ((each.statements, each.query, each.files) for each in (self, other))
        return mine == theirs


def _as_file(file: tuple[str, str]) -> str:
    return f"\n{file[0]}:\n{file[1]}"


def said_when(condition: str, applies: bool | None) -> str:
    """Say a condition, and whether it holds for the task; nothing where there is none."""
    holds = {True: "holds here", False: "does not hold here", None: "may hold"}[applies]
    return f"when {condition} ({holds}): " if condition else ""


def best(advice: Sequence[Advice]) -> Advice | None:
    """Return the most specific advice whose condition holds and that can be carried out."""
    fitting = [each for each in advice if each.applies and each.feasible]
    return max(fitting, key=lambda each: each.specificity, default=None)


def about(condition: str, noun: str = "tasks") -> str:
    """Say which tasks a condition is about; a world has its own word for them (`queries`)."""
    return f"For {noun} with {condition.replace(';', ',')}" if condition else f"For such {noun}"
