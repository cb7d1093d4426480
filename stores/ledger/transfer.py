"""Bringing exported lines into a ledger: whole records or nothing, each broken line by its number."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import BaseModel, Field, ValidationError

from mneme.core.errors import BadInput, Conflict, MnemeError, first_fault
from mneme.models.embedding.embedders import Embedder, vectors_of
from mneme.stores.ledger.listing import versions_of
from mneme.stores.ledger.log import (
    NEVER,
    Head,
    Log,
    Tombstone,
    Transaction,
    heads_of,
    put_vector,
    tombstones_of,
)
from mneme.stores.ledger.records import (
    Namespace,
    Value,
    Version,
    check_name,
    check_namespace,
    check_value,
    microseconds,
)

Written = Callable[[Callable[[Transaction], int]], Awaitable[int]]
"""Writes to a log, and lets the index follow."""
BATCH_SIZE = 200


class Line(Version):
    """One exported version; `of` is how many its record has, so that a cut file is noticed."""

    of: int = Field(ge=1)


class Refused(BaseModel):
    """A line that was not imported, and why."""

    line: int
    reason: str


class ImportReport(BaseModel):
    """What an import did."""

    imported: int = 0
    unchanged: int = 0
    forgotten: int = 0
    refused: list[Refused] = []


class Record(NamedTuple):
    """The versions of one record, and how many it has; the numbers of their lines."""

    versions: list[Version]
    of: int
    lines: list[int]

    @property
    def id(self) -> str:
        return self.versions[0].record


@dataclass
class Import:
    """An import of lines below a prefix whose values `check` does not refuse (BadInput)."""

    write: Written
    log: Log
    embedder: Embedder
    within: Namespace = ()
    check: Callable[[Value], None] | None = None
    report: ImportReport = field(default_factory=ImportReport)

    async def run(self, lines: Iterable[str] | AsyncIterable[str]) -> ImportReport:
        """Import record after record, some hundred at a time."""
        waiting: list[Record] = []
        async for number, line in self._parsed(lines):
            version = Version(**{name: getattr(line, name) for name in Version.model_fields})
            if waiting and version.record == waiting[-1].id:
                waiting[-1].versions.append(version)
                waiting[-1].lines.append(number)
                continue
            if len(waiting) == BATCH_SIZE:
                await self._bring_in(waiting)
                waiting = []
            waiting.append(Record([version], line.of, [number]))
        await self._bring_in(waiting)
        self.report.refused.sort(key=lambda refused: refused.line)
        return self.report

    async def _parsed(self, lines: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[tuple[int, Line]]:
        """Yield the lines that can be read, by their numbers; refuse those that are broken."""
        number = 0
        async for text in _each(lines):
            number += 1
            if not text.strip():
                continue
            try:
                line = self._line(text)
            except ValidationError as broken:
                self._refuse([number], first_fault(broken).removesuffix("."))
            except BadInput as broken:
                self._refuse([number], str(broken))
            else:
                yield number, line

    def _line(self, text: str) -> Line:
        """Read a line. Raises ValidationError, BadInput."""
        line = Line.model_validate_json(text)
        if check_namespace(line.namespace)[: len(self.within)] != self.within:
            place, within = "/".join(line.namespace), "/".join(self.within)
            raise BadInput(f"it belongs to {place}, not to {within}")
        check_name(line.key, "key")
        check_value(line.value, line.text)
        if self.check is not None:
            self.check(line.value)
        return line

    async def _bring_in(self, records: Sequence[Record]) -> None:
        whole = [record for record in records if self._is_whole(record)]
        ids = [record.id for record in whole]
        forgotten = await self.log.read(tombstones_of, ids)
        wanted = [record for record in whole if not self._is_forgotten(record, forgotten)]
        heads = [record.versions[-1] for record in wanted]
        vectors = await vectors_of(self.embedder, [head.text for head in heads if head.live])
        works = (
            _brought_in(record.versions, vectors.get(head.text), forgotten.get(record.id, NEVER).last)
            for record, head in zip(wanted, heads, strict=True)
        )
        outcomes = await asyncio.gather(*map(self.write, works), return_exceptions=True)
        for record, done in zip(wanted, outcomes, strict=True):
            if isinstance(done, MnemeError):
                self._refuse(record.lines, str(done))
            elif isinstance(done, BaseException):
                raise done
            else:
                self.report.imported += done
                self.report.unchanged += len(record.lines) - done

    def _is_whole(self, record: Record) -> bool:
        first = record.versions[0].first
        last = first + record.of - 1
        if [version.version for version in record.versions] == list(range(first, last + 1)):
            return True
        reason = f"the record needs its versions {first} to {last}, each once and in order"
        self._refuse(record.lines, reason)
        return False

    def _is_forgotten(self, record: Record, forgotten: Mapping[str, Tombstone]) -> bool:
        """Say whether a record was there, here or elsewhere, when the one of its name was forgotten here."""
        if microseconds(record.versions[0].created) > forgotten.get(record.id, NEVER).at:
            return False
        self.report.forgotten += len(record.lines)
        return True

    def _refuse(self, lines: Iterable[int], reason: str) -> None:
        self.report.refused += [Refused(line=number, reason=reason) for number in lines]


async def _each(lines: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[str]:
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            yield line
    else:
        for line in lines:
            yield line


def _brought_in(
    versions: Sequence[Version], vector: Sequence[float] | None, last: int
) -> Callable[[Transaction], int]:
    """Return the work that adds the versions missing at a record's end, or refuses another history.

    `vector` is that of the last version's text; None where search does not look at it. The work returns how
    many versions it added.
    """
    first, root = versions[0].first, versions[0].record

    def work(transaction: Transaction) -> int:
        head: Head | None = heads_of(transaction.cursor, [root]).get(root)
        if head is None and first <= last:
            raise Conflict(f"a record of this name was forgotten here, up to version {last}")
        known = versions_of(transaction.cursor, [(root, each.version) for each in versions]) if head else {}
        differs = any(known.get((root, each.version), each) != each for each in versions)
        if differs or (head is not None and head.version.first != first):
            raise Conflict("the ledger holds another history of this record")
        missing = [each for each in versions if (root, each.version) not in known]
        for each in missing:
            transaction.add_version(each)
        if missing:
            transaction.delete("vectors", [root])
        if missing and vector is not None and missing[-1].live:
            put_vector(transaction, root, vector)
        return len(missing)

    return work
