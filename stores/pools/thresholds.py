"""The scores above which pairs are kept, as they were calibrated: one for a domain, a grader and its scoring.

A threshold is that of one rubric: once the rubric says something else, it is void.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Self

from pydantic import BaseModel, Field

from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Version, team_namespace
from mneme.stores.shelf import RecordKind, Shelf

DEFAULT_THRESHOLD = 70
"""The score, of 100, above which pairs are kept where nothing was calibrated."""


class Threshold(BaseModel, frozen=True):
    """A calibrated threshold, and how well it separates good answers from damaged ones."""

    domain: str
    grader: str = Field(description="Who graded, such as ollama:llama3.1:8b.")
    scoring: Literal["criteria", "printed"] = "criteria"
    threshold: int = Field(ge=0, le=99, description="A pair is kept where its score, of 100, is above this.")
    lowest: int = Field(description="The lowest threshold that parts the answers as well.")
    highest: int = Field(description="The highest one.")
    pairs: int = Field(description="Good answers that were graded, and as many damaged ones.")
    unscored: int = Field(description="Answers that the grader could not score; they count as not kept.")
    sensitivity: float = Field(description="Share of good answers kept, each by a threshold of the others.")
    specificity: float = Field(description="Share of damaged answers not kept, likewise.")
    low: float = Field(description="The mean of both is at least this, with 95 % confidence.")
    high: float = Field(description="And at most this.")
    seed: int = Field(description="Seed that drew the answers and their damage.")
    rubric: str = Field(description="Checksum of the rubric by which they were graded.")
    at: datetime | None = None
    by: str = ""
    holds: bool = Field(True, description="Whether the rubric is still that one.")

    @classmethod
    def of(cls, version: Version) -> Self:
        """Read a threshold back from its version."""
        return cls.model_validate({**version.value, "at": version.at, "by": version.change.actor})

    def __str__(self) -> str:
        """Say what was measured, when and by whom."""
        number = " in one number" if self.scoring == "printed" else ""
        void = "" if self.holds else "void, since the rubric changed: "
        return (
            f"{void}above {self.threshold}{number} by {self.grader} ({self.lowest} to {self.highest} do as "
            f"well): of {self.pairs} good answers {self.sensitivity:.0%} are kept, of as many damaged ones "
            f"{self.specificity:.0%} refused (their mean, 95 %: {self.low:.0%} to {self.high:.0%}); "
            f"{self.at:%Y-%m-%d %H:%M}, {self.by}"
        )


def key_of(domain: str, grader: str, scoring: str) -> str:
    """Return the key of a threshold: the name of a model may be long."""
    return hashlib.sha256(f"{domain}\n{grader}\n{scoring}".encode()).hexdigest()[:32]


def checksum(rubric: BaseModel) -> str:
    """Return a rubric's checksum, which identifies it."""
    return hashlib.sha256(rubric.model_dump_json().encode()).hexdigest()[:16]


class Thresholds(Shelf[Threshold, Threshold]):
    """The thresholds that a team calibrated."""

    def __init__(self, ledger: Ledger, team: str) -> None:
        kind = RecordKind[Threshold, Threshold](Threshold.of, outside=frozenset({"at", "by", "holds"}))
        super().__init__(ledger, team_namespace(team, "thresholds"), kind)

    async def of_rubric(self, name: str, rubric: BaseModel) -> Sequence[Threshold]:
        """Return the thresholds of a domain; `holds` is False for those of an earlier rubric."""
        now, found = checksum(rubric), await self.all()
        return [
            each.model_copy(update={"holds": each.rubric == now}) for each in found if each.domain == name
        ]
