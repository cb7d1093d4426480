"""`mneme pddl …`: solve PDDL planning problems as a team with a chosen memory."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mneme.cli.groups import group, options_of
from mneme.cli.options import Json, run_command

pddl = group("A team with a memory solves planning problems (PDDL).")

Folder = Annotated[
    Path | None, typer.Option("--data", help="A folder of PDDL problems, such as AgentBoard's.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the generated problems.")]
Problems = Annotated[
    list[str],
    typer.Argument(help="Problems: gripper, gripper/seed3-size6, a problem's file, or a name in --data."),
]


@pddl.command("list")
def list_problems(
    data: Folder = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of generated problems.")] = 60,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """List the problems of a folder, or generated problems."""
    from mneme.cli.pddl import play as run

    run_command(run.list_(data, count, seed, as_json))


@pddl.command("show")
def show(
    problem: Annotated[str, typer.Argument(help="As for `mneme pddl run`.")],
    data: Folder = None,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Show a problem as the team sees it: actions, goal, first observation."""
    from mneme.cli.pddl import play as run

    run_command(run.show(problem, data, seed, as_json))


@pddl.command("memories")
def memories(as_json: Json = False) -> None:
    """List the memories that a team can have."""
    from mneme.cli.pddl import play as run

    run_command(run.memories(as_json))


@options_of(
    pddl,
    "pddl run",
    {"memory": "--memory -m"},
    "example project_insights",
    context="mneme.nodes.pddl.context:PddlContext",
)
def play(
    problems: Problems,
    context: dict[str, Any],
    run_id: Annotated[
        str, typer.Option("--id", help="The run's id; the id of a killed run continues it.")
    ] = "",
    data: Folder = None,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Solve problems one after the other; the memory carries over to the next.

    The exit status is 0 also if a problem is not solved; the result says so.
    """
    from mneme.cli.pddl import play as run

    run_command(run.run(problems, data, seed, context, run_id, as_json))
