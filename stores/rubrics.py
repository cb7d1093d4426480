"""Rubrics by which a team scores its pairs: each that a person approved is frozen as a version (§3.1).

Version 0 of a name is the rubric that is shipped. Which version scored a pair stands in the pair, since
scores by different rubrics cannot be compared.
"""

from pydantic import BaseModel, ConfigDict, Field

from agents.rubric import RUBRICS, Rubric, load_rubric
from mneme.errors import BadInput, Conflict, NotFound
from stores.ledger import Ledger
from stores.records import Change, Namespace, Version, check_namespace, make_write

SHIPPED = 0
"""The number of the rubric that is shipped."""


class Frozen(BaseModel):
    """A rubric as it was approved: nothing changes it any more."""

    model_config = ConfigDict(frozen=True)

    version: int = Field(ge=0, description="0: shipped.")
    rubric: Rubric
    by: str = Field("", description="Who approved it.")
    reason: str = ""

    @classmethod
    def of(cls, version: Version) -> "Frozen":
        rubric = Rubric.model_validate(version.value)
        return cls(
            version=version.version, rubric=rubric, by=version.change.actor, reason=version.change.reason
        )


class Rubrics:
    """The rubrics of one team."""

    def __init__(self, ledger: Ledger, team: str) -> None:
        self._ledger, self._team = ledger, team
        self.namespace: Namespace = check_namespace(("teams", team, "rubrics"))

    async def latest(self, name: str) -> Frozen:
        """Return what a domain's pairs are scored by now. Raises BadInput where it has no rubric."""
        head = await self._ledger.get(self.namespace, name)
        if head is not None and head.live:
            return Frozen.of(head)
        if name in RUBRICS:
            return Frozen(version=SHIPPED, rubric=load_rubric(name), by="shipped")
        raise BadInput(f"The domain {name} has no rubric.", f"`mneme share rubric design {name}` drafts one.")

    async def get(self, name: str, version: int) -> Frozen:
        """Return a rubric as it was frozen. Raises NotFound."""
        if version == SHIPPED and name in RUBRICS:
            return Frozen(version=SHIPPED, rubric=load_rubric(name), by="shipped")
        for each in await self.versions(name):
            if each.version == version:
                return each
        raise NotFound(f"The rubric {name} has no version {version}.", "See `mneme share rubric list`.")

    async def versions(self, name: str) -> list[Frozen]:
        """Return every version that was frozen here, oldest first."""
        if await self._ledger.get(self.namespace, name) is None:
            return []
        return [Frozen.of(each) for each in await self._ledger.history(self.namespace, name)]

    async def all(self) -> list[Frozen]:
        """Return what each name is scored by now: the shipped ones, then the team's own."""
        own = [each.key for each in await self._ledger.records(self.namespace, limit=1000)]
        return [await self.latest(name) for name in dict.fromkeys([*RUBRICS, *own])]

    async def freeze(self, rubric: Rubric, *, change: Change, once: str | None = None) -> Frozen:
        """Add a version, by which pairs are scored from now on; the same `once` adds it once.

        Raises Conflict where another version was frozen at the same moment.
        """
        head = await self._ledger.get(self.namespace, rubric.name)
        write = make_write(
            event="insert" if head is None else "update",
            namespace=self.namespace,
            key=rubric.name,
            value=rubric.model_dump(mode="json"),
            text="",
            change=change,
            expected_version=head.version if head else None,
            idempotency_key=once,
        )
        try:
            return Frozen.of((await self._ledger.write([write]))[0])
        except Conflict as other:
            raise Conflict(
                f"Another version of {rubric.name} was frozen at this moment.",
                "Look at it, then freeze again.",
            ) from other
