"""A memory: its content, its source words, and its valid time (the ledger has the recorded time).

A date is as exact as it is known: `2026-03-14`, `2026-03` or `2026`. `since` means its first day, `until` its
last. A version that is a change ends the period of the version before; a correction, an addition or an edit
takes over that period.
"""

from calendar import monthrange
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mneme.core.errors import BadInput
from mneme.stores.ledger.records import Version

Holding = Literal["now", "later", "past"]
Kind = Literal["semantic", "episodic"]
RULES = "rules"
MAX_LINKS = 3
"""Maximum links from a new memory to memories that it may contradict."""
MAX_PAST = 3
"""Maximum earlier states, latest first, that a memory includes; its history has all of them."""


class Statement(BaseModel):
    """One statement in a memory: the text written down, the user's own words, and the message's id."""

    model_config = ConfigDict(frozen=True)

    content: str
    quote: str
    message_id: str = ""
    time: str = ""


class Past(BaseModel):
    """An earlier state of a memory: its text, and the period in which it held, as far as known."""

    model_config = ConfigDict(frozen=True)

    content: str
    since: str = ""
    until: str = ""

    @property
    def text(self) -> str:
        """What was true, with its time."""
        return f"{f'Until {self.until}' if self.until else 'Before'}: {self.content}"


class Memory(BaseModel):
    """One self-contained memory and its source words; `quote` and `message_id` are the latest."""

    model_config = ConfigDict(frozen=True)

    content: str
    kind: Kind = "semantic"
    entities: list[str] = []
    relations: list[str] = []
    quote: str = ""
    message_id: str = ""
    thread: str = ""
    time: str = ""
    since: str = ""
    """The day, month or year from which it holds; empty: not known."""
    until: str = ""
    """The last day, month or year in which it holds; empty: not known, or for good."""
    is_change: bool = False
    """Whether the version before it held until `since`; else this version takes over its period."""
    past: list[Past] = []
    """Its states before changes, latest first, without corrected or forgotten ones."""
    statements: list[Statement] = []
    """The statements that it was built from, oldest first; empty in memories of other origin."""
    read_by: str = ""
    """The reader of its message; `rules` until a model has read it; empty: written by hand."""
    may_contradict: list[str] = []
    """The keys of the memories that it may contradict, until this is settled.

    Only the newer of two memories stores the link; `UserMemories.linked` shows it on both.
    """
    flag: str = ""
    """The reason why a person should review it, or a remaining doubt; empty: none."""
    unclear: str = ""
    """A question to the user, because two people have the same name; empty: none."""
    asks: list[str] = []
    """The teams about which its owner is asked whether they may know it, by the owner's policy."""

    @property
    def holding(self) -> Holding:
        """Whether it holds today, later or in the past; without dates, it holds."""
        return self.holding_on(date.today())

    def holding_on(self, day: date) -> Holding:
        """Return whether it holds on a day, after it or before it."""
        return holding(self.since, self.until, day)

    @property
    def before(self) -> str:
        """The earlier states, after a space; empty if none is known."""
        return "".join(f" {each.text}" for each in self.past)

    @property
    def dated(self) -> str:
        """The content with its period, as far as known."""
        known = [f"{word} {day}" for word, day in (("from", self.since), ("until", self.until)) if day]
        return f"{self.content} ({', '.join(known)})" if known else self.content

    @property
    def timed(self) -> str:
        """The content with its period, and its earlier states."""
        return self.dated + self.before

    @property
    def attention(self) -> str:
        """The reasons why a person should review it, in one line; empty: none."""
        links = f"It may contradict {', '.join(self.may_contradict)}." if self.may_contradict else ""
        asks = f"May {', '.join(self.asks)} know it? Then promote it, else accept it." if self.asks else ""
        return " ".join(filter(None, [self.flag, self.unclear, links, asks]))


class MemoryRecord(BaseModel):
    """A memory in the ledger, with its key, its version, and its similarity to the query.

    >>> import mneme
    >>> with mneme.open("ann") as memory:
    ...     added = memory.memories.add("Ann has a dog.", entities=["Ann"])
    ...     edited = memory.memories.update(added.key, "Ann has two dogs.")
    >>> edited.version, edited.memory.content, edited.memory.entities
    (2, 'Ann has two dogs.', ['Ann'])
    """

    model_config = ConfigDict(frozen=True)

    key: str
    version: int
    live: bool
    at: datetime
    memory: Memory
    similarity: float | None = None
    scores: Mapping[str, float] = Field({}, exclude_if=lambda scores: not scores)
    """The `total` score in a search, and its parts, such as `dense` and `words`."""
    shared_with: Sequence[str] = Field((), exclude_if=lambda teams: not teams)
    """After a write: the teams that the owner's policy shared it with."""

    @property
    def text(self) -> str:
        """The content of the memory."""
        return self.memory.content

    @classmethod
    def of(cls, version: Version) -> "MemoryRecord":
        """Read a memory back from its version."""
        return cls(
            key=version.key,
            version=version.version,
            live=version.live,
            at=version.at,
            memory=Memory.model_validate(version.value),
        )


def days_of(day: str) -> tuple[date, date] | None:
    """Return the first and the last day of a day, month or year; None if the text is not a date."""
    filled = {4: "-01-01", 7: "-01"}.get(len(day), "")
    try:
        first = date.fromisoformat(day[:10] + filled)
    except ValueError:
        return None
    if not filled:
        return first, first
    in_last_month = first.replace(month=12) if len(day) == 4 else first  # a year ends with its December
    return first, in_last_month.replace(day=monthrange(in_last_month.year, in_last_month.month)[1])


def check_period(since: str, until: str) -> None:
    """Raise BadInput for an invalid day, month or year, or an end before its beginning."""
    for name, day in (("since", since), ("until", until)):
        if day and days_of(day) is None:
            raise BadInput(
                f"{name}: there is no day, month or year {day}.", "For example 2026-03-14 or 2026-03."
            )
    if not overlaps((since, ""), ("", until)):
        raise BadInput(f"until: {until} is before {since}, from when it holds.", "Give a later end, or none.")


def holding(since: str, until: str, today: date) -> Holding:
    """Return whether a period is current, future or past on a day."""
    begins, ends = days_of(since), days_of(until)
    if begins and begins[0] > today:
        return "later"
    return "past" if ends and ends[1] < today else "now"


def overlaps(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Return whether two periods from `since` until `until` share a day; an unknown end is open."""
    always = (date.min, date.max)
    (begins, ends), (other_begins, other_ends) = (
        ((days_of(since) or always)[0], (days_of(until) or always)[1]) for since, until in (one, other)
    )
    return begins <= other_ends and other_begins <= ends


def valid_at(history: Sequence[Version], day: date) -> Version | None:
    """Return the version of a memory that held on a day, from its whole history; None if none did.

    An unknown time counts as any time, except in versions that a later change replaced.
    """
    is_separate = True
    for version in reversed(history):
        value = version.value
        state = holding(_field(value, "since"), _field(value, "until"), day)
        # The newest version that had begun decides: if its period is over, none before it holds again.
        if is_separate and state != "later":
            return version if state == "now" and version.live else None
        is_separate = value.get("is_change") is True  # else it took over the period of the one before
    return None


def day_before(day: str) -> str:
    """Return the day before a day, month or year begins; empty if it is not a date."""
    days = days_of(day)
    return f"{days[0] - timedelta(days=1)}" if days else ""


def _field(value: Any, name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""
