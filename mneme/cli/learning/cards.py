"""`mneme cards …`: commands that do more than call an operation and print its result."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from mneme.api.cards import Cards, rule_of
from mneme.api.tables import Table
from mneme.cli.derived import Fields, arguments_of
from mneme.cli.options import Team, ToFile
from mneme.cli.show import console, is_written, print_fields, print_record, print_result, read_file
from mneme.client.home import open_operations
from mneme.core.errors import BadInput
from mneme.stores.cards.card import Card
from mneme.stores.cards.card_files import dump
from mneme.stores.cards.knowledge_cards import Kept
from mneme.stores.cards.metrics import Metrics, Period
from mneme.stores.cards.sharing import EPSILON_BUDGET

USER_ACTOR = "user"
Rules = Annotated[list[str] | None, typer.Option("--rule", help='"CONDITION: WHAT TO DO"; may be repeated.')]
Lesson = Annotated[dict[str, Any], Fields(arguments_of(Cards.OFFERED["propose"]), without="rules")]
Abstraction = Annotated[dict[str, Any], Fields(arguments_of(Cards.OFFERED["share"]), without="reason")]


async def add(
    lesson: Lesson,
    rule: Rules = None,
    supersedes: Annotated[str, "The card that it replaces."] = "",
    team: Team = "local",
) -> None:
    """Store a lesson that no task has tested, as a provisional card for a person to review."""
    read = [rule_of(each) for each in rule or ()]
    async with open_operations(Cards, team) as cards:
        old = (await cards.get(supersedes)).id if supersedes else ""  # one that is missing refuses both
        learned = await cards.propose(**lesson, rules=read)
        if old:
            await cards.supersede(old, learned.card.id, lesson["reason"])
    if learned.event == "unchanged":
        console.print("[dim]It is there already, unchanged:[/]")
    print_result(learned, lambda _: print_card(learned.card))


def print_card(card: Card) -> None:
    """Print a card in its YAML form."""
    console.print(escape(dump(card)), end="", soft_wrap=True)


async def export(
    abstraction: Abstraction,
    file: ToFile = Path("-"),
    team: Team = "local",
    history: Annotated[bool, "With every version of each card, as JSON Lines."] = False,
    abstract: Annotated[
        bool, "For another organisation: no names, no figures, no counts but those of --epsilon."
    ] = False,
) -> None:
    """Write all cards as YAML; with --abstract, what another organisation may see."""
    spends = abstraction["budget"] != EPSILON_BUDGET
    if not abstract and (abstraction["epsilon"] or abstraction["private"] or spends):
        raise BadInput(
            "--epsilon, --budget and --private are for abstract cards.", "Give --abstract as well."
        )
    if abstract and history:
        raise BadInput("An abstract card has no history.", "Leave --history or --abstract out.")
    if abstract and spends and abstraction["epsilon"] is None:
        raise BadInput("Without --epsilon no counts go out, and nothing is spent.", "Leave --budget out.")
    # what an abstraction gives away is noted, and counts against the budget of the next: it writes
    async with open_operations(Cards, team, reading=not abstract) as cards:
        if abstract:
            shared = await cards.share(**abstraction)
            text, counts = shared.text, {"exported": shared.cards, "file": str(file)}
            counts |= {"names taken out": shared.names, "figures": shared.figures}
            counts |= {"ε": shared.epsilon or "no counts", "ε in all": shared.spent.epsilon}
        else:
            text = await cards.export(history=history)
            counts = {"exported": await cards.count(), "file": str(file)}
    if is_written(text, file):
        print_fields(counts)


async def import_(
    file: Annotated[Path, "A file of cards; `-` reads stdin."],
    team: Team = "local",
    history: Annotated[bool, "The file is of `export --history`, and you vouch for it."] = False,
) -> None:
    """Import cards from YAML, as provisional ones; with --history with all versions, as they were.

    An invalid field is named, and then nothing is stored.
    """
    text = read_file(file, "Give a file that `export` wrote.")
    async with open_operations(Cards, team) as cards:
        report = await cards.import_(text, f"imported from {file.name}", history=history)
    print_fields({"stored": len(report.stored), "unchanged": len(report.unchanged)})


def is_critical(found: Metrics) -> bool:
    """Return whether an alert is critical."""
    return any(alert.level == "critical" for alert in found.alerts)


def print_metrics(found: Metrics) -> None:
    """Print every metric of §10 and the alerts."""
    print_record(found.model_dump(exclude={"alerts"}))
    for alert in found.alerts:
        colour = "red" if alert.level == "critical" else "yellow"
        console.print(f"[{colour}]{alert.level}[/] {escape(alert.message)}")
    if not found.alerts:
        console.print("no alerts")


def counted(kept: Kept, _: Any) -> dict[str, int]:
    """Return the counts of the upkeep."""
    return {"archived": len(kept.archived), "expired": len(kept.expired)}


METRIC_GROUPS = {
    "Reuse and satisfaction": ["tasks", "reuse", "retrieval_precision", "ratings", "satisfaction"],
    "Quality": ["solved", "first_attempt", "iterations", "seconds_p50", "speed_up_p50", "duplicate_mistakes"],
    "Cards": ["card_success", "learned", "promoted", "deprecated", "in_service", "verified"],
}
PERCENT_METRICS = {
    *("reuse", "retrieval_precision", "satisfaction", "solved", "first_attempt"),
    *("duplicate_mistakes", "card_success"),
}


def print_trend(found: Sequence[Period]) -> None:
    """Print the metrics of each period, oldest first: a table for each monitored part."""
    for title, names in METRIC_GROUPS.items():
        rows = [[f"{each.begins:%Y-%m-%d}", *(_cell(each, name) for name in names)] for each in found]
        columns = ["from", *(name.replace("_", " ") for name in names)]
        console.print(Table(title, columns, rows, figures=True))


def _cell(period: Period, name: str) -> str:
    value = getattr(period, name)
    if value is None:
        return "–"
    if name in PERCENT_METRICS:
        return f"{100 * value:.0f} %"
    return str(value) if isinstance(value, int) else f"{value:.3g}"
