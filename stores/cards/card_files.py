"""A team's cards as YAML files (§6): to be exported, and to be taken in again, all of them or none.

A file takes nobody's word for its successes. What this team signed when it exported it comes back as it was,
with its history and the times of it. Of anything else the lesson is taken, and not its standing: the card is
provisional, with no evidence, no rating and no cleared flag, in every version of its history.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from mneme.core.errors import BadInput, Conflict
from mneme.core.settings import settings
from mneme.stores.cards.card import QUARANTINE, SHARER, Card, CardVersion, Evidence
from mneme.stores.cards.card_records import CardRecords
from mneme.stores.cards.lifecycle import is_in_service
from mneme.stores.cards.yaml_form import Document, document_of, dump, load
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.ledger.records import Change, Source, Value, Version, Write

KEY = "key"


class TeamSignature:
    """The signature of one team."""

    def __init__(self, ledger: Ledger, team: str) -> None:
        self._ledger, self._team = ledger, team
        self._namespace = team_namespace(team, "signature")

    async def of(self, value: Value) -> str:
        """Return the signature of plain JSON."""
        said = json.dumps([self._team, value], sort_keys=True, ensure_ascii=False)
        return hmac.new(await self._key(), said.encode(), hashlib.sha256).hexdigest()

    async def holds(self, signature: str, value: Value) -> bool:
        """Say whether the team signed this."""
        return bool(signature) and hmac.compare_digest(signature, await self.of(value))

    async def _key(self) -> bytes:
        given = settings().team_key.get_secret_value()
        if given:
            return given.encode()
        head = await self._ledger.get(self._namespace, KEY)
        if head is None:
            made: Value = {"secret": secrets.token_hex(32)}
            change = Change(reason="the first export or import", actor="card files")
            try:
                head = await self._ledger.insert(self._namespace, made, text="", change=change, key=KEY)
            except Conflict:  # somebody else was first
                return await self._key()
        return str(head.value["secret"]).encode()


class Imported(BaseModel):
    """Ids of the cards that an import stored, and of those that were here just so."""

    model_config = ConfigDict(frozen=True)

    stored: list[str]
    unchanged: list[str]
    unsigned: list[str] = Field([], description="Those stored whose successes nothing vouches for.")


class CardFiles:
    """One team's cards, out to YAML and in from it."""

    def __init__(self, ledger: Ledger, records: CardRecords) -> None:
        self._ledger, self._records = ledger, records
        self._signature = TeamSignature(ledger, records.team)

    async def export(self, card_ids: Sequence[str] | None = None, *, all_versions: bool = False) -> str:
        """Return cards as signed YAML, one document each, on request with every version. Raises NotFound."""
        records = self._records
        cards = await records.list() if card_ids is None else [await records.get(each) for each in card_ids]
        histories = [await records.history(card.id) if all_versions else () for card in cards]
        return "".join([await self.signed(*each) for each in zip(cards, histories, strict=True)])

    async def signed(self, card: Card, history: Sequence[CardVersion] = ()) -> str:
        """Return a card as a YAML document that this team signed."""
        return dump(card, history, await self._signature.of(document_of(card, history).signed))

    async def import_(self, text: str, *, change: Change) -> Imported:
        """Take in exported cards, all of them or none; signed ones are identical in every respect.

        A card that is here already must be the same, or provisional and of a lower version: a verified
        card is never overwritten. Raises BadInput with the line and the field of what is wrong.
        """
        documents = load(text)
        signed = [await self._signature.holds(each.signature, each.signed) for each in documents]
        accepted = [each if own else _unproven(each) for each, own in zip(documents, signed, strict=True)]
        heads = [await self._ledger.get(self._records.namespace, each.id) for each in accepted]
        pairs = list(zip(accepted, heads, strict=True))
        writes = {document.id: await self._writes(document, change, head) for document, head in pairs}
        await self._ledger.write([write for group in writes.values() for write in group])
        return Imported(
            stored=[each.id for each in documents if writes[each.id]],
            unchanged=[each.id for each in documents if not writes[each.id]],
            unsigned=[
                each.id for each, own in zip(documents, signed, strict=True) if writes[each.id] and not own
            ],
        )

    async def _writes(self, document: Document, change: Change, head: Version | None) -> list[Write]:
        """Return the writes of a card; a history keeps its times, but for those that are still to come."""
        if head is not None:
            return self._renewed(document, change, head)
        if not document.history:
            return [self._records.write_of(document.card, change, 0)]
        past, now = [former.as_version() for former in document.history], datetime.now(UTC)
        begun = await self._ledger.last_forgotten(self._records.namespace, document.id)
        after = [begun + number if number else 0 for number in range(len(past))]
        writes = [
            self._records.write_of(each.card, _change_of(each), n)
            for each, n in zip(past, after, strict=True)
        ]
        times = [min(each.at.astimezone(UTC), now) for each in past]
        return [write.model_copy(update={"at": at}) for write, at in zip(writes, times, strict=True)]

    def _renewed(self, document: Document, change: Change, head: Version) -> list[Write]:
        here = Card.of(head)
        if document.card == here or document.provenance.created_by == SHARER:
            return []  # a shared lesson that is known here has nothing to add
        if here.status != "provisional" or document.version <= here.version:
            raise BadInput(
                f"{here.id} is here already, {here.status}, at version {here.version}, and differs.",
                "Only a provisional card can be replaced, by a higher version; merge or deprecate others.",
            )
        earned = {name: getattr(here, name) for name in ("evidence", "confidence", "ratings", "cleared")}
        is_proven = bool(document.evidence.count or document.ratings)
        card = document.card if is_proven else document.card.model_copy(update=earned)
        return [self._records.write_of(card, change, head.version)]


def _unproven(document: Document) -> Document:
    """Return a document without what only this team could vouch for, in every version of its history."""
    past = [former.model_copy(update={"card": _untrusted(former.card)}) for former in document.history]
    return document_of(_untrusted(document.card)).model_copy(update={"history": past})


def _untrusted(card: Card) -> Card:
    """Return the lesson of a card without its successes; one that was given up stays given up."""
    update: dict[str, Any] = {
        "status": "provisional" if is_in_service(card) else card.status,
        "returns_to": "provisional",
        "evidence": Evidence(),
        "confidence": min(card.confidence, QUARANTINE),
        "ratings": [],
        "cleared": [],
    }
    return card.model_copy(update=update)


def _change_of(former: CardVersion) -> Change:
    source = Source(tasks=former.tasks)
    return Change(reason=former.reason, actor=former.actor, model=former.model, source=source)
