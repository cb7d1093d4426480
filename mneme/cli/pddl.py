"""`mneme pddl …`: solve PDDL problems with a chosen memory, and show problems."""

import asyncio
import re
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast
from uuid import uuid4

import typer
from rich.markup import escape

from mneme.cli.chat.responders import Context, show_notice
from mneme.cli.derived import UNTOLD_MAXIMUM, Fields
from mneme.cli.show import console, emit, print_result, print_rows, say
from mneme.client.workflows import GraphRun, Workflows, open_workflows
from mneme.core.errors import BadInput
from mneme.environments.pddl import (
    DOMAINS,
    Domain,
    PddlWorld,
    Problem,
    generate,
    generate_suite,
    load_folder,
    load_one,
)
from mneme.models.asking.counting import in_words, tokens_in
from mneme.nodes.pddl.context import PddlContext
from mneme.nodes.task_memories.kinds import MEMORIES_BY_NAME

PRINTED_COLUMNS = (
    *("task_id", "progress", "success", "steps", "valid_steps"),
    *("asked", "answered_by", "complaints"),
)
PROBLEM_NAME = re.compile(r"(?P<domain>[a-z]+)(?:/seed(?P<seed>-?\d+)(?:-size(?P<size>\d+))?)?")
"""The name of a generated problem: `gripper`, `gripper/seed3`, `gripper/seed3-size6`."""
Data = Annotated[Path | None, typer.Option("--data", help="A folder of PDDL problems, such as AgentBoard's.")]
Seed = Annotated[
    int, typer.Option("--seed", min=0, max=UNTOLD_MAXIMUM, help="Seed of the generated problems.")
]


async def list_(
    data: Data = None,
    count: Annotated[int, typer.Option("--count", min=1, help="Number of generated problems.")] = 60,
    seed: Seed = 1,
) -> None:
    """List the problems of a folder, or generated problems."""
    problems = await asyncio.to_thread(lambda: load_folder(data) if data else generate_suite(count, seed))
    found = [
        {"name": each.name, "difficulty": each.difficulty, "goals": len(each.compiled.goal)}
        for each in problems
    ]
    print_result(found, partial(print_rows, titled=f"{len(found)} problems"))


async def show(
    problem: Annotated[str, "As for `mneme pddl run`."],
    data: Data = None,
    seed: Seed = 1,
) -> None:
    """Show a problem as the team sees it: actions, goal, first observation."""
    (found,) = await asyncio.to_thread(find, [problem], data, seed)
    parts = {"name": found.name, "goal": found.goal, "manual": found.manual}
    parts["first_observation"] = PddlWorld(found).first_observation
    emit(parts | {"domain_pddl": found.domain_pddl, "problem_pddl": found.problem_pddl})
    for part in parts.values():
        say(escape(part))


async def memories() -> None:
    """List the memories that a team can have."""
    found = [
        {"memory": name, "what": (kind.__doc__ or "").strip().splitlines()[0]}
        for name, kind in MEMORIES_BY_NAME.items()
    ]
    print_result(found)


async def run(
    problems: Annotated[
        list[str], "Problems: gripper, gripper/seed3-size6, a problem's file, or a name in --data."
    ],
    context: Annotated[Context, Fields(PddlContext, {"memory": "--memory -m"}, "example")],
    run_id: Annotated[str, "The run's id; the id of a killed run continues it.", "--id"] = "",
    data: Data = None,
    seed: Seed = 1,
) -> None:
    """Solve problems one after the other; the memory carries over to the next.

    The exit status is 0 also if a problem is not solved; the result says so.
    """
    found = await asyncio.to_thread(find, problems, data, seed)
    await show_notice(context["solver"], context["second_agent"], context["memory_model"])
    named = run_id or uuid4().hex[:8]
    console.print(f"run {named}; after a kill, --id {named} continues it", style="dim")
    async with open_workflows("pddl_team") as flows:
        # one after the other: the memory of one is what the next begins with
        solved = [await _play(flows, each, context, named) for each in found]
    console.print(f"\n{sum(solved)} of {len(solved)} problems solved.")


async def _play(flows: Workflows, problem: Problem, context: Context, run_id: str) -> bool:
    """Solve one problem, or continue one that was killed; a finished one is only printed."""
    task_id = f"{run_id}/{problem.name}"
    config = await flows.thread(f"pddl/{context['team']}/{task_id}", "pddl_team")
    _, left = await flows.left_at("pddl_team", config)
    say(f"\n[bold]{escape(problem.name)}[/] {escape(problem.goal)}")
    # always resumed: a thread that was killed between two steps can look finished
    given = None if left else {"problem": problem.model_dump(), "task_id": task_id}
    # sync: a step that was printed is kept, and is not taken again after a kill
    run = GraphRun(flows, "pddl_team", given, config, context, durability="sync")
    async for event in run:
        print_step(event)
    _print_result(run.values)
    return bool(run.values["success"])


def print_step(event: dict[str, Any]) -> None:
    """Print an agent's action and its result."""
    emit(event)
    if "action" in event:
        who, action = escape(event["agent"]), escape(event["action"])
        progress = f"[dim]progress {event['progress']:.2f}[/]"
        say(f"{event['step']:>3} [cyan]{who}[/] {action} {progress}")
        say(f"      [dim]{escape(event['observation'])}[/]")


def _print_result(values: dict[str, Any]) -> None:
    asked = values["asked"]
    emit({name: values[name] for name in PRINTED_COLUMNS})
    solved = "[green]solved[/]" if values["success"] else "[red]not solved[/]"
    grounded = values["valid_steps"] / max(1, values["steps"])
    console.print(
        f"  {solved} in {values['steps']} steps: progress {values['progress']:.2f}, grounding accuracy "
        f"{grounded:.2f}, {tokens_in(asked)} tokens in {asked['calls']} calls"
    )
    console.print(f"  [dim]{in_words(asked)}[/]")
    for complaint in values["complaints"]:
        say(f"  [yellow]{escape(complaint)}[/]")


def find(names: list[str], data: Path | None, seed: int) -> list[Problem]:
    """Return the problems of these names. Raises BadInput for one that is not there."""
    there = {} if data is None else {problem.name: problem for problem in load_folder(data)}
    # all before the first is solved, which takes minutes with a model
    if there and (lacking := next((each for each in names if each not in there), "")):
        has = f"It has {', '.join(list(there)[:5])}, …; see `mneme pddl list`."
        raise BadInput(f"The folder has no problem {lacking!r}.", has)
    return [there[name] if there else _single(name, seed) for name in names]


def _single(name: str, seed: int) -> Problem:
    """Return the problem of a file, or a generated one."""
    if Path(name).suffix == ".pddl":
        return load_one(Path(name))
    generated = PROBLEM_NAME.fullmatch(name)
    if generated is None or generated["domain"] not in DOMAINS:
        raise BadInput(
            f"There is no problem {name!r}.",
            f"Give {', '.join(DOMAINS)}, one as `gripper/seed3-size6`, or a file; --data takes a folder.",
        )
    size = int(generated["size"]) if generated["size"] else None
    return generate(cast(Domain, generated["domain"]), int(generated["seed"] or seed), size)
