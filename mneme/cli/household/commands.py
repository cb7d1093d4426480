"""`mneme household …`: a team does household tasks; its runs can be replayed."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.options import Json, run_command

app = typer.Typer(no_args_is_help=True, help="A manager and its members do household tasks (MiTa).")


class Setting(StrEnum):
    """How members perceive their surroundings."""

    symbolic = "symbolic"
    visual = "visual"


Run = Annotated[str, typer.Argument(help="The name of a run; see `mneme household list`.")]


@app.command()
def run(
    task: Annotated[
        str, typer.Option("--task", help="Prepare Tea, Wash Dishes, … (default: chosen by the seed).")
    ] = "",
    agents: Annotated[int, typer.Option("--agents", "-n", help="Members of the team, 1 to 4.")] = 3,
    episode: Annotated[
        Path | None, typer.Option("--episode", help="A C-WAH episode file, instead of a task.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Decides the apartment, and who is first in a conflict.")
    ] = 0,
    name: Annotated[
        str | None, typer.Option("--name", help="The run's name (default: task, agents and seed).")
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model", envvar="MNEME_MEMBER", help="Model of the members: auto, rules, ollama:MODEL, …"
        ),
    ] = "auto",
    manager_model: Annotated[
        str,
        typer.Option(
            "--manager-model", envvar="MNEME_MANAGER", help="Model of the manager (default: --model)."
        ),
    ] = "",
    allocation: Annotated[
        bool, typer.Option("--allocation/--no-allocation", help="Let the manager allocate actions.")
    ] = True,
    summary: Annotated[
        bool, typer.Option("--summary/--no-summary", help="Let the manager write synopses.")
    ] = True,
    remember: Annotated[
        bool, typer.Option("--remember", help="Start with what the team remembers of this apartment.")
    ] = False,
    setting: Annotated[
        Setting,
        typer.Option("--setting", help="Whether members are told what is in their room, or see it."),
    ] = Setting.symbolic,
    team: Annotated[
        str, typer.Option("--team", help="The team whose memories of apartments are used.")
    ] = "local",
    watch: Annotated[
        bool, typer.Option("--watch", help="Show rooms, hands and decisions while the team acts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Play an episode. After a kill, the same command continues it."""
    from mneme.cli.household import play as household

    context = {
        "member": model,
        "manager": manager_model or model,
        "allocation": allocation,
        "summary": summary,
        "remember": remember,
        "setting": setting.value,
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
    """Print or draw what happened in a run."""
    from mneme.cli.household import replay as household_replay

    household_replay.replay(name, step, png, gif, as_json)


@app.command("list")
def list_runs(as_json: Json = False) -> None:
    """List the runs, the latest first."""
    from mneme.cli.household import replay as household_replay

    household_replay.list_runs(as_json)
