"""What goes into a world: a task, and a solution."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Task(BaseModel):
    """One task: its words, and what its world reads of it (a query, a folder, …)."""

    model_config = ConfigDict(frozen=True)

    id: str = "task"
    text: str = ""
    given: dict[str, Any] = Field({}, description="What the world reads, by name; plain JSON.")
    group: str = Field("", description="Of similar tasks, each group comes once before any comes again.")


class Solution(BaseModel):
    """A solution; a world reads the parts that it takes, and leaves the others alone."""

    statements: list[str] = []
    query: str = ""
    files: dict[str, str] = Field({}, description="New contents of files, by their paths in the workspace.")
    diff: str = Field("", description="A unified diff, instead of whole files.")
    answer: str = ""
