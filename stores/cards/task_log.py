"""The log of a team's tasks: what each cost, which cards it was shown and used, which mistakes it made."""

from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change, Version
from mneme.stores.shelf import RecordKind, Shelf


class TaskRecord(BaseModel):
    """One finished task.

    `mistakes` names what went wrong in a draft, each by a name that is the same whenever the same thing
    goes wrong again (for instance "kind: approach"): a mistake that an earlier task made is a duplicate.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    task: str = Field("", description="The task in words.")
    material: str = Field("", description="What the task was about, as its world showed it, shortened.")
    domain: str = ""
    solved: bool
    seconds: float = Field(ge=0, description="From the task's arrival to its resolution.")
    iterations: int = Field(ge=1, description="Drafts, the first one included.")
    model_calls: int = Field(0, ge=0)
    tokens: int = Field(0, ge=0)
    confidence: float = Field(0.0, ge=0, le=1)
    speed_up: float | None = Field(None, description="Where an environment measured it.")
    retrieved: list[str] = Field([], description="Ids of the cards that were shown.")
    used: list[str] = Field([], description="Ids of the cards that the solution rests on.")
    retrieval_ms: float | None = Field(None, ge=0)
    mistakes: list[str] = []
    cards: list[str] = Field([], description="Ids of cards that the task created or changed.")
    disputes: list[str] = []
    answered_by: str = ""
    at: datetime | None = Field(None, description="When it was logged; set by the log.")

    @property
    def first_attempt(self) -> bool:
        """Say whether the first draft solved the task."""
        return self.solved and self.iterations == 1

    @classmethod
    def of(cls, version: Version) -> Self:
        """Read a task back from its record."""
        return cls.model_validate({**version.value, "at": version.value.get("at") or version.created})


class TaskLog(Shelf[TaskRecord, TaskRecord]):
    """The finished tasks of one team."""

    def __init__(self, ledger: Ledger, team: str) -> None:
        super().__init__(ledger, team_namespace(team, "tasks"), RecordKind(TaskRecord.of))

    async def add(self, record: TaskRecord) -> bool:
        """Keep what a finished task was; return False where it is in the log already."""
        return await self.add_new(record.id, record, change=Change(reason="finished", actor="task log"))
