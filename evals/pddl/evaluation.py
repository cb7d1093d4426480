"""Intrinsic Memory Agents, table 1: eight memories of a team on PDDL tasks.

A team of two plays every problem in a seeded order with each memory; a memory that learns across tasks has
its own ledger per order. Reward is a task's progress, a table's value the mean over tasks. Problems are
our own, drawn from the seed with AgentBoard's shares of the four domains, or a folder's (AgentBoard's 60
files with `--data`, or the folder `pddl` of MNEME_DATA), which a seed only puts into another order.
"""

import asyncio
import os
from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from random import Random

from pydantic import Field

from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.environments.pddl import Problem, generate_suite, load_folder
from mneme.evals.answering import Identity, identify
from mneme.evals.measuring import home_beside, processes
from mneme.evals.options import Agents, RunOptions
from mneme.evals.pddl.play import Case, Team, play
from mneme.evals.pddl.tables import report
from mneme.evals.report import Journal, Progress, Report, Row, digest
from mneme.models.asking.counting import tokens
from mneme.nodes.pddl.pddl_team import task_of
from mneme.nodes.task_memories.kinds import MEMORIES

PROBLEMS = 60
MIN_WINDOW = 512
"""Tokens of the smallest window."""


class Options(RunOptions):
    """Which problems with which memories, in which orders, and who answers."""

    data: Path | None = Field(
        None, description="Folder of PDDL problems; default: MNEME_DATA's, if it has them, else our own."
    )
    problems: int | None = Field(
        None, ge=1, description=f"So many of our own, whatever data there are; default: {PROBLEMS}."
    )
    memories: list[str] = Field(list(MEMORIES), min_length=1, description="The memories compared.")
    seeds: list[int] = Field([1], min_length=1, description="Problems of our own, and their order.")
    agents: Agents = "auto"
    window: int = Field(4096, ge=MIN_WINDOW, description="Tokens of an agent's context.")
    memory_tokens: int = Field(700, ge=100, description="Tokens of a structured memory.")
    workers: int | None = Field(
        None, ge=1, description="Processes at once; default: the cores, for a model MNEME_PARALLEL."
    )
    example: bool = Field(True, description="Show one worked example of the domain, as AgentBoard does.")


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Play every problem with every memory in every order; go on where an interrupted run stopped."""
    for memory in options.memories:
        if memory not in MEMORIES:
            raise BadInput(f"There is no memory {memory!r}.", f"There are: {', '.join(MEMORIES)}.")
    who = await identify(options.agents)
    folder = _folder(options)
    loaded = [] if folder is None else await asyncio.to_thread(load_folder, folder)
    journal = await _journal(options, who, loaded)
    home = home_beside(journal).absolute()
    home.mkdir(parents=True, exist_ok=True)
    teams = [
        cases
        for seed in options.seeds
        for cases in await asyncio.to_thread(_cases, options, who, home, loaded, seed)
    ]
    by_default = settings().parallel if who.is_model else os.cpu_count()
    workers = options.workers or by_default or 1
    turns = {case.name: case for turn in zip_longest(*teams) for case in turn if case}
    if not turns:
        wrong = f"No problem leaves room for turns: the window has {options.window} tokens."
        raise BadInput(wrong, "Give a larger --window.")
    locks = defaultdict[str, asyncio.Lock](asyncio.Lock)
    with processes(workers, play) as player:

        async def one(case: Case) -> Row:
            async with locks[case.team.name]:  # a team plays one problem after the other
                return await player(case)

        await journal.play(turns, one, progress, concurrency=workers)
    source = "our own, drawn by seed" if folder is None else f"from {folder}"
    rows = [journal[case.name] for team in teams for case in team]
    return report(rows, options.seeds, who, source, journal)


def _cases(
    options: Options, who: Identity, home: Path, loaded: Sequence[Problem], seed: int
) -> list[list[Case]]:
    """Return what each memory is to play by one seed: the problems that leave room for turns."""
    problems = list(loaded) or generate_suite(options.problems or PROBLEMS, seed)
    Random(seed).shuffle(problems)  # noqa: S311 - an order, no secret
    room, kept = options.window, options.memory_tokens
    fitting = [each for each in problems if tokens(task_of(each).text) + kept < room]
    embedder = options.embedder or settings().embedder
    teams = [
        Team(memory, seed, who.responder, room, kept, embedder, home, options.example)
        for memory in options.memories
    ]
    return [[Case(team, number, each) for number, each in enumerate(fitting)] for team in teams]


def _folder(options: Options) -> Path | None:
    """Return the folder that problems are loaded from; None for our own."""
    if options.data is not None or options.problems is not None:
        return options.data
    place = settings().data
    return place / "pddl" if place is not None and (place / "pddl").is_dir() else None


async def _journal(options: Options, who: Identity, loaded: Sequence[Problem]) -> Journal:
    configuration = {
        "problems": [digest(problem.model_dump()) for problem in loaded] or options.problems or PROBLEMS,
        "agents": who.model_dump(),
        "rooms": [options.window, options.memory_tokens],
        "shown": options.example,
        "embedder": (await options.opened_embedder()).name,
    }
    return options.journal("pddl", configuration)
