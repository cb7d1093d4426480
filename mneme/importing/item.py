"""What every reader returns: the things that another program kept of a user, and what it passed over."""

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
    """How a memory read at its source from some time on; None: the source does not say when."""

    text: str
    time: datetime | None


@dataclass(frozen=True)
class Item:
    """One message, memory or statement of a note. Its `id` is the same each time the source is read."""

    id: str
    text: str
    time: datetime | None
    thread: str
    """The conversation, store or note that it is from."""
    before: Sequence[str] = ()
    """The turns before it, oldest first, or where in a note it stands."""
    kind: Kind = "semantic"
    earlier: Sequence[State] = ()
    """What a memory said before, oldest first."""
    since: datetime | None = None
    """Since when a memory says this; None: since `time`."""
    owner: Sequence[str] = ()
    """Whose it is at its source: a name, or the parts of a namespace."""


@dataclass
class Reading:
    """What a reader found, in the order of the source, and how many things it passed over and why."""

    items: list[Item] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    """What a person should know of single files."""

    def take(self, item: Item) -> None:
        """Keep an item, unless it has no words or too many."""
        if not any(each.isalnum() for each in item.text):
            self.skipped[WITHOUT_WORDS] += 1
        elif len(item.text) > MAX_MESSAGE_CHARS:
            self.skipped[TOO_LONG] += 1
        else:
            self.items.append(item)

    def chosen(self, since: datetime | None, limit: int | None) -> "Reading":
        """Return the items of that time on, each id once, the oldest first, and not more than the limit.

        The oldest are the first, so that what was said later comes later, also when the rest is imported.
        """
        once = list({each.id: each for each in self.items}.values())
        dated = [each for each in once if since is None or (each.time and each.time >= since)]
        dated.sort(key=lambda each: each.time or datetime.max.replace(tzinfo=UTC))
        kept = dated[:limit]
        undated = sum(each.time is None for each in once) if since else 0
        more = {UNDATED: undated, OLDER: len(once) - len(dated) - undated, BEYOND: len(dated) - len(kept)}
        return Reading(kept, Counter(self.skipped) + Counter(more), self.notes)


def of_owner(found: Iterable[Item | None], wanted: str, option: str, empty: BadInput) -> Reading:
    """Read the memories of the owner that is wanted, or of all where there is only one; `*` is everybody.

    None stands for what has no words. Raises `empty` where nothing has, and BadInput that names the owners
    where none is chosen, or the one that is has nothing.
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
    """Return the id that follows from these: as long as our own, and safe whatever a file holds."""
    return sha256("\x1f".join(parts).encode(errors="replace")).hexdigest()[:32]


def clean(text: object) -> str:
    """Return text without the halves of characters that JSON lets pass; "" for what is no text."""
    return text.encode(errors="replace").decode().strip() if isinstance(text, str) else ""


def first_time(*given: Any) -> datetime | None:
    """Return the first of these that is a time, in the local zone.

    It is one in seconds since 1970, or in ISO 8601 (UTC where it has no zone).
    """
    for each in given:
        try:
            if isinstance(each, datetime):
                found = each
            elif isinstance(each, int | float) and not isinstance(each, bool):
                found = datetime.fromtimestamp(each, UTC)
            else:
                found = datetime.fromisoformat(str(each))
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone()
        except (ValueError, OverflowError, OSError):
            continue
    return None


def as_dict(given: Any) -> dict[str, Any]:
    """Return an object of JSON; an empty one for anything else."""
    return given if isinstance(given, dict) else {}


def as_list(given: Any) -> Sequence[Any]:
    """Return an array of JSON; an empty one for anything else."""
    return given if isinstance(given, list) else ()
