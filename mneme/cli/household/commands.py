"""`mneme household …`: a team does household tasks; its runs can be replayed."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.options import Agents, Json, Role, run_command

app = typer.Typer(no_args_is_help=True, help="A manager and its members do household tasks (MiTa).")

Run = Annotated[str, typer.Argument(help="The name of a run (see `mneme household list`), or its file.")]


class Method(StrEnum):
    """How a team decides; the names are those of the command line."""

    MITA = "mita"
    COELA = "coela"
    PROAGENT = "proagent"
    MHP = "mhp"
    ALONE = "alone"


class Weak(StrEnum):
    """Whose model `--weak-model` is."""

    MEMBERS = "members"
    MANAGER = "manager"
    BOTH = "both"


class Setting(StrEnum):
    """How members perceive their surroundings."""

    SYMBOLIC = "symbolic"
    VISUAL = "visual"


@app.command()
def run(
    task: Annotated[
        str, typer.Option("--task", help="Prepare Tea, Wash Dishes, … (default: chosen by the seed).")
    ] = "",
    method: Annotated[
        Method,
        typer.Option(
            "--method", help="How the team decides: MiTa, or one of those that it is compared with."
        ),
    ] = Method.MITA,
    members: Annotated[
        int | None,
        typer.Option("--members", "-n", help="Members of the team, 1 to 4 (default: 3; alone: 1)."),
    ] = None,
    episode: Annotated[
        Path | None, typer.Option("--episode", help="An episode file (C-WAH's or your own), not a task.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="Decides the apartment, and who is first in a conflict.")
    ] = 0,
    name: Annotated[
        str | None, typer.Option("--name", help="The run's name (default: task, members and seed).")
    ] = None,
    agents: Agents = "auto",
    manager: Role = "",
    weak_model: Annotated[
        str, typer.Option("--weak-model", help="A weaker model for some: see --weak (the paper's figure 3b).")
    ] = "",
    weak: Annotated[
        Weak, typer.Option("--weak", help="Whose model --weak-model is: members, manager or both.")
    ] = Weak.MEMBERS,
    rounds: Annotated[
        int,
        typer.Option("--rounds", min=1, max=4, help="Rounds of negotiation before the manager allocates."),
    ] = 1,
    window: Annotated[
        int,
        typer.Option("--window", min=1, help="Latest steps that a member reports, and actions it is shown."),
    ] = 10,
    allocation: Annotated[
        bool, typer.Option("--allocation/--no-allocation", help="Let the manager allocate actions.")
    ] = True,
    summary: Annotated[
        bool, typer.Option("--summary/--no-summary", help="Let the manager write synopses.")
    ] = True,
    remember: Annotated[
        bool, typer.Option("--remember", help="Start with what the team learned in earlier episodes.")
    ] = False,
    setting: Annotated[
        Setting,
        typer.Option("--setting", help="Whether members are told what is in their room, or see it."),
    ] = Setting.SYMBOLIC,
    perception: Annotated[
        str,
        typer.Option(
            "--perception",
            help="What sees with --setting visual: segments, or a vision model, ollama:MODEL.",
        ),
    ] = "segments",
    virtualhome: Annotated[
        str,
        typer.Option(
            "--virtualhome", help="Play in the real VirtualHome: its simulator's URL, or evolving_graph."
        ),
    ] = "",
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
        "member": weak_model if weak_model and weak != Weak.MANAGER else agents,
        "manager": weak_model if weak_model and weak != Weak.MEMBERS else manager or agents,
        "rounds": rounds,
        "window": window,
        "allocation": allocation and method != Method.ALONE,
        "summary": summary and method != Method.ALONE,
        "remember": remember,
        "setting": setting.value,
        "perception": perception,
        "simulator": virtualhome,
        "team": team,
        "seed": seed,
    }
    size = (1 if method == Method.ALONE else 3) if members is None else members
    given = household.Given(task=task, agents=size, episode=episode, seed=seed, name=name, method=method)
    run_command(household.run(given, context, watch, as_json))


@app.command()
def replay(
    name: Run,
    other: Annotated[str | None, typer.Argument(help="Another run, to be shown beside the first.")] = None,
    step: Annotated[int | None, typer.Option("--step", help="Up to this step (default: the last).")] = None,
    png: Annotated[Path | None, typer.Option("--png", help="Draw the floor plan at that step.")] = None,
    gif: Annotated[Path | None, typer.Option("--gif", help="Draw the whole run as an animation.")] = None,
    as_json: Json = False,
) -> None:
    """Print or draw what happened in a run."""
    from mneme.cli.household import replay as household_replay

    household_replay.replay([name, other] if other else [name], step, png, gif, as_json)


@app.command("list")
def list_runs(as_json: Json = False) -> None:
    """List the runs, the latest first."""
    from mneme.cli.household import replay as household_replay

    household_replay.list_runs(as_json)
