"""`mneme household …`: a team does household tasks; its runs can be replayed."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.cli.groups import group, options_of
from mneme.cli.options import Json, run_command

app = group("A manager and its members do household tasks (MiTa).")

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


@options_of(
    app,
    "household run",
    {"simulator": "--virtualhome"},
    "lapse_kind member_lapses manager_lapses",
    context="mneme.nodes.household.context:HouseholdContext",
)
def run(
    context: dict[str, Any],
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
    name: Annotated[
        str | None, typer.Option("--name", help="The run's name (default: task, members and seed).")
    ] = None,
    weak_model: Annotated[
        str, typer.Option("--weak-model", help="A weaker model for some: see --weak (the paper's figure 3b).")
    ] = "",
    weak: Annotated[
        Weak, typer.Option("--weak", help="Whose model --weak-model is: members, manager or both.")
    ] = Weak.MEMBERS,
    watch: Annotated[
        bool, typer.Option("--watch", help="Show rooms, hands and decisions while the team acts.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Play an episode. After a kill, the same command continues it."""
    from mneme.cli.household import play as household

    weakened = {Weak.MEMBERS: ["member"], Weak.MANAGER: ["manager"], Weak.BOTH: ["member", "manager"]}[weak]
    context |= dict.fromkeys(weakened, weak_model) if weak_model else {}
    context |= {"allocation": False, "summary": False} if method == Method.ALONE else {}
    size = (1 if method == Method.ALONE else 3) if members is None else members
    given = household.Given(task, size, episode, context["seed"], name, method)
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
