"""A user's memories and what became of them, as a model reads them."""

from collections.abc import Sequence
from datetime import datetime

from pydantic import BaseModel, Field

from mneme.api.memories import Erased, Written
from mneme.api.remembering import Remembered
from mneme.integrations.brief import Brief, alike, short
from mneme.stores.ledger.records import Version
from mneme.stores.users.memories import MemoryRecord
from mneme.stores.users.valid_time import holds

LATEST = 20
"""Versions that are shown of one memory, and places that may still hold one that was erased."""


class MemoryLine(BaseModel):
    """A memory: its key for other tools, its words, since when, and how similar to what was searched for."""

    key: str
    content: str
    since: str = Field(description="When it was told, or last changed.")
    similarity: float | None = Field(None, description="The cosine to the query; none: not searched for.")
    holds: str = Field("", description="From when until when it holds, where known.")
    unclear: str = Field("", description="What the user should be asked about it; empty: nothing.")
    may_contradict: list[str] = Field([], description="The keys of memories that it may contradict.")

    @property
    def line(self) -> str:
        unclear = f" Unclear: {self.unclear}" if self.unclear else ""
        links = f" It may contradict {', '.join(self.may_contradict)}." if self.may_contradict else ""
        holds = f" {self.holds}" if self.holds else ""
        return (
            f"[{self.key}] {self.content}{holds} (since {self.since}{alike(self.similarity)}){unclear}{links}"
        )


class MemoryLines(Brief):
    """Memories, the best or the oldest first."""

    memories: list[MemoryLine]

    def lines(self) -> list[str]:
        return [each.line for each in self.memories] or ["No memories."]


class RememberedLine(Brief):
    """What became of a text that was to be remembered."""

    status: str = Field(description="stored, discarded, waiting (it goes on in the background) or failed.")
    why: str = ""
    keys: list[str] = Field([], description="The keys of the memories that were written or changed.")

    def lines(self) -> list[str]:
        keys = f" Memories: {', '.join(self.keys)}." if self.keys else ""
        return [f"{self.status}{f': {self.why}' if self.why else '.'}{keys}"]


class VersionLine(BaseModel):
    """One version of a memory: what was done, when, by whom, why, and its words since then."""

    version: int
    event: str
    at: str
    by: str
    reason: str
    content: str
    doubt: str = Field("", description="What stayed in doubt of it, or why to look at it; empty: nothing.")


class History(Brief):
    """The versions of a memory, the oldest first."""

    versions: list[VersionLine]

    def lines(self) -> list[str]:
        return [
            f"version {each.version}, {each.event} at {each.at} by {each.by}: {each.content} "
            f"(reason: {each.reason or 'none given'}){f' {each.doubt}' if each.doubt else ''}"
            for each in self.versions
        ]


class Undone(Brief):
    """The memory whose latest change was taken back, as it is now; none: there was nothing to take back."""

    memory: MemoryLine | None
    recalled: bool = Field(False, description="Whether the memory is recalled now.")

    def lines(self) -> list[str]:
        if self.memory is None:
            return ["There is no change to take back."]
        now = "It is now" if self.recalled else "It is not recalled any more; it was"
        return [f"{now}: {self.memory.line}"]


class ErasedLine(Brief):
    """What was erased, and what may still hold it."""

    records: int
    turns: int = Field(description="Turns of conversations in which it was said, now empty.")
    left: list[str] = Field([], description="Files and backups that may still hold it; a person decides.")

    def lines(self) -> list[str]:
        erased = f"Erased for good: {self.records} memories, {self.turns} turns of conversations."
        return [erased, *(f"May still hold it: {each}" for each in self.left)]


def memories(found: Sequence[MemoryRecord]) -> MemoryLines:
    return MemoryLines(memories=[_memory(each) for each in found])


def remembered(told: Sequence[Remembered]) -> RememberedLine:
    (one,) = told
    done = one.outcome
    keys = [each["key"] for each in done["operations"] if each["event"] != "discard"] if done else []
    why = done["rationale"] if done else one.error
    return RememberedLine(status=one.status, why=short(why), keys=list(dict.fromkeys(keys)))


class WrittenLine(Brief):
    """A memory that was written word for word, and those that it may contradict or repeat."""

    memory: MemoryLine
    is_new: bool = Field(description="Whether it was written; else it was there already, word for word.")
    beside: list[MemoryLine] = Field([], description="Memories that it may contradict or repeats; linked.")

    def lines(self) -> list[str]:
        done = "Written" if self.is_new else "It was there already"
        return [f"{done}: {self.memory.line}", *(f"Compare it with: {each.line}" for each in self.beside)]


def written(record: Written) -> WrittenLine:
    beside = [_memory(each) for each in record.beside]
    return WrittenLine(memory=_memory(record), is_new=record.is_new, beside=beside)


def history(versions: Sequence[Version]) -> History:
    return History(versions=[_version(each) for each in versions[-LATEST:]])


def undone(record: MemoryRecord | None) -> Undone:
    if record is None:
        return Undone(memory=None)
    return Undone(memory=_memory(record), recalled=record.live)


def erased(what: Erased) -> ErasedLine:
    return ErasedLine(records=what.records, turns=what.turns, left=[*what.left, *what.backups][:LATEST])


def _memory(record: MemoryRecord) -> MemoryLine:
    memory = record.memory
    since = memory.time or _moment(record.at)
    return MemoryLine(
        key=record.key,
        content=short(memory.content),
        since=short(since)[:16].replace("T", " "),
        similarity=None if record.similarity is None else round(record.similarity, 2),
        holds=holds("", memory.since, memory.until).strip(),
        unclear=short(memory.unclear),
        may_contradict=memory.may_contradict,
    )


def _version(version: Version) -> VersionLine:
    return VersionLine(
        version=version.version,
        event=version.event,
        at=_moment(version.at),
        by=short(version.change.actor),
        reason=short(version.change.reason),
        content=short(str(version.value.get("content", ""))),
        doubt=short(str(version.value.get("flag") or "")),
    )


def _moment(at: datetime) -> str:
    return at.astimezone().strftime("%Y-%m-%d %H:%M")
