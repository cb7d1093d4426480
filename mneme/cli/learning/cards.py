"""`mneme cards …`: list, search and change a team's knowledge cards."""

from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, get_args

from rich.markup import escape

from mneme.api.cards import Cards
from mneme.cli.files import is_written, read_file
from mneme.cli.show import console, print_json, print_table, versions_listed_by
from mneme.client.home import open_operations
from mneme.core.errors import BadInput
from mneme.stores.cards.card import Card, CardVersion, Retrieved, Rule, Status
from mneme.stores.cards.lifecycle import Approval, PromotionRubric
from mneme.stores.cards.metrics import Metrics
from mneme.stores.cards.yaml_form import dump

ACTOR = "user"


async def list_(team: str, status: str, limit: int, as_json: bool) -> None:
    """List cards."""
    wanted = _status(status)
    async with open_operations(Cards, team, reading=True) as cards:
        _print_cards(await cards.list(wanted, limit=limit), as_json)


def _status(status: str) -> Status | None:
    if status and status not in get_args(Status):
        raise BadInput(f"There is no status {status!r}.", f"There are: {', '.join(get_args(Status))}.")
    return status or None  # type: ignore[return-value]


async def search(team: str, task: str, limit: int, as_json: bool) -> None:
    """Print the cards that a task would be shown, with the parts of each score (§4)."""
    async with open_operations(Cards, team, reading=True, searching=True) as cards:
        found = await cards.search(task, limit)
    if as_json:
        for each in found:
            print_json(each)
        return
    _print_found(found)


async def add(
    team: str, lesson: Mapping[str, Any], rules: Sequence[str], supersedes: str, reason: str, as_json: bool
) -> None:
    """Store a lesson as a provisional card, let it replace another where asked, and print it."""
    read = [rule_of(each) for each in rules]
    async with open_operations(Cards, team) as cards:
        old = (await cards.get(supersedes)).id if supersedes else ""
        learned = await cards.propose(**in_utc(lesson), rules=read, reason=reason)
        if old:
            await cards.supersede(old, learned.card.id, reason)
    if as_json:
        print_json(learned)
        return
    if learned.event == "unchanged":
        console.print("[dim]It is there already, unchanged:[/]")
    print_card(learned.card, as_json)


def in_utc(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given, a day of expiry as its first moment in UTC."""
    day = given.get("expires_at")
    return {**given, "expires_at": day.replace(tzinfo=UTC) if day else None}


def rule_of(text: str) -> Rule:
    """Read a rule as it is given on the command line. Raises BadInput."""
    condition, _, pattern = (part.strip() for part in text.partition(":"))
    if not condition or not pattern:
        raise BadInput(f"--rule {text!r} cannot be read.", 'Write "CONDITION: WHAT TO DO".')
    return Rule(condition=condition, pattern=pattern)


def _print_found(found: Sequence[Retrieved]) -> None:
    if not found:
        console.print("[dim]nothing[/]")
        return
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


async def show(team: str, card: str, as_json: bool) -> None:
    """Print one card, in its YAML form."""
    async with open_operations(Cards, team, reading=True) as cards:
        found = await cards.get(card)
    print_card(found, as_json)


def print_card(card: Card, as_json: bool) -> None:
    """Print a card in its YAML form."""
    if as_json:
        print_json(card)
        return
    console.print(escape(dump(card)), end="", soft_wrap=True)


async def history(team: str, card: str, as_json: bool) -> None:
    """Print every version of a card with its reason, oldest first."""
    async with open_operations(Cards, team, reading=True) as cards:
        versions = await cards.history(card)
    if as_json:
        for version in versions:
            print_json(version)
        return
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


async def rollback(team: str, card: str, version: int, reason: str, as_json: bool) -> None:
    """Go back to an earlier version."""
    async with open_operations(Cards, team) as cards:
        with versions_listed_by(f"mneme cards history {card}"):
            changed = await cards.rollback(card, version, reason)
    print_card(changed, as_json)


async def deprecate(team: str, card: str, reason: str, as_json: bool) -> None:
    """Remove a card from retrieval."""
    async with open_operations(Cards, team) as cards:
        changed = await cards.deprecate(card, reason)
    print_card(changed, as_json)


async def restore(team: str, card: str, reason: str, as_json: bool) -> None:
    """Bring a deprecated or archived card back."""
    async with open_operations(Cards, team) as cards:
        changed = await cards.restore(card, reason)
    print_card(changed, as_json)


async def promote(team: str, card: str, reason: str, as_json: bool) -> None:
    """Approve a card instead of the leader; the conditions for promotion still apply."""
    rubric = PromotionRubric(solved=True, faster_or_novel=True, no_new_failures=True, reusable=True)
    approval = Approval(by=ACTOR, approved=True, rubric=rubric, reason=reason)
    async with open_operations(Cards, team) as cards:
        changed = await cards.promote(card, approval, reason)
    print_card(changed, as_json)


async def export(team: str, file: Path, versions: bool, told: Mapping[str, Any], as_json: bool) -> None:
    """Write all cards as YAML; with `versions`, every version of each; refuse what abstract cards take."""
    if told:
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
    if "budget" in told and "epsilon" not in told:
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


async def metrics(team: str, as_json: bool) -> int:
    """Print every metric of §10 and the alerts; return 1 if an alert is critical."""
    async with open_operations(Cards, team, reading=True) as cards:
        found = await cards.metrics()
    if as_json:
        print_json(found)
    else:
        _print_metrics(found)
    return int(any(alert.level == "critical" for alert in found.alerts))


def _print_metrics(found: Metrics) -> None:
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


def _print_cards(found: Sequence[Card], as_json: bool) -> None:
    if as_json:
        for card in found:
            print_json(card)
        return
    if not found:
        console.print("[dim]nothing[/]")
        return
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


def print_fields(what: Mapping[str, object], as_json: bool) -> None:
    """Print a few named figures on one line."""
    if as_json:
        print_json(what)
        return
    console.print(", ".join(f"{name}: {value}" for name, value in what.items()))
