"""`mneme cards trend`: reuse, satisfaction and quality over time."""

from collections.abc import Callable, Sequence
from typing import cast, get_args

from mneme.api.cards import Cards
from mneme.cli.show import console, print_json
from mneme.cli.tables import Table
from mneme.client.home import open_operations
from mneme.core.errors import BadInput
from mneme.stores.cards.trends import Period, Unit

REUSE = ("tasks", "reuse", "retrieval_precision", "ratings", "satisfaction")
QUALITY = ("solved", "first_attempt", "iterations", "seconds_p50", "speed_up_p50", "duplicate_mistakes")
CARDS = ("card_success", "learned", "promoted", "deprecated", "in_service", "verified")
PARTS = {"Reuse and satisfaction": REUSE, "Quality": QUALITY, "Cards": CARDS}
SHARES = {
    *("reuse", "retrieval_precision", "satisfaction", "solved", "first_attempt"),
    *("duplicate_mistakes", "card_success"),
}


async def trend(team: str, by: str, tasks: int | None, last: int, as_json: bool) -> None:
    """Print what each period was like, oldest first."""
    if by not in get_args(Unit):
        raise BadInput(f"There is no period {by!r}.", f"There are: {', '.join(get_args(Unit))}.")
    async with open_operations(Cards, team, reading=True) as cards:
        found = await cards.trend(cast(Unit, by), tasks, last)
    if as_json:
        for each in found:
            print_json(each)
    elif found:
        for table in tables(found):
            console.print(table)
    else:
        console.print("[dim]nothing[/]")


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
