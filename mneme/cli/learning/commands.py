"""`mneme learn` and `mneme disputes`: a team that learns, and findings against its cards."""

from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.learning.card_commands import CardId, Team, cards
from mneme.cli.learning.consolidate_command import consolidate_cards
from mneme.cli.options import Agents, Json, Reason, Role, run_command

app = typer.Typer()
disputes = typer.Typer(
    no_args_is_help=True, help="Findings that contradict verified cards: list, test and decide them."
)
cards.command("consolidate")(consolidate_cards)
app.add_typer(cards, name="cards")
app.add_typer(disputes, name="disputes")

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
        str, typer.Option("--check", help="The command that a solution must pass, e.g. `pytest -q`.")
    ] = "",
    metric: Annotated[
        list[str] | None,
        typer.Option("--metric", help="What should improve, e.g. cpu_seconds:lower:2; repeatable."),
    ] = None,
    may_change: Annotated[
        list[str] | None,
        typer.Option("--may-change", help="Files that may change, e.g. 'src/*.py'; repeatable."),
    ] = None,
    task_id: Annotated[
        str, typer.Option("--id", help="The task's id: one that is done is not run again.")
    ] = "",
    team: Team = "local",
    agents: Agents = "auto",
    researcher: Role = "",
    devils_advocate: Role = "",
    leader: Role = "",
    monitor: Role = "",
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


@disputes.command("open")
def open_dispute(
    card: CardId,
    claim: Annotated[str, typer.Argument(help="What was found against the card, in a sentence.")],
    rule: Annotated[str, typer.Option("--rule", help='Its rule, "CONDITION: WHAT TO DO".')] = "",
    task: Annotated[str, typer.Option("--task", help="The task that found it, by its id.")] = "",
    reason: Reason = "disputed by a person",
    team: Team = "local",
    as_json: Json = False,
) -> None:
    """Set a finding of your own against a card, to be tested or decided."""
    from mneme.cli.learning import disputes as run

    run_command(run.open_(card, {"claim": claim, "task": task}, rule, reason, team, as_json))


@disputes.command("resolve")
def resolve_dispute(
    dispute: DisputeId,
    decision: Annotated[
        str,
        typer.Option(
            "--decision", help="deprecate_old, keep_old or merge; without it, the dispute is tested."
        ),
    ] = "",
    claim: Annotated[
        str, typer.Option("--claim", help="For merge and deprecate_old: the new claim; else the finding's.")
    ] = "",
    rule: Annotated[
        list[str] | None,
        typer.Option("--rule", help='For merge and deprecate_old: "CONDITION: WHAT TO DO"; may be repeated.'),
    ] = None,
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
    verdict = {"decision": decision, "reason": reason, "claim": claim, "rules": rule or []}
    run_command(run.resolve(dispute, verdict, context, as_json))
