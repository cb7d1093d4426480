"""`mneme cards …`: list, search and change a team's knowledge cards."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape

from mneme.api.cards import Cards
from mneme.cli.files import is_written, read_file
from mneme.cli.learning.trend import tables
from mneme.cli.show import console, print_fields, print_result, print_table
from mneme.client.home import open_operations
from mneme.core.errors import BadInput
from mneme.stores.cards.card import Card, CardVersion, Retrieved, Rule
from mneme.stores.cards.knowledge_cards import Learned
from mneme.stores.cards.lifecycle import Approval, PromotionRubric
from mneme.stores.cards.metrics import Metrics, Period
from mneme.stores.cards.sharing import BUDGET
from mneme.stores.cards.upkeep import Kept
from mneme.stores.cards.yaml_form import dump

ACTOR = "user"


async def add(
    team: str, lesson: Mapping[str, Any], rules: Sequence[str], supersedes: str, as_json: bool
) -> None:
    """Store a lesson as a provisional card, let it replace another where asked, and print it."""
    read = [rule_of(each) for each in rules]
    async with open_operations(Cards, team) as cards:
        old = (await cards.get(supersedes)).id if supersedes else ""
        learned = await cards.propose(**lesson, rules=read)
        if old:
            await cards.supersede(old, learned.card.id, lesson["reason"])
    print_result(learned, as_json, _print_learned)


def _print_learned(learned: Learned) -> None:
    if learned.event == "unchanged":
        console.print("[dim]It is there already, unchanged:[/]")
    print_card(learned.card)


def rule_of(text: str) -> Rule:
    """Read a rule as it is given on the command line. Raises BadInput."""
    condition, _, pattern = (part.strip() for part in text.partition(":"))
    if not condition or not pattern:
        raise BadInput(f"--rule {text!r} cannot be read.", 'Write "CONDITION: WHAT TO DO".')
    return Rule(condition=condition, pattern=pattern)


def print_found(found: Sequence[Retrieved]) -> None:
    """Print cards that were searched for, with the parts of each score (§4)."""
    parts = ("similarity", "confidence", "standing", "recency", "success")
    rows = (
        [
            each.card.id,
            each.card.status,
            each.card.claim,
            f"{each.score:.3f}",
            *(f"{each.parts.get(p, 0):.3f}" for p in parts),
        ]
        for each in found
    )
    print_table("", ("id", "status", "claim", "score", *parts), rows)


def print_card(card: Card) -> None:
    """Print a card in its YAML form."""
    console.print(escape(dump(card)), end="", soft_wrap=True)


def print_history(versions: Sequence[CardVersion]) -> None:
    """Print every version of a card with its reason, oldest first."""
    columns = ("v", "status", "confidence", "s/f", "claim", "when", "who", "why")
    print_table("", columns, (_row(version) for version in versions))


def _row(version: CardVersion) -> list[str]:
    card, evidence = version.card, version.card.evidence
    return [
        str(card.version),
        card.status,
        f"{card.confidence:.2f}",
        f"{evidence.success_count}/{evidence.failure_count}",
        card.claim,
        f"{version.at:%Y-%m-%d %H:%M:%S}",
        " / ".join(filter(None, (version.actor, version.model))),
        version.reason,
    ]


async def promote(team: str, card: str, reason: str, as_json: bool) -> None:
    """Approve a card instead of the leader; the conditions for promotion still apply."""
    rubric = PromotionRubric(solved=True, faster_or_novel=True, no_new_failures=True, reusable=True)
    approval = Approval(by=ACTOR, approved=True, rubric=rubric, reason=reason)
    async with open_operations(Cards, team) as cards:
        changed = await cards.promote(card, approval, reason)
    print_result(changed, as_json, print_card)


async def export(team: str, file: Path, versions: bool, told: Mapping[str, Any], as_json: bool) -> None:
    """Write all cards as YAML; with `versions`, every version of each; refuse what abstract cards take."""
    if told["epsilon"] or told["private"] or told["budget"] != BUDGET:
        raise BadInput(
            "--epsilon, --budget and --private are for abstract cards.", "Give --abstract as well."
        )
    async with open_operations(Cards, team, reading=True) as cards:
        text = await cards.export(all_versions=versions)
        count = await cards.count()
    if is_written(text, file):
        print_fields({"exported": count, "file": str(file)}, as_json)


async def share(team: str, file: Path, versions: bool, told: Mapping[str, Any], as_json: bool) -> None:
    """Write cards for another organisation, and say what was taken out and what it has cost."""
    if versions:
        raise BadInput("An abstract card has no history.", "Leave --history or --abstract out.")
    if told["budget"] != BUDGET and told["epsilon"] is None:
        raise BadInput("Without --epsilon no counts go out, and nothing is spent.", "Leave --budget out.")
    async with open_operations(Cards, team) as cards:
        shared = await cards.share(**told)
    if is_written(shared.text, file):
        counts = {"exported": shared.cards, "file": str(file)}
        taken = {"names taken out": shared.names, "figures": shared.figures}
        spent = {"ε": shared.epsilon or "no counts", "ε in all": shared.spent.epsilon}
        print_fields(counts | taken | spent, as_json)


async def import_(team: str, file: Path, as_json: bool) -> None:
    """Import cards from YAML; if one is invalid, none is stored."""
    text = read_file(file, "Give a file that `export` wrote.")
    async with open_operations(Cards, team) as cards:
        report = await cards.import_(text, f"imported from {file.name}")
    counts = {"stored": len(report.stored), "unchanged": len(report.unchanged)}
    print_fields(counts | {"unsigned, so provisional": len(report.unsigned)}, as_json)


def is_critical(found: Metrics) -> bool:
    """Return whether an alert is critical."""
    return any(alert.level == "critical" for alert in found.alerts)


def print_metrics(found: Metrics) -> None:
    """Print every metric of §10 and the alerts."""
    rows = [(name, _figure(value)) for name, value in found.model_dump(exclude={"alerts"}).items()]
    print_table("", ("metric", "value"), rows)
    for alert in found.alerts:
        colour = "red" if alert.level == "critical" else "yellow"
        console.print(f"[{colour}]{alert.level}[/] {escape(alert.message)}")
    if not found.alerts:
        console.print("no alerts")


def _figure(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count}" for name, count in value.items()) or "none"
    return "–" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)


def print_cards(found: Sequence[Card]) -> None:
    """Print cards as a table."""
    rows = (
        [
            card.id,
            str(card.version),
            card.status + (" (flagged)" if card.flags else ""),
            f"{card.confidence:.2f}",
            f"{card.evidence.success_count}/{card.evidence.failure_count}",
            card.claim,
        ]
        for card in found
    )
    print_table("", ("id", "v", "status", "confidence", "s/f", "claim"), rows)


def counted(kept: Kept, _: Any) -> dict[str, int]:
    """Return what came of the upkeep."""
    return {"archived": len(kept.archived), "expired": len(kept.expired), "clustered": kept.clustered}


def print_trend(found: Sequence[Period]) -> None:
    """Print what each period was like, oldest first."""
    for table in tables(found):
        console.print(table)
