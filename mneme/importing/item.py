"""The result of every reader: the items that another program stored of a user, and those left out."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

from mneme.api.inbox import MAX_MESSAGE_CHARS
from mneme.core.errors import BadInput
from mneme.stores.users.memory import Kind

TOO_LONG = f"longer than {MAX_MESSAGE_CHARS:,} characters"
WITHOUT_WORDS = "without words"
UNDATED = "without a date"
OLDER = "older than the date given"
BEYOND = "beyond the number given"


class State(NamedTuple):
    """The text of a memory at its source from a time on; None: the source does not give the time."""

    text: str
    time: datetime | None


@dataclass(frozen=True)
class Item:
    """One message, memory or statement of a note. Its `id` is the same at each reading."""

    id: str
    text: str
    time: datetime | None
    thread: str
    """The conversation, store or note in which it was found."""
    before: Sequence[str] = ()
    """The turns before it, oldest first; in a note, its title, headings and leading lines."""
    kind: Kind = "semantic"
    earlier: Sequence[State] = ()
    """Earlier texts of a memory, oldest first."""
    since: datetime | None = None
    """Start of the current text's validity; None: `time`."""
    owner: Sequence[str] = ()
    """Owner at the source: a name, or the parts of a namespace."""


@dataclass
class Reading:
    """The items that a reader found, in the order of the source, and the number left out by reason."""

    items: list[Item] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    """Notes about single files, for a person."""

    def take(self, item: Item) -> None:
        """Add an item, unless its text is empty or too long."""
        if not any(each.isalnum() for each in item.text):
            self.skipped[WITHOUT_WORDS] += 1
        elif len(item.text) > MAX_MESSAGE_CHARS:
            self.skipped[TOO_LONG] += 1
        else:
            self.items.append(item)

    def chosen(self, since: datetime | None, limit: int | None) -> "Reading":
        """Return the items since a time, each id once, the oldest first, at most `limit`."""
        once = list({each.id: each for each in self.items}.values())
        dated = [each for each in once if since is None or (each.time and each.time >= since)]
        dated.sort(key=lambda each: each.time or datetime.max.replace(tzinfo=UTC))
        kept = dated[:limit]  # the oldest: the next import brings what was told later
        undated = sum(each.time is None for each in once) if since else 0
        more = {UNDATED: undated, OLDER: len(once) - len(dated) - undated, BEYOND: len(dated) - len(kept)}
        return Reading(kept, Counter(self.skipped) + Counter(more), self.notes)  # `+` drops counts of 0


def of_owner(found: Iterable[Item | None], wanted: str, option: str, empty: BadInput) -> Reading:
    """Return the memories of the selected owner, or of all if there is only one; `*` is everybody.

    None stands for an entry without words. Raises `empty` if no entry has words, and BadInput with the
    owners' names if none of several is chosen, or the chosen one has no memories.
    """
    whole = [*found]
    items = [each for each in whole if each is not None]
    if not items:
        raise empty
    reading, chosen = Reading(), tuple(filter(None, wanted.split("/")))
    reading.skipped["entries without words"] = len(whole) - len(items)
    mine = items if wanted == "*" else [each for each in items if each.owner[: len(chosen)] == chosen]
    owners = Counter("/".join(each.owner) for each in mine or items)
    if not mine or (len(owners) > 1 and not chosen):
        problem = f"Nothing there is of {wanted}." if chosen else "It holds what is of several owners."
        named = sorted(owners.items(), key=lambda each: (-each[1], each[0]))[:10]
        listed = ", ".join(f"{name} ({number})" for name, number in named)
        raise BadInput(problem, f"Say {option} and one of: {listed}. {option} '*' takes all.")
    for item in mine:
        reading.take(item)
    return reading


def id_of(*parts: str) -> str:
    """Return an id derived from these texts: as long as our own ids, and safe for any content of a file."""
    return sha256("\x1f".join(parts).encode(errors="replace")).hexdigest()[:32]


def clean(text: object) -> str:
    """Return text without lone surrogates, which JSON allows; "" for a value that is not text."""
    return text.encode(errors="replace").decode().strip() if isinstance(text, str) else ""


def first_time(*given: Any) -> datetime | None:
    """Return the first value that is a time, in the local zone.

    It is one in seconds since 1970, or in ISO 8601 (UTC where it has no zone).
    """
    for each in given:
        try:
            if isinstance(each, datetime):
                found = each
            elif isinstance(each, int | float) and not isinstance(each, bool):  # True is an int
                found = datetime.fromtimestamp(each, UTC)
            else:
                found = datetime.fromisoformat(str(each))
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone()
        except (ValueError, OverflowError, OSError):  # `fromtimestamp` raises each of them
            continue
    return None


def as_dict(given: Any) -> dict[str, Any]:
    """Return an object of JSON; an empty one for anything else."""
    return given if isinstance(given, dict) else {}


def as_list(given: Any) -> Sequence[Any]:
    """Return an array of JSON; an empty one for anything else."""
    return given if isinstance(given, list) else ()
