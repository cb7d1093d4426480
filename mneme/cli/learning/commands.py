"""`mneme learn` and `mneme disputes`: a team that learns, and findings against its cards."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.cli.groups import Calls, group, options_of
from mneme.cli.learning.card_commands import CardId, cards
from mneme.cli.options import Json, Reason, Team, run_command

app = typer.Typer()
disputes = group("Findings that contradict verified cards: list, test and decide them.")
app.add_typer(cards, name="cards")
app.add_typer(disputes, name="disputes")


@options_of(
    app,
    "learn",
    without="environment schema_name database_seed successes_to_verify",
    where="mneme.cli.learning.learn:Where",
    context="mneme.nodes.learning.context:LearningContext",
)
def learn(
    where: dict[str, Any],
    context: dict[str, Any],
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
    as_json: Json = False,
) -> None:
    """Solve a task as a team that learns: draft, challenge, patch, verify, decide, compile."""
    from mneme.cli.learning import learn as run

    run_command(run.learn(task, file, suite, run.size_of(count, seed), where, context, as_json))


DisputeId = Annotated[str, typer.Argument(help="A dispute's id, or its first letters.")]
Calls(disputes, "disputes", "mneme.api.cards:Cards", "mneme.cli.learning.disputes")(
    "list", "list_disputes", "print_disputes", "List the disputes, oldest first.", {"card_id": "--card"}
)


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


@options_of(
    disputes,
    "disputes resolve",
    {"environment": "--world"},
    "schema_name database_seed successes_to_verify",
    context="mneme.nodes.learning.context:TeamContext",
)
def resolve_dispute(
    dispute: DisputeId,
    context: dict[str, Any],
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
    as_json: Json = False,
) -> None:
    """Test both approaches on similar tasks, or decide the dispute yourself."""
    from mneme.cli.learning import disputes as run

    verdict = {"decision": decision, "reason": reason, "claim": claim, "rules": rule or []}
    run_command(run.resolve(dispute, verdict, context, as_json))
