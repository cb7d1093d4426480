"""Models tuned on memories: which one answers, and the result of each consolidation.

A promotion is one write, and so is what takes it back. A subclass adds to that write what becomes of the
records that are consolidated.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mneme.core.errors import BadInput
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.log import retry_on_conflict
from mneme.stores.ledger.records import Change, Namespace, Write
from mneme.stores.shelf import Shelf, kind_of

SERVING = "serving"


class Archive(BaseModel):
    """A promotion: its version tag, time, base model, what was learned, and whether it was undone."""

    model_config = ConfigDict(frozen=True)

    tag: str
    at: datetime
    model: str = ""
    cards: int = Field(0, description="How many cards were archived, or how many pairs the pool held.")
    kept: list[str] = []
    ids: list[str] = Field([], description="What was learned: cards, which are archived, or shared pairs.")
    serves: str = Field("", description="The tuned model that answers since then.")
    before: str = Field("", description="The tuned model that answered until then.")
    taken_back: bool = False


class Attempt(BaseModel):
    """The result of one consolidation: promoted or not, the reason, and all figures."""

    model_config = ConfigDict(frozen=True)

    tag: str
    promoted: bool
    why: str
    base: str = ""
    model: str = Field("", description="The tuned model; empty where none was served.")
    due: list[str] = []
    figures: dict[str, JsonValue] = {}
    taken_back: bool = Field(False, description="Whether its promotion was rolled back since.")


class Serving(BaseModel):
    """The tuned model that answers; empty if there is none."""

    model: str = ""


class ArchiveWrites(NamedTuple):
    """The records that a model learned: ids, the number for `Archive.cards`, and writes that archive them."""

    ids: Sequence[str]
    cards: int
    writes: Sequence[Write] = ()


class TunedModels:
    """The consolidations below one namespace: of a team's cards, or of one of its pools.

    `command` is the command that shows them.
    """

    command: str

    def __init__(self, ledger: Ledger, below: Namespace) -> None:
        self._ledger = ledger
        self._archives = Shelf(ledger, (*below, "archives"), kind_of(Archive))
        self._attempts = Shelf(ledger, (*below, "consolidations"), kind_of(Attempt))
        self._pointer = Shelf(ledger, (*below, "model"), kind_of(Serving))

    async def serving(self) -> str:
        """Return the tuned model that answers; empty if none was promoted."""
        found = await self._pointer.find(SERVING)
        return found.model if found else ""

    async def note(self, attempt: Attempt, *, change: Change) -> None:
        """Store the result of a consolidation; storing it again changes nothing."""
        await self._attempts.add_new(attempt.tag, attempt, change=change)

    async def attempts(self) -> Sequence[Attempt]:
        """Return the finished consolidations, oldest first, with whether each was undone."""
        undone = {each.tag for each in await self.archives() if each.taken_back}
        noted = await self._attempts.all()
        return [each.model_copy(update={"taken_back": each.tag in undone}) for each in noted]

    async def archives(self) -> Sequence[Archive]:
        """Return the promotions, oldest first."""
        return await self._archives.all()

    @retry_on_conflict
    async def archive(  # noqa: PLR0913 (one name for each thing a caller may say)
        self,
        tag: str,
        *,
        change: Change,
        model: str = "",
        keep: Sequence[str] = (),
        only: Sequence[str] | None = None,
        serves: str = "",
    ) -> Archive:
        """Archive what a model has learned under a version tag, except the records in `keep` (§8, step 3).

        `only` names what may be archived; `serves` is the tuned model that answers from now on, `model` its
        base. All of it is one write, which `take_back` undoes. Raises BadInput if the tag is taken.
        """
        if await self._archives.find(tag):
            raise BadInput(f"There is an archive {tag} already.", "Choose another version tag.")
        learned = await self._learned(tag, keep, only, change)
        made = Archive(
            tag=tag,
            at=datetime.now(UTC),
            model=model,
            cards=learned.cards,
            kept=[*keep],
            ids=[*learned.ids],
            serves=serves,
            before=await self.serving(),
        )
        await self._write(made, serves, learned.writes, change)
        return made

    @retry_on_conflict
    async def take_back(self, *, change: Change) -> Archive:
        """Undo the latest archiving, in one write: what it archived and who answers are as before.

        Raises BadInput where there is none to undo.
        """
        standing = await self._standing()
        if not standing:
            raise BadInput("There is no consolidation to take back.", f"See `mneme {self.command} --status`.")
        undone = standing[-1].model_copy(update={"taken_back": True})
        await self._write(undone, undone.before, await self._brought_back(undone, change), change)
        return undone

    async def _standing(self) -> list[Archive]:
        return [each for each in await self.archives() if not each.taken_back]

    async def _write(self, archive: Archive, model: str, others: Sequence[Write], change: Change) -> None:
        """Store a promotion, who answers from now on, and what becomes of other records, in one write."""
        noted = await self._archives.put_write(archive.tag, archive, change)
        # Each write names the version that it follows: of two promotions at once, one is decided again.
        pointed = await self._pointer.put_write(SERVING, Serving(model=model), change)
        await self._ledger.write([*others, *([pointed] if archive.serves else []), noted])

    async def _learned(
        self, tag: str, keep: Sequence[str], only: Sequence[str] | None, change: Change
    ) -> ArchiveWrites:
        """Return the records that a model learned, with the writes that take them out of use, if any."""
        raise NotImplementedError

    async def _brought_back(self, undone: Archive, change: Change) -> Sequence[Write]:
        """Return the writes that restore the records of an undone promotion."""
        return []
