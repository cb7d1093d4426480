"""`mneme cards …`: a team's knowledge cards."""

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.options import Agents, Json, Limit, Reason, run_command

cards = typer.Typer(no_args_is_help=True, help="List, search and change a team's knowledge cards.")

Team = Annotated[str, typer.Option("--team", envvar="MNEME_TEAM", help="The team that owns the cards.")]

CardId = Annotated[str, typer.Argument(help="A card's id, or its first letters.")]

Owner = Annotated[str | None, typer.Option("--owner", help="Who looks after the card.")]
Expires = Annotated[
    datetime | None,
    typer.Option(
        "--expires", formats=["%Y-%m-%d"], help="The day (UTC) from which on it is not retrieved any more."
    ),
]
ValidFor = Annotated[
    str | None, typer.Option("--valid-for", help="For which version it holds, like 'sqlite>=3.40'.")
]


@cards.command("list")
def list_cards(
    team: Team = "local",
    status: Annotated[str, typer.Option("--status", help="Only cards with this status.")] = "",
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """List the cards, in the order in which they were first learned."""
    from mneme.cli.learning import cards as run

    run_command(run.list_(team, status, limit, as_json))


@cards.command("search")
def search_cards(
    task: Annotated[str, typer.Argument(help="A task in words.")],
    team: Team = "local",
    limit: Limit = 5,
    as_json: Json = False,
) -> None:
    """Show the cards that a task would get, and the parts of their scores."""
    from mneme.cli.learning import cards as run

    run_command(run.search(team, task, limit, as_json))


@cards.command("add")
@cards.command("propose", hidden=True)
def add_card(
    claim: Annotated[str, typer.Argument(help="The lesson in one or two sentences.")],
    rationale: Annotated[str, typer.Option("--rationale", help="Why it holds, and what was seen.")] = "",
    scope: Annotated[str, typer.Option("--scope", help="The domain that it holds in.")] = "",
    rule: Annotated[
        list[str] | None, typer.Option("--rule", help='"CONDITION: WHAT TO DO"; may be repeated.')
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="A word to find it by; may be repeated.")
    ] = None,
    owner: Owner = None,
    expires: Expires = None,
    valid_for: ValidFor = None,
    supersedes: Annotated[str, typer.Option("--supersedes", help="The card that it replaces.")] = "",
    reason: Reason = "",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Store a lesson that no task has tested, as a provisional card for a person to review."""
    from mneme.cli.learning import cards as run

    lesson = {"claim": claim, "rationale": rationale, "scope": scope, "tags": tag or []}
    care = {"owner": owner, "expires_at": expires, "valid_for": valid_for}
    run_command(run.add(team, lesson | care, rule or [], supersedes, reason, as_json))


@cards.command("show")
def show_card(card: CardId, team: Team = "local", as_json: Json = False) -> None:
    """Show a card in its YAML form."""
    from mneme.cli.learning import cards as run

    run_command(run.show(team, card, as_json))


@cards.command("history")
def card_history(card: CardId, team: Team = "local", as_json: Json = False) -> None:
    """Show every version of a card: what changed, why, and who decided."""
    from mneme.cli.learning import cards as run

    run_command(run.history(team, card, as_json))


@cards.command("rollback")
def rollback_card(
    card: CardId,
    version: Annotated[int, typer.Argument(help="The version to go back to.")],
    team: Team = "local",
    reason: Reason = "decided on the command line",
    as_json: Json = False,
) -> None:
    """Go back to an earlier version; the history keeps both."""
    from mneme.cli.learning import cards as run

    run_command(run.rollback(team, card, version, reason, as_json))


@cards.command("deprecate")
def deprecate_card(
    card: CardId, team: Team = "local", reason: Reason = "decided on the command line", as_json: Json = False
) -> None:
    """Remove a card from retrieval; the devil's advocate still sees it."""
    from mneme.cli.learning import cards as run

    run_command(run.deprecate(team, card, reason, as_json))


@cards.command("restore")
def restore_card(
    card: CardId, team: Team = "local", reason: Reason = "decided on the command line", as_json: Json = False
) -> None:
    """Bring a deprecated or archived card back."""
    from mneme.cli.learning import cards as run

    run_command(run.restore(team, card, reason, as_json))


@cards.command("promote")
def promote_card(
    card: CardId, team: Team = "local", reason: Reason = "decided on the command line", as_json: Json = False
) -> None:
    """Approve a provisional card; to become verified it still needs enough successes."""
    from mneme.cli.learning import cards as run

    run_command(run.promote(team, card, reason, as_json))


@cards.command("export")
def export_cards(
    file: Annotated[Path, typer.Argument(help="Where to write; `-` writes to stdout.")] = Path("-"),
    team: Team = "local",
    versions: Annotated[bool, typer.Option("--history", help="With every version of each card.")] = False,
    abstract: Annotated[
        bool, typer.Option("--abstract", help="For another organisation: no names, no figures, no counts.")
    ] = False,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="With --abstract: noisy counts, of this much privacy.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", help="What ε may come to over all exports; default: 5.")
    ] = None,
    private: Annotated[
        list[str] | None, typer.Option("--private", help="A name to take out as well; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Write all cards as YAML; with --abstract, what another organisation may see."""
    from mneme.cli.learning import cards as run

    given = {"epsilon": epsilon, "budget": budget, "private": private}
    told = {name: each for name, each in given.items() if each is not None}
    run_command((run.share if abstract else run.export)(team, file, versions, told, as_json))


@cards.command("import")
def import_cards(
    file: Annotated[Path, typer.Argument(help="A YAML file of cards; `-` reads stdin.")],
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Import cards from YAML; an invalid field is named, and then nothing is stored."""
    from mneme.cli.learning import cards as run

    run_command(run.import_(team, file, as_json))


@cards.command("metrics")
def card_metrics(team: Team = "local", as_json: Json = False) -> None:
    """Compute the metrics of the knowledge base; exit with 1 if an alert is critical."""
    from mneme.cli.learning import cards as run

    run_command(run.metrics(team, as_json))


@cards.command("trend")
def card_trend(
    by: Annotated[
        str, typer.Option("--by", help="How long a period is: day, week, month, quarter or year.")
    ] = "month",
    tasks: Annotated[
        int | None, typer.Option("--tasks", min=1, help="Instead: so many tasks make a period.")
    ] = None,
    last: Annotated[int, typer.Option("--last", min=1, max=1000, help="How many periods at most.")] = 12,
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Show reuse, satisfaction and quality over time, counted from the ledger's own history."""
    from mneme.cli.learning import trend as run

    run_command(run.trend(team, by, tasks, last, as_json))


@cards.command("rate")
def rate_card(
    card: CardId,
    good: Annotated[bool, typer.Option("--good/--bad", help="Whether the card served.")],
    task: Annotated[str, typer.Option("--task", help="In which task, by its id.")] = "",
    comment: Annotated[str, typer.Option("--comment", help="What you say of it.")] = "",
    by: Annotated[str, typer.Option("--by", help="Who says so.")] = "",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Say whether a card served: it counts as satisfaction, and as a success or failure."""
    from mneme.cli.learning import reviewing as run

    run_command(run.rate(team, card, {"good": good, "task": task, "comment": comment, "by": by}, as_json))


@cards.command("care")
def care_for_card(
    card: CardId,
    owner: Owner = None,
    expires: Expires = None,
    valid_for: ValidFor = None,
    reason: Reason = "decided on the command line",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Say who looks after a card, until when it holds, and for which version."""
    from mneme.cli.learning import reviewing as run

    care = {"owner": owner, "expires_at": expires, "valid_for": valid_for}
    run_command(run.care_for(team, card, care, reason, as_json))


@cards.command("supersede")
def supersede_card(
    card: CardId,
    by: Annotated[str, typer.Argument(help="The card that replaces it.")],
    team: Team = "local",
    reason: Reason = "decided on the command line",
    as_json: Json = False,
) -> None:
    """Replace a card by a better one; the old one is deprecated, and says by which."""
    from mneme.cli.learning import reviewing as run

    run_command(run.supersede(team, card, by, reason, as_json))


@cards.command("clear-flag")
def clear_flag(
    card: CardId, team: Team = "local", reason: Reason = "looked at by a person", as_json: Json = False
) -> None:
    """Let a card be retrieved that was put aside because it reads like an instruction."""
    from mneme.cli.learning import reviewing as run

    run_command(run.clear_flag(team, card, reason, as_json))


@cards.command("review")
def review_cards(team: Team = "local", limit: Limit = 100, as_json: Json = False) -> None:
    """Walk through the cards that are flagged, disputed or provisional, and decide on each."""
    from mneme.cli.learning import reviewing as run

    run_command(run.review(team, limit, as_json))


@cards.command("upkeep")
def keep_up(team: Team = "local", as_json: Json = False) -> None:
    """Archive inactive and expired cards and renew the clusters now; else it goes on beside the tasks."""
    from mneme.cli.learning import reviewing as run

    run_command(run.upkeep(team, as_json))


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
