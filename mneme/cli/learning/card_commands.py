"""`mneme cards …`: a team's knowledge cards."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.cli.groups import Calls, group, options_of
from mneme.cli.options import Agents, Json, Limit, Reason, Team, run_command

cards = group("List, search and change a team's knowledge cards.")

CardId = Annotated[str, typer.Argument(help="A card's id, or its first letters.")]
EXPIRY = {"expires_at": "--expires"}

call = Calls(cards, "cards", "mneme.api.cards:Cards", "mneme.cli.learning.cards")
call("list", "list", "print_cards", "List the cards, in the order in which they were first learned.")
call(
    "search",
    "search",
    "print_found",
    "Show the cards that a task would get, and the parts of their scores.",
    searching=True,
)
call("show", "get", "print_card", "Show a card in its YAML form.")
call(
    "history", "history", "print_history", "Show every version of a card: what changed, why, and who decided."
)
call(
    "rollback",
    "rollback",
    "print_card",
    "Go back to an earlier version; the history keeps both.",
    versions="mneme cards history {card_id}",
)
call(
    "deprecate",
    "deprecate",
    "print_card",
    "Remove a card from retrieval; the devil's advocate still sees it.",
)
call("restore", "restore", "print_card", "Bring a deprecated or archived card back.")
call(
    "metrics",
    "metrics",
    "print_metrics",
    "Compute the metrics of the knowledge base; exit with 1 if an alert is critical.",
    fails="is_critical",
)
call(
    "trend",
    "trend",
    "print_trend",
    "Show reuse, satisfaction and quality over time, counted from the ledger's own history.",
)
call(
    "rate",
    "rate",
    "print_card",
    "Say whether a card served: it counts as satisfaction, and as a success or failure.",
    {"good": "--good/--bad"},
)
call(
    "care",
    "care_for",
    "print_card",
    "Say who looks after a card, until when it holds, and for which version.",
    EXPIRY,
)
call(
    "supersede",
    "supersede",
    "print_card",
    "Replace a card by a better one; the old one is deprecated, and says by which.",
)
call(
    "clear-flag",
    "clear_flag",
    "print_card",
    "Let a card be retrieved that was put aside because it reads like an instruction.",
)
call(
    "upkeep",
    "upkeep",
    "print_fields",
    "Archive inactive and expired cards and renew the clusters now; else it goes on beside the tasks.",
    told="counted",
)


@options_of(cards, "cards propose", EXPIRY, "rules", hidden=True, lesson="mneme.api.cards:Cards.propose")
@options_of(cards, "cards add", EXPIRY, "rules", lesson="mneme.api.cards:Cards.propose")
def add_card(
    lesson: dict[str, Any],
    rule: Annotated[
        list[str] | None, typer.Option("--rule", help='"CONDITION: WHAT TO DO"; may be repeated.')
    ] = None,
    supersedes: Annotated[str, typer.Option("--supersedes", help="The card that it replaces.")] = "",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Store a lesson that no task has tested, as a provisional card for a person to review."""
    from mneme.cli.learning import cards as run

    run_command(run.add(team, lesson, rule or [], supersedes, as_json))


@cards.command("promote")
def promote_card(
    card: CardId, team: Team = "local", reason: Reason = "decided on the command line", as_json: Json = False
) -> None:
    """Approve a provisional card; to become verified it still needs enough successes."""
    from mneme.cli.learning import cards as run

    run_command(run.promote(team, card, reason, as_json))


@options_of(cards, "cards export", without="reason", shared="mneme.api.cards:Cards.share")
def export_cards(
    shared: dict[str, Any],
    file: Annotated[Path, typer.Argument(help="Where to write; `-` writes to stdout.")] = Path("-"),
    team: Team = "local",
    versions: Annotated[bool, typer.Option("--history", help="With every version of each card.")] = False,
    abstract: Annotated[
        bool,
        typer.Option(
            "--abstract",
            help="For another organisation: no names, no figures, no counts but those of --epsilon.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Write all cards as YAML; with --abstract, what another organisation may see."""
    from mneme.cli.learning import cards as run

    run_command((run.share if abstract else run.export)(team, file, versions, shared, as_json))


@cards.command("import")
def import_cards(
    file: Annotated[Path, typer.Argument(help="A YAML file of cards; `-` reads stdin.")],
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Import cards from YAML; an invalid field is named, and then nothing is stored."""
    from mneme.cli.learning import cards as run

    run_command(run.import_(team, file, as_json))


@cards.command("review")
def review_cards(team: Team = "local", limit: Limit = 100, as_json: Json = False) -> None:
    """Walk through the cards that are flagged, disputed or provisional, and decide on each."""
    from mneme.cli.learning import reviewing as run

    run_command(run.review(team, limit, as_json))


@cards.command("intake")
def intake_texts(
    files: Annotated[list[Path], typer.Argument(help="Logs, tickets or conversations; `-` reads stdin.")],
    scope: Annotated[str, typer.Option("--scope", help="The domain that the lessons hold in.")] = "",
    agents: Agents = "auto",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Learn from what was written before: each part is drafted, challenged and compiled into cards."""
    from mneme.cli.learning import intake as run

    run_command(run.intake(team, files, scope, agents, as_json))


@options_of(
    cards,
    "cards consolidate",
    {"served_base": "--ollama"},
    "pool above",
    wanted="mneme.cli.learning.consolidation:Wanted",
    context="mneme.nodes.learning.consolidation.state:TuningContext",
)
def consolidate_cards(wanted: dict[str, Any], context: dict[str, Any], as_json: Json = False) -> None:
    """Tune a model on the proven cards; it serves, and they are archived, where it is not worse."""
    from mneme.cli.learning import consolidation as run

    run_command(run.run(wanted, context, as_json))
