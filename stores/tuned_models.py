"""The models that were tuned on something remembered: which one answers, how each consolidation ended.

What a promotion changes is one write; so is what takes it back. The room that is consolidated adds to that
write what becomes of its own records.
"""

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mneme.core.errors import BadInput
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Namespace, Value, Write, make_write

SERVING = "serving"


class Archive(BaseModel):
    """A promotion: its version tag, when, into which model, what was learned, and what became of it."""

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
    """One consolidation that came to its end: promoted or not, why, and every figure that it rests on."""

    model_config = ConfigDict(frozen=True)

    tag: str
    promoted: bool
    why: str
    base: str = ""
    model: str = Field("", description="The tuned model; empty where none was served.")
    due: list[str] = []
    figures: dict[str, JsonValue] = {}
    taken_back: bool = Field(False, description="Whether its promotion was rolled back since.")


class TunedModels:
    """The consolidations below one namespace: of a team's cards, or of one of its pools."""

    def __init__(self, ledger: Ledger, below: Namespace) -> None:
        self._ledger = ledger
        self.namespace: Namespace = (*below, "archives")
        self._attempts: Namespace = (*below, "consolidations")
        self._pointer: Namespace = (*below, "model")

    async def serving(self) -> str:
        """Return the tuned model that answers; empty where none was promoted."""
        return (await self._serving())[0]

    async def note(self, attempt: Attempt, *, change: Change) -> None:
        """Keep how a consolidation ended; noting it again changes nothing."""
        if await self._ledger.get(self._attempts, attempt.tag) is None:
            value = attempt.model_dump(mode="json")
            await self._ledger.insert(self._attempts, value, text="", change=change, key=attempt.tag)

    async def attempts(self) -> Sequence[Attempt]:
        """Return the consolidations that came to their end, oldest first, with what became of each."""
        count = await self._ledger.count(self._attempts)
        found = await self._ledger.records(self._attempts, limit=count)
        undone = {each.tag for each in await self.archives() if each.taken_back}
        noted = [Attempt.model_validate(version.value) for version in found]
        return [each.model_copy(update={"taken_back": each.tag in undone}) for each in noted]

    async def archives(self) -> Sequence[Archive]:
        """Return the promotions, oldest first."""
        count = await self._ledger.count(self.namespace)
        found = await self._ledger.records(self.namespace, limit=count)
        return [Archive.model_validate(version.value) for version in found]

    async def _standing(self) -> list[Archive]:
        return [each for each in await self.archives() if not each.taken_back]

    async def _check_free(self, tag: str) -> None:
        if await self._ledger.get(self.namespace, tag):
            raise BadInput(f"There is an archive {tag} already.", "Choose another version tag.")

    async def _last(self, hint: str) -> Archive:
        """Return the promotion that stands. Raises BadInput where there is none."""
        standing = await self._standing()
        if not standing:
            raise BadInput("There is no consolidation to take back.", hint)
        return standing[-1]

    async def _promoting(self, archive: Archive, change: Change) -> list[Write]:
        """Return the writes of a promotion: its record, and who answers from now on."""
        noted = await self._noted(self.namespace, archive.tag, archive.model_dump(mode="json"), change)
        serves = archive.serves
        return [*([await self._pointed(serves, archive.before, change)] if serves else []), noted]

    async def _undoing(self, last: Archive, change: Change) -> tuple[Archive, list[Write]]:
        """Return a promotion as taken back, and the writes that make the model before it answer again."""
        undone = last.model_copy(update={"taken_back": True})
        noted = await self._noted(self.namespace, last.tag, undone.model_dump(mode="json"), change)
        return undone, [*([await self._pointed(last.before, "", change)] if last.serves else []), noted]

    async def _before(self, serves: str) -> str:
        """Return the model that answered until now."""
        serving, earlier = await self._serving()
        return earlier if serves and serving == serves else serving  # it was begun by a write that was cut

    async def _serving(self) -> tuple[str, str]:
        """Return the tuned model that answers, and the one that did before it."""
        head = await self._ledger.get(self._pointer, SERVING)
        return (str(head.value["model"]), str(head.value["before"])) if head else ("", "")

    async def _pointed(self, model: str, before: str, change: Change) -> Write:
        return await self._noted(self._pointer, SERVING, {"model": model, "before": before}, change)

    async def _noted(self, namespace: Namespace, key: str, value: Value, change: Change) -> Write:
        """Return the write of a record that is not searched, new or again."""
        head = await self._ledger.get(namespace, key)
        return make_write(
            event="update" if head else "insert",
            namespace=namespace,
            key=key,
            value=value,
            text="",
            change=change,
            expected_version=head.version if head else None,
        )
