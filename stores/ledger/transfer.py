"""Bringing exported lines into a ledger: whole records or nothing, each broken line by its number."""

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from pydantic import BaseModel, Field, ValidationError

from mneme.core.errors import BadInput, Conflict, MnemeError
from mneme.models.embedding.embedders import Embedder, vectors_of
from mneme.stores.ledger.deciding import last_number
from mneme.stores.ledger.engine import Engine, Entry, Payload, Point, Step, head_point, version_point
from mneme.stores.ledger.records import (
    Namespace,
    Value,
    Version,
    check_name,
    check_namespace,
    check_value,
    microseconds,
    receipt_id,
    record_id,
    tombstone_id,
    version_id,
)
from mneme.stores.ledger.words import words_of

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
    engine: Engine, embedder: Embedder, lines: Iterable[str] | AsyncIterable[str], accepted: Accepted
) -> ImportReport:
    """Import record after record, some hundred at a time."""
    report = ImportReport()
    waiting: list[Record] = []
    async for record in _records(lines, accepted, report):
        waiting.append(record)
        if len(waiting) == RECORDS_AT_ONCE:
            await _import(engine, embedder, waiting, report)
            waiting = []
    await _import(engine, embedder, waiting, report)
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
        first = broken.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        report.refused.append(Refused(line=number, reason=f"{where}: {first['msg']}".removeprefix(": ")))
    except BadInput as broken:
        report.refused.append(Refused(line=number, reason=str(broken)))
    else:
        return line
    return None


def _check_within(namespace: Namespace, within: Namespace) -> None:
    if namespace[: len(within)] != within:
        raise BadInput(f"it belongs to {'/'.join(namespace)}, not to {'/'.join(within)}")


async def _import(
    engine: Engine, embedder: Embedder, records: Sequence[Record], report: ImportReport
) -> None:
    whole = [record for record in records if _is_whole(record, report)]
    seen = await engine.read([point for record in whole for point in (record.id, tombstone_id(record.id))])
    wanted = [record for record in whole if not _is_forgotten(record, seen, report)]
    heads = [record.versions[-1] for record in wanted]
    vectors = await vectors_of(embedder, [head.text for head in heads if head.live])
    for record in wanted:
        here = seen[record.id]["n"] - record.first + 1 if record.id in seen else 0
        last = last_number(seen.get(tombstone_id(record.id)))
        if not here and record.first <= last:
            _refuse(record, f"a record of this name was forgotten here, up to version {last}", report)
            continue
        await _import_one(engine, record, vectors, here, report)


def _is_whole(record: Record, report: ImportReport) -> bool:
    first, last = record.first, record.first + record.lines[0][1].of - 1
    if [line.version for _, line in record.lines] == list(range(first, last + 1)):
        return True
    _refuse(record, f"the record needs its versions {first} to {last}, each once and in order", report)
    return False


def _is_forgotten(record: Record, seen: Mapping[str, Payload], report: ImportReport) -> bool:
    """Say whether a record was there, here or elsewhere, when the one of its name was forgotten here."""
    tombstone = seen.get(tombstone_id(record.id))
    if tombstone is None or microseconds(record.lines[0][1].created) > tombstone["created"]:
        return False
    report.forgotten += len(record.lines)
    return True


async def _import_one(
    engine: Engine, record: Record, vectors: Mapping[str, list[float]], here: int, report: ImportReport
) -> None:
    try:
        versions = record.versions
        await engine.append([history_step(versions, vectors.get(versions[-1].text))])
    except MnemeError as refusal:
        _refuse(record, str(refusal), report)
        return
    report.unchanged += min(here, len(record.lines))
    report.imported += max(0, len(record.lines) - here)


def _refuse(record: Record, reason: str, report: ImportReport) -> None:
    report.refused += [Refused(line=number, reason=reason) for number, _ in record.lines]


def history_step(versions: Sequence[Version], vector: Sequence[float] | None) -> Step:
    """Return the step that adds the versions missing at a record's end, or refuses another history.

    `vector` is that of the last version's text; None where search does not look at it.
    """
    last = versions[-1]
    root = record_id(last.namespace, last.key)
    claims = [version_point(version_id(root, version.version), version) for version in versions]
    words = words_of(last.text) if last.text.strip() else None
    head = head_point(root, last, claims[-1].payload["event"], vector, words)
    receipts = tuple(
        Point(receipt_id(root, version.idempotency_key), {"version": version.version})
        for version in versions
        if version.idempotency_key
    )

    def decide(seen: Mapping[str, Payload]) -> Entry | str:
        head_now = Version.model_validate_json(seen[root]["event"]) if root in seen else last
        differs = any(seen.get(each.id, each.payload)["event"] != each.payload["event"] for each in claims)
        if differs or head_now.first != last.first:
            raise Conflict("the ledger holds another history of this record")
        missing = tuple(claim for claim in claims if claim.id not in seen)
        return Entry(last, missing, head, receipts) if missing else claims[-1].id

    return Step(root, (root, *(claim.id for claim in claims)), decide)
