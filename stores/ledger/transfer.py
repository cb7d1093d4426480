"""The import of exported lines: each record whole or not at all; broken lines are reported by number."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice

from pydantic import BaseModel, Field, ValidationError

from mneme.core.errors import BadInput, Conflict, MnemeError, first_fault
from mneme.models.embedding.embedders import Embedder, vectors_of
from mneme.stores.ledger.log import Transaction
from mneme.stores.ledger.reading import NOT_FORGOTTEN, heads_of, tombstones_of, versions_of
from mneme.stores.ledger.records import Namespace, Value, Version, check, microseconds

Written = Callable[[Callable[[Transaction], int | None]], Awaitable[int | None]]
"""Writes to a log, and lets the index follow."""
IMPORT_BATCH_SIZE = 200


class Line(Version):
    """One exported version; `of` is the number of versions of its record, so that a cut file is noticed."""

    of: int = Field(ge=1)


class Refused(BaseModel):
    """A line that was not imported, and the reason."""

    line: int
    reason: str


class ImportReport(BaseModel):
    """The result of an import."""

    imported: int = 0
    unchanged: int = 0
    forgotten: int = 0
    refused: list[Refused] = []


@dataclass
class Import:
    """An import of lines below a prefix whose values `check` does not refuse (BadInput)."""

    write: Written
    embedder: Embedder
    within: Namespace = ()
    check: Callable[[Value], None] | None = None
    report: ImportReport = field(default_factory=ImportReport)

    async def run(self, lines: Iterable[str]) -> ImportReport:
        """Import record after record, some hundred at a time."""
        records = (
            [*numbered] for _, numbered in groupby(self._parsed(lines), key=lambda each: each[1].record)
        )
        while batch := [*islice(records, IMPORT_BATCH_SIZE)]:
            await self._bring_in(batch)
        self.report.refused.sort(key=lambda refused: refused.line)
        return self.report

    def _parsed(self, lines: Iterable[str]) -> Iterator[tuple[int, Line]]:
        """Yield the lines that can be read, by their numbers; refuse those that are broken."""
        for number, text in enumerate(lines, 1):
            try:
                if text.strip():
                    yield number, self._line(text)
            except ValidationError as broken:
                self._refuse([number], first_fault(broken).removesuffix("."))
            except BadInput as broken:
                self._refuse([number], str(broken))

    def _line(self, text: str) -> Line:
        """Read a line. Raises ValidationError, BadInput."""
        line = Line.model_validate_json(text)
        check(line)
        if line.namespace[: len(self.within)] != self.within:
            place, within = "/".join(line.namespace), "/".join(self.within)
            raise BadInput(f"it belongs to {place}, not to {within}")
        if self.check is not None:
            self.check(line.value)
        return line

    async def _bring_in(self, records: Sequence[Sequence[tuple[int, Line]]]) -> None:
        texts = [line.text for *_, (_, line) in records if line.live]
        vectors = await vectors_of(self.embedder, texts)
        works = (partial(_brought_in, lines=[line for _, line in each], vectors=vectors) for each in records)
        # One record that fails must not leave the outcome of the others unknown.
        outcomes = await asyncio.gather(*map(self.write, works), return_exceptions=True)
        for record, added in zip(records, outcomes, strict=True):
            if isinstance(added, MnemeError):
                self._refuse([number for number, _ in record], str(added))
            elif isinstance(added, BaseException):
                raise added
            elif added is None:
                self.report.forgotten += len(record)
            else:
                self.report.imported += added
                self.report.unchanged += len(record) - added

    def _refuse(self, lines: Iterable[int], reason: str) -> None:
        self.report.refused += [Refused(line=number, reason=reason) for number in lines]


def _brought_in(
    transaction: Transaction, lines: Sequence[Line], vectors: Mapping[str, Sequence[float]]
) -> int | None:
    """Add the versions missing at a record's end; return how many, or None where it was forgotten here.

    Raises Conflict where lines are missing, or the record has another history here.
    """
    root, first, last = lines[0].record, lines[0].first, lines[0].first + lines[0].of - 1
    if [line.version for line in lines] != [*range(first, last + 1)]:
        raise Conflict(f"the record needs its versions {first} to {last}, each once and in order")
    head = heads_of(transaction.cursor, [root]).get(root)
    forgotten = tombstones_of(transaction.cursor, [root]).get(root, NOT_FORGOTTEN)
    if microseconds(lines[0].created) <= forgotten.at:  # from before it was forgotten here
        return None
    if head is None and first <= forgotten.last:
        raise Conflict(f"a record of this name was forgotten here, up to version {forgotten.last}")
    versions = {(root, line.version): Version(**dict(line)) for line in lines}
    known = versions_of(transaction.cursor, versions) if head else {}
    differs = any(known[each] != versions[each] for each in known)
    if differs or (head is not None and head.first != first):
        raise Conflict("the ledger holds another history of this record")
    missing = [version for each, version in versions.items() if each not in known]
    for version in missing:
        transaction.add_version(version, vectors)
    return len(missing)
