"""`mneme household …`: a team at work in a household, and what it did."""

from pathlib import Path
from typing import Annotated

import typer

from mneme.commands.options import Json, run_command

app = typer.Typer(no_args_is_help=True, help="A manager and its members do household tasks (MiTa).")

Run = Annotated[str, typer.Argument(help="The name of a run; see `mneme household list`.")]


@app.command()
def run(
    task: Annotated[str, typer.Option("--task", help="Prepare Tea, Wash Dishes, … (default: drawn).")] = "",
    agents: Annotated[int, typer.Option("--agents", "-n", help="Members of the team, 1 to 4.")] = 3,
    episode: Annotated[
        Path | None, typer.Option("--episode", help="A C-WAH episode, instead of a task.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Which apartment, and who is first in a conflict.")
    ] = 0,
    name: Annotated[
        str | None, typer.Option("--name", help="The run's name (default: by what it plays).")
    ] = None,
    model: Annotated[
        str, typer.Option("--model", envvar="MNEME_MEMBER", help="Who the members are: auto, rules, …")
    ] = "auto",
    manager_model: Annotated[
        str, typer.Option("--manager-model", envvar="MNEME_MANAGER", help="Who the manager is; as members.")
    ] = "",
    allocation: Annotated[
        bool, typer.Option("--allocation/--no-allocation", help="Whether the manager allocates.")
    ] = True,
    summary: Annotated[
        bool, typer.Option("--summary/--no-summary", help="Whether the manager keeps synopses.")
    ] = True,
    remember: Annotated[
        bool, typer.Option("--remember", help="Start from what the team learned in this apartment.")
    ] = False,
    team: Annotated[str, typer.Option("--team", help="Whose memories of apartments.")] = "local",
    watch: Annotated[bool, typer.Option("--watch", help="Show the team at work.")] = False,
    as_json: Json = False,
) -> None:
    """Play an episode; the same command again goes on with one that was killed."""
    from mneme import household

    context = {
        "member": model,
        "manager": manager_model or model,
        "allocation": allocation,
        "summary": summary,
        "remember": remember,
        "team": team,
        "seed": seed,
    }
    given = household.Given(task=task, agents=agents, episode=episode, seed=seed, name=name)
    run_command(household.run(given, context, watch, as_json))


@app.command()
def replay(
    name: Run,
    step: Annotated[int | None, typer.Option("--step", help="Up to this step (default: the last).")] = None,
    png: Annotated[Path | None, typer.Option("--png", help="Draw the floor plan at that step.")] = None,
    gif: Annotated[Path | None, typer.Option("--gif", help="Draw the whole run as an animation.")] = None,
    as_json: Json = False,
) -> None:
    """Tell again what a run did, or draw it."""
    from mneme import household_replay

    household_replay.replay(name, step, png, gif, as_json)


@app.command("list")
def list_runs(as_json: Json = False) -> None:
    """List the runs, the latest first."""
    from mneme import household_replay

    household_replay.list_runs(as_json)
