"""`mneme pddl …`: solve PDDL planning problems as a team with a chosen memory."""

from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.options import Agents, Json, Role, run_command

pddl = typer.Typer(no_args_is_help=True, help="A team with a memory solves planning problems (PDDL).")

Folder = Annotated[
    Path | None, typer.Option("--data", help="A folder of PDDL problems, such as AgentBoard's.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the generated problems.")]
Names = Annotated[
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


@pddl.command("run")
def play(
    problems: Names,
    memory: Annotated[str, typer.Option("--memory", "-m", help="See `mneme pddl memories`.")] = "intrinsic",
    agents: Agents = "auto",
    solver: Role = "",
    second_agent: Role = "",
    memory_model: Annotated[
        str, typer.Option(help="Model for the memory's own questions; default: --agents.")
    ] = "",
    window: Annotated[
        int,
        typer.Option("--window", help="Tokens of an agent's context: 512 or more, and enough for the task."),
    ] = 4096,
    memory_tokens: Annotated[
        int, typer.Option("--memory-tokens", help="Tokens of an agent's structured memory: 100 or more.")
    ] = 700,
    team: Annotated[
        str, typer.Option("--team", envvar="MNEME_TEAM", help="The team whose memory is used.")
    ] = "local",
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

    roles = {"solver": solver, "second_agent": second_agent, "memory_model": memory_model}
    context = {role: who or agents for role, who in roles.items()} | {
        "memory": memory,
        "window": window,
        "memory_tokens": memory_tokens,
        "team": team,
    }
    run_command(run.run(problems, data, seed, context, run_id, as_json))
