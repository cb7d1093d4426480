"""`mneme learn`, `mneme cards` and `mneme disputes`: a team that learns, and its knowledge cards."""

from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.learning.consolidate_command import Team, consolidate_cards
from mneme.cli.options import Json, Limit, Reason, run_command

app = typer.Typer()
cards = typer.Typer(no_args_is_help=True, help="List, search and change a team's knowledge cards.")
disputes = typer.Typer(
    no_args_is_help=True, help="Findings that contradict verified cards: list, test and decide them."
)
cards.command("consolidate")(consolidate_cards)
app.add_typer(cards, name="cards")
app.add_typer(disputes, name="disputes")

Agents = Annotated[
    str,
    typer.Option("--agents", envvar="MNEME_AGENTS", help="Model of all agents: auto, rules, ollama:MODEL, …"),
]
Agent = Annotated[str, typer.Option(help="Model of this agent; default: --agents.")]
Rows = Annotated[int, typer.Option("--rows", min=100, help="Rows of the query-tuning database.")]


@app.command()
def learn(
    task: Annotated[str, typer.Argument(help="The task in words.")] = "",
    file: Annotated[Path | None, typer.Option("--file", help="A YAML list of tasks.")] = None,
    suite: Annotated[
        str,
        typer.Option(
            "--suite",
            help="Tasks of Mneme: story, sql_tuning (generated), python_functions, shell_pipelines.",
        ),
    ] = "",
    count: Annotated[int, typer.Option("--count", help="Number of generated tasks.")] = 8,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the generated tasks.")] = 1,
    query: Annotated[str, typer.Option("--query", help="The slow query, which is run and measured.")] = "",
    schema: Annotated[
        str,
        typer.Option("--schema", help="The schema: one that comes with Mneme, or a file FILE.sql."),
    ] = "",
    database: Annotated[
        str,
        typer.Option("--database", help="Your own: a SQLite file or postgresql://…; it is only read."),
    ] = "",
    world: Annotated[
        str, typer.Option("--world", help="The world: a name, or a YAML file that describes one.")
    ] = "",
    case: Annotated[str, typer.Option("--case", help="A task of the world's own, by its id.")] = "",
    workspace: Annotated[
        Path | None, typer.Option("--workspace", help="The folder of the files, which is copied.")
    ] = None,
    check: Annotated[
        str, typer.Option("--check", help="The command that a solution must pass, like `pytest -q`.")
    ] = "",
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="What is to become better, like cpu_seconds:lower:2; repeatable."),
    ] = None,
    may_change: Annotated[
        list[str] | None,
        typer.Option("--may-change", help="Files that may change, like 'src/*.py'; repeatable."),
    ] = None,
    task_id: Annotated[
        str, typer.Option("--id", help="The task's id; the id of a killed run continues it.")
    ] = "",
    team: Team = "local",
    agents: Agents = "auto",
    researcher: Agent = "",
    devils_advocate: Agent = "",
    leader: Agent = "",
    monitor: Agent = "",
    recall: Annotated[int, typer.Option("--recall", min=0, max=20, help="Number of cards to retrieve.")] = 5,
    rows: Rows = 60_000,
    as_json: Json = False,
) -> None:
    """Solve a task as a team that learns: draft, challenge, patch, verify, decide, compile."""
    from mneme.cli.learning import learn as run

    roles = {
        "researcher": researcher,
        "devils_advocate": devils_advocate,
        "leader": leader,
        "monitor": monitor,
    }
    context = {role: who or agents for role, who in roles.items()} | {
        "team": team,
        "recall": recall,
        "rows": rows,
    }
    given = {
        "query": query,
        "schema": schema,
        "database": database,
        "id": task_id,
        "world": world,
        "case": case,
        "workspace": str(workspace or ""),
        "check": check,
        "metrics": metric,
        "may_change": may_change,
    }
    where = {name: value for name, value in given.items() if value}
    run_command(run.learn(task, file, suite, run.size_of(count, seed), where, context, as_json))


CardId = Annotated[str, typer.Argument(help="A card's id, or its first letters.")]


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


@cards.command("propose")
def propose_card(
    claim: Annotated[str, typer.Argument(help="The lesson in one or two sentences.")],
    rationale: Annotated[str, typer.Option("--rationale", help="Why it holds, and what was seen.")] = "",
    scope: Annotated[str, typer.Option("--scope", help="The domain that it holds in.")] = "",
    rule: Annotated[
        list[str] | None, typer.Option("--rule", help='"CONDITION: WHAT TO DO"; may be repeated.')
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="A word to find it by; may be repeated.")
    ] = None,
    reason: Reason = "",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Store a lesson that no task has tested, as a provisional card for a person to review."""
    from mneme.cli.learning import cards as run

    lesson = {"claim": claim, "rationale": rationale, "scope": scope, "tags": tag or []}
    run_command(run.propose(team, lesson, rule or [], reason, as_json))


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
    as_json: Json = False,
) -> None:
    """Write all cards as YAML."""
    from mneme.cli.learning import cards as run

    run_command(run.export(team, file, versions, as_json))


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


DisputeId = Annotated[str, typer.Argument(help="A dispute's id, or its first letters.")]


@disputes.command("list")
def list_disputes(
    team: Team = "local",
    status: Annotated[str, typer.Option("--status", help="open, escalated or resolved.")] = "",
    as_json: Json = False,
) -> None:
    """List the disputes, oldest first."""
    from mneme.cli.learning import disputes as run

    run_command(run.list_(team, status, as_json))


@disputes.command("show")
def show_dispute(dispute: DisputeId, team: Team = "local", as_json: Json = False) -> None:
    """Show a dispute: both approaches, the trials, the resolution."""
    from mneme.cli.learning import disputes as run

    run_command(run.show(team, dispute, as_json))


@disputes.command("resolve")
def resolve_dispute(
    dispute: DisputeId,
    decision: Annotated[
        str,
        typer.Option(
            "--decision", help="deprecate_old, keep_old or merge; without it, the dispute is tested."
        ),
    ] = "",
    reason: Reason = "decided on the command line",
    team: Team = "local",
    agents: Agents = "auto",
    rows: Rows = 60_000,
    world: Annotated[
        str, typer.Option("--world", help="The world of the similar tasks; default: the card's.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Test both approaches on similar tasks, or decide the dispute yourself."""
    from mneme.cli.learning import disputes as run

    context = {"team": team, "devils_advocate": agents, "environment": world, "rows": rows}
    run_command(run.resolve(dispute, decision, reason, context, as_json))
