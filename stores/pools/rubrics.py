"""Rubrics by which a team scores its pairs: each that a person approved is frozen as a version (§3.1).

Version 0 of a name is the rubric that is shipped. Which version scored a pair is noted in the pair, since
scores by different rubrics cannot be compared. What a rubric consists of is the caller's type `R`.
"""

from collections.abc import Mapping, Sequence
from typing import Generic, Self, TypeVar

from pydantic import BaseModel, Field

from mneme.core.errors import BadInput, Conflict, NotFound
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Version, team_namespace
from mneme.stores.pools.thresholds import Threshold
from mneme.stores.shelf import RecordKind, Shelf

SHIPPED_VERSION = 0
"""The number of the rubric that is shipped."""
R = TypeVar("R", bound=BaseModel)


class RubricVersion(BaseModel, Generic[R], frozen=True):
    """A rubric as it was approved: nothing changes it any more."""

    version: int = Field(ge=0, description="0: shipped.")
    rubric: R
    by: str = Field("", description="Who approved it.")
    drafted_by: str = Field("", description="The model that drafted it; empty: a person wrote it.")
    reason: str = ""
    thresholds: Sequence[Threshold] = Field([], description="Scores above which pairs are kept, calibrated.")

    @classmethod
    def of(cls, version: Version) -> Self:
        """Read a rubric back from its version."""
        said = version.change
        told = {"by": said.actor, "drafted_by": said.model, "reason": said.reason}
        return cls.model_validate({"version": version.version, "rubric": version.value, **told})


class Rubrics(Generic[R]):
    """The rubrics of one team, and the shipped ones by their names; `kind` reads versions back."""

    def __init__(
        self, ledger: Ledger, team: str, kind: type[RubricVersion[R]], shipped: Mapping[str, R]
    ) -> None:
        self._shipped = {
            name: kind(version=SHIPPED_VERSION, rubric=rubric, by="shipped")
            for name, rubric in shipped.items()
        }
        self._frozen = Shelf(
            ledger, team_namespace(team, "rubrics"), RecordKind[R, RubricVersion[R]](kind.of)
        )

    async def latest(self, name: str) -> RubricVersion[R]:
        """Return the rubric that scores a domain's pairs now. Raises BadInput where it has no rubric."""
        if own := await self._frozen.find(name):
            return own
        if name in self._shipped:
            return self._shipped[name]
        raise BadInput(
            f"The domain {name} has no rubric.",
            f"`mneme share rubric design {name}` drafts one; `… review {name}` decides on a draft.",
        )

    async def get(self, name: str, version: int) -> RubricVersion[R]:
        """Return a rubric as it was frozen. Raises NotFound."""
        if version == SHIPPED_VERSION and name in self._shipped:
            return self._shipped[name]
        for each in await self.versions(name):
            if each.version == version:
                return each
        raise NotFound(f"The rubric {name} has no version {version}.", "See `mneme share rubric list`.")

    async def versions(self, name: str) -> Sequence[RubricVersion[R]]:
        """Return every version that the team froze, oldest first."""
        return await self._frozen.versions(name) if await self._frozen.find(name) else []

    async def all(self) -> list[RubricVersion[R]]:
        """Return the current rubric of each name: the shipped ones, then the team's own."""
        own = [each.key for each in await self._frozen.heads()]
        return [await self.latest(name) for name in dict.fromkeys([*self._shipped, *own])]

    async def freeze(
        self, name: str, rubric: R, *, change: Change, once: str | None = None
    ) -> RubricVersion[R]:
        """Add a version, by which pairs are scored from now on; the same `once` adds it once.

        Raises Conflict where another version was frozen at the same moment.
        """
        try:
            return await self._frozen.put(name, rubric, change=change, idempotency_key=once)
        except Conflict as other:
            raise Conflict(
                f"Another version of {name} was frozen at this moment.",
                "Look at it with `mneme share rubric show`, then freeze yours again.",
            ) from other
