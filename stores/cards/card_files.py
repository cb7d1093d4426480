"""A team's cards as YAML files (§6): to be exported, and to be taken in again, all of them or none."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from mneme.core.errors import BadInput
from mneme.stores.cards.card import Card, CardVersion
from mneme.stores.cards.card_records import CardRecords
from mneme.stores.cards.yaml_form import Document, dump, load
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.records import Change, Source, Version, Write


class Imported(BaseModel):
    """Ids of the cards that an import stored, and of those that were here just so."""

    model_config = ConfigDict(frozen=True)

    stored: list[str]
    unchanged: list[str]


class CardFiles:
    """One team's cards, out to YAML and in from it."""

    def __init__(self, ledger: Ledger, records: CardRecords) -> None:
        self._ledger, self._records = ledger, records

    async def export(self, card_ids: Sequence[str] | None = None, *, all_versions: bool = False) -> str:
        """Return cards as YAML, one document each, on request with every version. Raises NotFound."""
        records = self._records
        cards = await records.list() if card_ids is None else [await records.get(each) for each in card_ids]
        return "".join([dump(card, await records.history(card.id) if all_versions else ()) for card in cards])

    async def import_(self, text: str, *, change: Change) -> Imported:
        """Take in exported cards, identical in every respect, all of them or none.

        A card that is here already must be the same, or provisional and of a lower version: a verified
        card is never overwritten. Raises BadInput with the line and the field of what is wrong.
        """
        documents = load(text)
        writes = [await self._imported(document, change) for document in documents]
        await self._ledger.write([write for group in writes for write in group])
        kept = [document.id for document, group in zip(documents, writes, strict=True) if group]
        return Imported(stored=kept, unchanged=[each.id for each in documents if each.id not in kept])

    async def _imported(self, document: Document, change: Change) -> list[Write]:
        head = await self._ledger.get(self._records.namespace, document.id)
        if head is not None:
            return self._renewed(document, change, head)
        if not document.history:
            return [self._records.write_of(document.card, change, 0)]
        past = [former.as_version() for former in document.history]
        return [self._records.write_of(each.card, _change_of(each), n) for n, each in enumerate(past)]

    def _renewed(self, document: Document, change: Change, head: Version) -> list[Write]:
        here = Card.of(head)
        if document.card == here:
            return []
        if here.status != "provisional" or document.version <= here.version:
            raise BadInput(
                f"{here.id} is here already, {here.status}, at version {here.version}, and differs.",
                "Only a provisional card can be replaced, by a higher version; merge or deprecate others.",
            )
        return [self._records.write_of(document.card, change, head.version)]


def _change_of(former: CardVersion) -> Change:
    source = Source(tasks=former.tasks)
    return Change(reason=former.reason, actor=former.actor, model=former.model, source=source)
