"""Bringing exported lines into a ledger: whole records or nothing, each broken line by its number."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel, Field, ValidationError

from mneme.core.errors import BadInput, Conflict, MnemeError, first_fault
from mneme.models.embedding.embedders import Embedder, vectors_of
from mneme.stores.ledger.listing import tombstone_times, versions_of
from mneme.stores.ledger.log import Head, Log, Transaction, heads_of, last_numbers, put_vector, put_version
from mneme.stores.ledger.records import (
    Namespace,
    Value,
    Version,
    check_name,
    check_namespace,
    check_value,
    microseconds,
    record_id,
)

Written = Callable[[Callable[[Transaction], int]], Awaitable[int]]
"""Writes to a log, and lets the index follow."""
RECORDS_AT_ONCE = 200


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


class Accepted(NamedTuple):
    """Which lines are accepted: those below a prefix whose values `check` does not refuse (BadInput)."""

    within: Namespace = ()
    check: Callable[[Value], None] | None = None


class Record(NamedTuple):
    """The lines of one record, with their numbers."""

    lines: list[tuple[int, Line]]

    @property
    def id(self) -> str:
        return record_id(self.lines[0][1].namespace, self.lines[0][1].key)

    @property
    def first(self) -> int:
        return self.lines[0][1].first

    @property
    def versions(self) -> list[Version]:
        return [
            Version(**{name: getattr(line, name) for name in Version.model_fields}) for _, line in self.lines
        ]


async def import_lines(
    write: Written,
    log: Log,
    embedder: Embedder,
    lines: Iterable[str] | AsyncIterable[str],
    accepted: Accepted,
) -> ImportReport:
    """Import record after record, some hundred at a time."""
    report = ImportReport()
    waiting: list[Record] = []
    async for record in _records(lines, accepted, report):
        waiting.append(record)
        if len(waiting) == RECORDS_AT_ONCE:
            await _import(write, log, embedder, waiting, report)
            waiting = []
    await _import(write, log, embedder, waiting, report)
    report.refused.sort(key=lambda refused: refused.line)
    return report


async def _records(
    lines: Iterable[str] | AsyncIterable[str], accepted: Accepted, report: ImportReport
) -> AsyncIterator[Record]:
    """Gather consecutive lines of one record; refuse lines that are broken."""
    gathered: list[tuple[int, Line]] = []
    number = 0
    async for text in _each(lines):
        number += 1
        line = _parse(number, text, accepted, report) if text.strip() else None
        if line is None:
            continue
        if gathered and (line.namespace, line.key) != (gathered[0][1].namespace, gathered[0][1].key):
            yield Record(gathered)
            gathered = []
        gathered.append((number, line))
    if gathered:
        yield Record(gathered)


async def _each(lines: Iterable[str] | AsyncIterable[str]) -> AsyncIterator[str]:
    if isinstance(lines, AsyncIterable):
        async for line in lines:
            yield line
    else:
        for line in lines:
            yield line


def _parse(number: int, text: str, accepted: Accepted, report: ImportReport) -> Line | None:
    try:
        line = Line.model_validate_json(text)
        _check_within(check_namespace(line.namespace), accepted.within)
        check_name(line.key, "key")
        check_value(line.value, line.text)
        if accepted.check is not None:
            accepted.check(line.value)
    except ValidationError as broken:
        report.refused.append(Refused(line=number, reason=first_fault(broken).removesuffix(".")))
    except BadInput as broken:
        report.refused.append(Refused(line=number, reason=str(broken)))
    else:
        return line
    return None


def _check_within(namespace: Namespace, within: Namespace) -> None:
    if namespace[: len(within)] != within:
        raise BadInput(f"it belongs to {'/'.join(namespace)}, not to {'/'.join(within)}")


async def _import(
    write: Written, log: Log, embedder: Embedder, records: Sequence[Record], report: ImportReport
) -> None:
    whole = [record for record in records if _is_whole(record, report)]
    ids = [record.id for record in whole]
    forgotten = await log.read(tombstone_times, ids)
    wanted = [record for record in whole if not _is_forgotten(record, forgotten, report)]
    last = await log.read(last_numbers, ids)
    heads = [record.versions[-1] for record in wanted]
    vectors = await vectors_of(embedder, [head.text for head in heads if head.live])

    async def bring(record: Record) -> int | MnemeError:
        vector = vectors.get(record.versions[-1].text)
        try:
            return await write(_brought_in(record, vector, last.get(record.id, 0)))
        except MnemeError as refusal:
            return refusal

    for record, done in zip(wanted, await asyncio.gather(*map(bring, wanted)), strict=True):
        if isinstance(done, MnemeError):
            _refuse(record, str(done), report)
        else:
            report.imported += done
            report.unchanged += len(record.lines) - done


def _is_whole(record: Record, report: ImportReport) -> bool:
    first, last = record.first, record.first + record.lines[0][1].of - 1
    if [line.version for _, line in record.lines] == list(range(first, last + 1)):
        return True
    _refuse(record, f"the record needs its versions {first} to {last}, each once and in order", report)
    return False


def _is_forgotten(record: Record, forgotten: Mapping[str, int], report: ImportReport) -> bool:
    """Say whether a record was there, here or elsewhere, when the one of its name was forgotten here."""
    moment = forgotten.get(record.id)
    if moment is None or microseconds(record.lines[0][1].created) > moment:
        return False
    report.forgotten += len(record.lines)
    return True


def _refuse(record: Record, reason: str, report: ImportReport) -> None:
    report.refused += [Refused(line=number, reason=reason) for number, _ in record.lines]


def _brought_in(record: Record, vector: Sequence[float] | None, last: int) -> Callable[[Transaction], int]:
    """Return the work that adds the versions missing at a record's end, or refuses another history.

    `vector` is that of the last version's text; None where search does not look at it. The work returns how
    many versions it added.
    """
    versions, root = record.versions, record.id

    def work(transaction: Transaction) -> int:
        head: Head | None = heads_of(transaction.cursor, [root]).get(root)
        if head is None and record.first <= last:
            raise Conflict(f"a record of this name was forgotten here, up to version {last}")
        known = versions_of(transaction.cursor, [(root, each.version) for each in versions]) if head else {}
        differs = any(known.get((root, each.version), each) != each for each in versions)
        if differs or (head is not None and head.version.first != record.first):
            raise Conflict("the ledger holds another history of this record")
        missing = [each for each in versions if (root, each.version) not in known]
        for each in missing:
            put_version(transaction, root, each)
        if missing:
            transaction.delete("vectors", "record", [root])
        if missing and vector is not None and missing[-1].live:
            put_vector(transaction, root, vector)
        return len(missing)

    return work
