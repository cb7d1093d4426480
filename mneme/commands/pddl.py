"""`mneme pddl …`: play PDDL problems as a team with a memory of your choice."""

from pathlib import Path
from typing import Annotated

import typer

from mneme.commands.options import Json, run_command

pddl = typer.Typer(no_args_is_help=True, help="Play planning problems as a team with a memory.")

Folder = Annotated[
    Path | None, typer.Option("--data", help="A folder of PDDL problems, AgentBoard's for instance.")
]
Seed = Annotated[int, typer.Option("--seed", help="Which problems of our own are drawn.")]
Names = Annotated[
    list[str],
    typer.Argument(help="Problems: gripper, gripper/seed3-size6, a problem's file, or a name in --data."),
]
Role = Annotated[str, typer.Option(help="Who answers for this role; default: as --agents.")]


@pddl.command("list")
def list_problems(
    data: Folder = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="How many of our own.")] = 60,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """List problems: those of a folder, or a suite of our own drawn from a seed."""
    from mneme import pddl as run

    run_command(run.list_(data, count, seed, as_json))


@pddl.command("show")
def show(
    problem: Annotated[str, typer.Argument(help="As for `mneme pddl run`.")],
    data: Folder = None,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Show what a team is told of a problem: rules, goal, first observation."""
    from mneme import pddl as run

    run_command(run.show(problem, data, seed, as_json))


@pddl.command("memories")
def memories(as_json: Json = False) -> None:
    """List the memories that a team can have."""
    from mneme import pddl as run

    run_command(run.memories(as_json))


@pddl.command("run")
def play(
    problems: Names,
    memory: Annotated[str, typer.Option("--memory", "-m", help="See `mneme pddl memories`.")] = "intrinsic",
    agents: Annotated[
        str, typer.Option("--agents", envvar="MNEME_AGENTS", help="Who answers for all: auto, rules, …")
    ] = "auto",
    solver: Role = "",
    second_agent: Role = "",
    memory_model: Annotated[str, typer.Option(help="Who answers the memory's own questions.")] = "",
    window: Annotated[
        int,
        typer.Option("--window", help="Tokens of an agent's context: 512 or more, and room for the task."),
    ] = 4096,
    memory_tokens: Annotated[
        int, typer.Option("--memory-tokens", help="Tokens of an agent's structured memory: 100 or more.")
    ] = 700,
    team: Annotated[str, typer.Option("--team", envvar="MNEME_TEAM", help="Whose memory.")] = "local",
    run_id: Annotated[str, typer.Option("--id", help="The run's id; that of a killed run goes on.")] = "",
    data: Folder = None,
    seed: Seed = 1,
    as_json: Json = False,
) -> None:
    """Play problems one after the other, shown step by step; what the memory keeps helps the later ones.

    A problem that is not solved is no error: the exit status is 0, and the result says so.
    """
    from mneme import pddl as run

    roles = {"solver": solver, "second_agent": second_agent, "memory_model": memory_model}
    context = {role: who or agents for role, who in roles.items()} | {
        "memory": memory,
        "window": window,
        "memory_tokens": memory_tokens,
        "team": team,
    }
    run_command(run.run(problems, data, seed, context, run_id, as_json))
