"""`mneme cards trend`: reuse, satisfaction and quality over time."""

from collections.abc import Callable, Sequence

from mneme.cli.tables import Table
from mneme.stores.cards.metrics import Period

REUSE = ("tasks", "reuse", "retrieval_precision", "ratings", "satisfaction")
QUALITY = ("solved", "first_attempt", "iterations", "seconds_p50", "speed_up_p50", "duplicate_mistakes")
CARDS = ("card_success", "learned", "promoted", "deprecated", "in_service", "verified")
PARTS = {"Reuse and satisfaction": REUSE, "Quality": QUALITY, "Cards": CARDS}
SHARES = {
    *("reuse", "retrieval_precision", "satisfaction", "solved", "first_attempt"),
    *("duplicate_mistakes", "card_success"),
}


def tables(found: Sequence[Period], begin: Callable[[Period], str] | None = None) -> list[Table]:
    """Return a table for each part of what is watched; `begin` names a period."""
    named = begin or (lambda each: f"{each.begins:%Y-%m-%d}")
    return [
        Table(
            title,
            ["from", *(name.replace("_", " ") for name in names)],
            [[named(each), *(_cell(each, name) for name in names)] for each in found],
            figures=True,
        )
        for title, names in PARTS.items()
    ]


def _cell(period: Period, name: str) -> str:
    value = getattr(period, name)
    if value is None:
        return "–"
    if name in SHARES:
        return f"{100 * value:.0f} %"
    return str(value) if isinstance(value, int) else f"{value:.3g}"
