"""Typed shelves: the records of one kind in one namespace of the ledger.

All memories handle their records alike: they add one, decide on its next version from its state at the moment
of writing, list them, and read their history. The kind defines how a record is read, its text for search, and
its part of the namespace. Lifecycles are pure functions, which `Shelf.change` applies. The functions at the
end read records that other programs may have written.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from mneme.core.errors import BadInput, Conflict, NotFound, first_fault
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.log import retry_on_conflict
from mneme.stores.ledger.reading import heads_of, vectors_by_ids
from mneme.stores.ledger.records import Change, Namespace, Value, Version, Write, make_write, record_id

log = logging.getLogger(__name__)
Model = TypeVar("Model", bound=BaseModel)
Stored = TypeVar("Stored", bound=BaseModel)
Record = TypeVar("Record")
Read = TypeVar("Read")
Decide = Callable[[Record], tuple[Stored, str] | None]
"""Returns a record's next value and the reason, from its state at the moment of writing; None: no change."""


@dataclass(frozen=True)
class RecordKind(Generic[Stored, Record]):
    """How one kind of record is written (`Stored`) and read (`Record`)."""

    read: Callable[[Version], Record]
    text: Callable[[Stored], str] = lambda _: ""
    """Returns the text for search; empty: the record is not searched."""
    part: Callable[[Stored], str | None] = lambda _: None
    """Returns the part (shelf) of the namespace for a record, which can be searched alone."""
    beside: Callable[[Stored], Value] = lambda _: {}
    """Returns values that are stored beside the model's, for filters and ranking."""
    outside: frozenset[str] = frozenset()
    """Fields of the model that are not stored, since the version has them."""
    missing: str = "There is no record {key}."
    hint: str = ""


def kind_of(model: type[Model], **options: Any) -> RecordKind[Model, Model]:
    """Return the kind of records that store all fields of a model, with further `options` of the kind."""
    return RecordKind(lambda version: model.model_validate(version.value), **options)


