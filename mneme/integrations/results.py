"""Results in the form that a model reads: short, bounded, one record a line.

Stored text comes from people. Its line breaks are removed, so that no text can pose as another line of the
result.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mneme.api.erased import Erased
from mneme.api.inbox import Remembered
from mneme.api.memories import Written
from mneme.api.rendering import card_lines, erased_lines, row_of, written_lines
from mneme.stores.cards.card import Card
from mneme.stores.cards.knowledge_cards import Learned
from mneme.stores.users.memory import MemoryRecord

MAX_RESULT_CHARS = 600
"""Characters that are shown of one text."""
MAX_LISTED_ITEMS = 20
"""Maximum items shown of one list."""
TEXT_COLUMNS = ("memory", "claim", "prompt", "answer", "text")
"""Columns with a record's text; they come first in its line."""
EMPTY_VALUES: Sequence[Any] = ("", None, [], {})
FOR_TABLES = {"v", "kind", "confidence", "standing", "recency", "success", "s/f", "versions", "not learned"}
"""Columns that a model does not need; a card's confidence is given where the card is shown."""


def short(text: str) -> str:
    """Return a text on one line, cut where it is too long."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_RESULT_CHARS else f"{line[: MAX_RESULT_CHARS - 1]}…"


def bounded(value: Any) -> Any:
    """Return JSON with long texts and lists cut, and without empty fields."""
    if isinstance(value, str):
        return value if len(value) <= MAX_RESULT_CHARS else f"{value[: MAX_RESULT_CHARS - 1]}…"
    if isinstance(value, Mapping):
        return {name: bounded(each) for name, each in value.items() if each not in EMPTY_VALUES}
    return [bounded(each) for each in value[:MAX_LISTED_ITEMS]] if isinstance(value, list) else value


def line(record: Any) -> str:
    """Return a record on one line: its key for other tools, its text, and its metadata."""
    cells = {name: each for name, each in row_of(record).items() if each not in ("", None)}  # 0 stays
    row = {
        name: short(f"{each:.2f}" if isinstance(each, float) else str(each)) for name, each in cells.items()
    }
    first = next(iter(row))
    texts = [name for name in TEXT_COLUMNS if name in row]
    said = [row[name] if len(texts) == 1 else f"{name}: {row[name]}" for name in texts]
    others = [name for name in row if name != first and name not in TEXT_COLUMNS and name not in FOR_TABLES]
    more = ", ".join(f"{name} {row[name]}" for name in others)
    return " ".join([f"[{row[first]}]", *said, *([f"({more})"] if more else [])])


def records(found: Sequence[Any]) -> list[str]:
    return [line(each) for each in found[:MAX_LISTED_ITEMS]] or ["Nothing was found."]


def history(versions: Sequence[Any]) -> list[str]:
    return [
        f"version {row['v']}, {row['event']} at {row['when']} by {row['who']}: {short(str(row['memory']))} "
        f"(reason: {short(str(row['why'])) or 'none given'})"
        for row in map(row_of, versions[-MAX_LISTED_ITEMS:])
    ]


def remembered(told: Sequence[Remembered]) -> list[str]:
    (one,) = told  # the tool takes one text
    done = one.outcome
    keys = [each["key"] for each in done["operations"] if each["event"] != "discard"] if done else []
    why = short(done["rationale"] if done else one.error)
    memories = f" Memories: {', '.join(dict.fromkeys(keys))}." if keys else ""
    return [f"{one.status}{f': {why}' if why else '.'}{memories}"]


def written(record: Written) -> list[str]:
    asks = [f"Ask the user whether the team {each} may know it." for each in record.memory.asks]
    beside = [f"Compare it with: {line(each)}" for each in record.beside]
    done = "Written: " if record.is_new else ""
    return [f"{done}{line(record)}", *written_lines(record), *asks, *beside]


def undone(record: MemoryRecord | None) -> list[str]:
    if record is None:
        return ["There is no change to take back."]
    now = "It is now" if record.live else "It is not recalled any more; it was"
    return [f"{now}: {line(record)}"]


def erased(what: Erased) -> list[str]:
    return [short(each) for each in erased_lines(what)[:MAX_LISTED_ITEMS]]


def card(found: Card) -> list[str]:
    return [line(found), *(short(each) for each in card_lines(found)[:MAX_LISTED_ITEMS])]


def proposed(learned: Learned) -> list[str]:
    is_new = learned.event == "created"
    did = "Stored for a person to review" if is_new else "It is there already, unchanged"
    return [f"{did}: {line(learned.card)}"]
