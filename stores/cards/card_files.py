"""A team's cards as files: as YAML (§6) to be read and edited, and as the ledger's lines with all versions.

A YAML file has one document per card and takes nobody's word for its successes: of each, the lesson is
imported, as a provisional card with no evidence, no rating and no cleared flag. Reading is strict and says
where: the line and the path of the field.

JSON Lines with all versions come back as they were, on the word of whoever imports them.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from mneme.core.errors import BadInput
from mneme.core.yaml_files import read_documents
from mneme.stores.cards.card import (
    QUARANTINE,
    SHARER,
    Card,
    CardRecords,
    Evidence,
    Frozen,
    Lesson,
    without_derived,
)
from mneme.stores.cards.lifecycle import is_in_service
from mneme.stores.ledger.records import Change, Value, Version, Write
from mneme.stores.shelf import check_readable

CARD_FIELDS = (
    *("id", "version", "status", "claim", "rationale", "rules", "evidence", "deprecated_approaches"),
    *("failure_modes", "provenance", "confidence", "tags", "scope"),
)
"""The paper's order; what it does not have follows."""
FORMER_FIELDS = ("history", "signature")
"""Fields that earlier versions wrote beside a card's."""
IMPORTED_FIELDS = (*Lesson.model_fields, "owner", "expires_at", "valid_for")
"""Fields that an import takes from a file for a card that is there already."""
BREAKS = "\r\x85\u2028\u2029"
"""Line breaks that YAML would read as another one, unless they are escaped."""
MAX_CARD_FILE_CHARS = 64 * 1024 * 1024


class Imported(Frozen):
    """Ids of the cards that an import stored, and of those that were there already, unchanged."""

    stored: list[str]
    unchanged: list[str]


class CardFiles:
    """Export and import of one team's cards."""

    def __init__(self, records: CardRecords) -> None:
        self._records = records

    async def export(self, card_ids: Sequence[str] | None = None, *, all_versions: bool = False) -> str:
        """Return cards as YAML; with `all_versions` as JSON Lines. Raises NotFound."""
        records = self._records
        ids = [card.id for card in await records.all()] if card_ids is None else card_ids
        cards = [await records.get(each) for each in ids]
        if not all_versions:
            return "".join(map(dump, cards))
        lines = [line async for line in records.ledger.export(records.namespace)]
        return "".join(f"{line}\n" for line in lines if json.loads(line)["key"] in ids)

    async def import_(self, text: str, *, change: Change) -> Imported:
        """Import the lessons of a YAML file, all of them or none.

        A card that is here already must be the same, or provisional and of a lower version: a verified
        card is never overwritten. Raises BadInput with the line and the field of what is wrong.
        """
        cards = [_untrusted(card) for card in load(text)]
        heads = {head.key: head for head in await self._records.by_keys([card.id for card in cards])}
        writes = {card.id: self._import_of(card, change, heads.get(card.id)) for card in cards}
        await self._records.ledger.write([write for write in writes.values() if write])
        return _imported({name: write is not None for name, write in writes.items()})

    async def import_versions(self, text: str) -> Imported:
        """Import what was exported with all versions, unchanged.

        Raises BadInput for the first line that is not of this team's cards; the others are stored.
        """
        records = self._records
        before = {head.key: head.version for head in await records.heads()}
        report = await records.ledger.import_(text.splitlines(), within=records.namespace, check=_check)
        if report.refused:
            first = report.refused[0]
            rest = "The cards of other lines were imported." if report.imported else "Nothing was imported."
            raise BadInput(f"Line {first.line}: {first.reason}.", rest)
        keys = dict.fromkeys(json.loads(line)["key"] for line in text.splitlines() if line.strip())
        heads = await records.by_keys([*keys])
        return _imported({head.key: before.get(head.key) != head.version for head in heads})

    def _import_of(self, card: Card, change: Change, head: Version | None) -> Write | None:
        """Return the write of an imported lesson; None where it has nothing to add."""
        if head is None:
            return self._records.write(card.id, card, change)
        here = Card.of(head)
        # What another organisation shares is always version 1: it replaces no card, and that is no error.
        is_known = all(getattr(card, name) == getattr(here, name) for name in IMPORTED_FIELDS)
        if card.provenance.created_by == SHARER or (is_known and is_in_service(card) == is_in_service(here)):
            return None
        if here.status != "provisional" or card.version <= here.version:
            raise BadInput(
                f"{here.id} is here already, {here.status}, at version {here.version}, and differs.",
                "Only a provisional card can be replaced, by a higher version; merge or deprecate others.",
            )
        earned = {name: getattr(here, name) for name in ("evidence", "confidence", "ratings", "cleared")}
        return self._records.write(card.id, card.model_copy(update=earned), change, head.version)


def _imported(stored: Mapping[str, bool]) -> Imported:
    return Imported(
        stored=[name for name, is_new in stored.items() if is_new],
        unchanged=[name for name, is_new in stored.items() if not is_new],
    )


def _check(value: Value) -> None:
    check_readable(Card, "card", {**without_derived(value), "id": "any"})


def _untrusted(card: Card) -> Card:
    """Return the lesson of a card without its successes; one that was given up stays given up."""
    status = "provisional" if is_in_service(card) else card.status
    # QUARANTINE is just enough to be retrieved; more confidence comes from tasks of this team.
    stands = {"status": status, "returns_to": "provisional", "confidence": min(card.confidence, QUARANTINE)}
    return card.model_copy(update={**stands, "evidence": Evidence(), "ratings": [], "cleared": []})


class _Dumper(yaml.SafeDumper):
    """Write long texts as blocks, and nothing as an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    strange = any(character in BREAKS for character in text)  # only quoted text can escape them
    style = '"' if strange else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def load(text: str) -> list[Card]:
    """Read every document. Raises BadInput with the line and the field of the first that is wrong."""
    if len(text) > MAX_CARD_FILE_CHARS:
        raise BadInput(
            f"A YAML file of cards may have {MAX_CARD_FILE_CHARS} characters; this one has {len(text)}."
        )
    cards = list(read_documents(text, Card, "The card", ignored=FORMER_FIELDS))
    counted = Counter(card.id for card in cards)
    if twice := [name for name, count in counted.items() if count > 1]:
        raise BadInput(f"The card {twice[0]} is there twice.")
    return cards


def dump(card: Card) -> str:
    """Return a card as one YAML document."""
    fields = card.model_dump(mode="json")
    ordered = {name: fields[name] for name in dict.fromkeys([*CARD_FIELDS, *fields])}
    text: str = yaml.dump(
        ordered, Dumper=_Dumper, explicit_start=True, sort_keys=False, allow_unicode=True, width=100
    )
    return text