class Shelf(Generic[Stored, Record]):
    """The records of one kind in one namespace; it reaches no others.

    A write that is repeated with its idempotency key returns the version that it made the first time.
    """

    def __init__(self, ledger: Ledger, namespace: Namespace, kind: RecordKind[Stored, Record]) -> None:
        self.ledger, self.namespace, self.kind = ledger, namespace, kind
        self.search = partial(ledger.search, namespace)
        """Returns the live records that fit best; its other arguments are those of `Ledger.search`."""
        self.count = partial(ledger.count, namespace)
        """Returns the number of records; its other arguments are those of `Ledger.count`."""

    def read(self, versions: Iterable[Version]) -> list[Record]:
        return [self.kind.read(version) for version in versions]

    async def find(self, key: str) -> Record | None:
        """Return a live record; None if there is none."""
        head = await self.ledger.get(self.namespace, key)
        return self.kind.read(head) if head is not None and head.live else None

    async def get(self, key: str) -> Record:
        """Return a record as it is now, live or retired. Raises NotFound."""
        return self.kind.read(await self.head(key))

    async def head(self, key: str) -> Version:
        """Return the latest version of a record. Raises NotFound."""
        head = await self.ledger.get(self.namespace, key)
        if head is None:
            raise NotFound(self.kind.missing.replace("{key}", key), self.kind.hint)
        return head

    async def heads(self, limit: int | None = None, **options: Any) -> Sequence[Version]:
        """Return the latest versions of records; `options` are those of `Ledger.records`."""
        return await self.ledger.records(self.namespace, limit=limit, **options)

    async def all(self, limit: int | None = None, **options: Any) -> Sequence[Record]:
        """Return records in the order of their first writing; all of them without a limit."""
        return self.read(await self.heads(limit, **options))

    async def latest(self, limit: int, **options: Any) -> Sequence[Record]:
        """Return the most recently created records, oldest first."""
        return self.read(reversed(await self.heads(limit, newest_first=True, **options)))

    async def by_keys(self, keys: Sequence[str]) -> Sequence[Version]:
        """Return the latest versions of these records, in this order, without missing ones."""
        ids = [record_id(self.namespace, key) for key in keys]
        found = await self.ledger.read(heads_of, ids)
        return [found[each] for each in ids if each in found]

    async def vectors(self, keys: Iterable[str]) -> Mapping[str, Sequence[float]]:
        """Return the vectors of these records by key, without records that have none."""
        named = {record_id(self.namespace, key): key for key in keys}
        found = await self.ledger.read(vectors_by_ids, [*named])
        return {named[record]: vector for record, vector in found.items()}

    async def versions(self, key: str) -> Sequence[Record]:
        """Return all versions of a record, oldest first. Raises NotFound."""
        await self.head(key)  # its NotFound is in the kind's own words
        return self.read(await self.ledger.history(self.namespace, key))

    def write(
        self,
        key: str | None,
        value: Stored,
        change: Change,
        expected_version: int | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Write:
        """Return the write that inserts a record, or updates it after the expected version."""
        kept = value.model_dump(mode="json", exclude={*self.kind.outside})
        return make_write(
            event="insert" if expected_version is None else "update",
            namespace=self.namespace,
            key=key,
            value={**kept, **self.kind.beside(value)},
            text=self.kind.text(value),
            change=change,
            expected_version=expected_version,
            idempotency_key=idempotency_key,
            shelf=self.kind.part(value),
        )

    async def put_write(
        self, key: str, value: Stored, change: Change, *, idempotency_key: str | None = None
    ) -> Write:
        """Return the write that inserts a record, or updates the one with that key."""
        head = await self.ledger.get(self.namespace, key)
        version = head.version if head else None  # if another writer is first, the write is a Conflict
        return self.write(key, value, change, version, idempotency_key=idempotency_key)

    async def insert(
        self,
        value: Stored,
        *,
        change: Change,
        key: str | None = None,
        idempotency_key: str | None = None,
    ) -> Record:
        """Add a record. Raises Conflict if the key is taken."""
        return await self._written(self.write(key, value, change, idempotency_key=idempotency_key))

    async def add_new(self, key: str, value: Stored, *, change: Change) -> bool:
        """Add a record; return False if the key is taken."""
        try:
            await self.insert(value, change=change, key=key)
        except Conflict:
            return False
        return True

    async def update(
        self,
        key: str,
        value: Stored,
        *,
        change: Change,
        expected_version: int,
        idempotency_key: str | None = None,
    ) -> Record:
        """Write the version that follows the expected one. Raises Conflict, NotFound."""
        write = self.write(key, value, change, expected_version, idempotency_key=idempotency_key)
        return await self._written(write)

    async def put(
        self, key: str, value: Stored, *, change: Change, idempotency_key: str | None = None
    ) -> Record:
        """Insert a record, or update the one with that key. Raises Conflict."""
        return await self._written(await self.put_write(key, value, change, idempotency_key=idempotency_key))

    async def retire(
        self, key: str, *, change: Change, expected_version: int, idempotency_key: str | None = None
    ) -> Record:
        """Take a record out of every search, keeping its history. Raises Conflict, NotFound."""
        return await self._written(
            self.retirement(key, change, expected_version, idempotency_key=idempotency_key)
        )

    async def rollback(
        self, key: str, to_version: int, *, change: Change, expected_version: int | None = None
    ) -> Record:
        """Write a new version that equals an older one. Raises Conflict, NotFound."""
        given = (self.namespace, key, to_version, expected_version)
        return await self._written(await self.ledger.rolled_back(*given, change=change))

    @retry_on_conflict  # decided again from what another writer has written meanwhile
    async def change(self, key: str, decide: Decide[Record, Stored], change: Change) -> Record:
        """Write a record's next version, decided from its state at the moment of writing. Raises NotFound."""
        head = await self.head(key)
        write = self.decided(head, decide, change)
        return self.kind.read(head) if write is None else await self._written(write)

    def decided(self, head: Version, decide: Decide[Record, Stored], change: Change) -> Write | None:
        """Return the write of a record's next version; None if the decision changes nothing."""
        decision = decide(self.kind.read(head))
        if decision is None:
            return None
        value, reason = decision
        return self.write(head.key, value, change.model_copy(update={"reason": reason}), head.version)

    def retirement(
        self,
        key: str,
        change: Change,
        expected_version: int | None,
        *,
        idempotency_key: str | None = None,
    ) -> Write:
        """Return the write that takes a record out of every search."""
        return make_write(
            event="retire",
            namespace=self.namespace,
            key=key,
            change=change,
            expected_version=expected_version,
            idempotency_key=idempotency_key,
        )

    async def _written(self, write: Write) -> Record:
        return self.kind.read((await self.ledger.write([write]))[0])


def readable(read: Callable[[Version], Read], versions: Iterable[Version]) -> list[Read]:
    """Read records; skip those that another program wrote in an unknown form, with one warning each."""
    found: list[Read] = []
    for version in versions:
        try:
            found.append(read(version))
        except ValidationError as broken:
            _warn(version.key, version.version, first_fault(broken))
    return found


@lru_cache(maxsize=4096)  # once per process, not with every search
def _warn(key: str, version: int, reason: str) -> None:
    log.warning("Record %s, version %d, is passed over: %s %s", key, version, reason, _advice(key))


def read_one(read: Callable[[Version], Read], version: Version) -> Read:
    """Read a record that was requested by its key. Raises BadInput if it cannot be read."""
    try:
        return read(version)
    except ValidationError as broken:
        raise BadInput(
            f"Record {version.key} cannot be read: {first_fault(broken)}", _advice(version.key)
        ) from broken


def check_readable(model: type[BaseModel], what: str, value: Value) -> None:
    """Refuse a value that could not be read back as this model. Raises BadInput."""
    try:
        model.model_validate(value)
    except ValidationError as broken:
        raise BadInput(f"its value is not a {what}: {first_fault(broken)}") from broken


def _advice(key: str) -> str:
    return f"`mneme memories history {key}` shows it as it is; `mneme memories forget {key}` erases it."
