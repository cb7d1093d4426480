"""Intrinsic Memory Agents, table 1: eight memories of a team on PDDL tasks.

A team of two plays every problem in a seeded order with each memory; a memory that learns across tasks
has its own ledger per order. No memory and intrinsic memory play again in a tight window, which has no room
for all turns of the longer tasks. Reward is a task's progress, a table's value the mean over tasks. Problems
are our own, drawn from the seed with AgentBoard's shares of the four domains, or a folder's (AgentBoard's
60 files with `--data`, or what the folder `pddl` of MNEME_DATA holds), which a seed only puts into another
order; the paper ran once, in one order.

Every memory and order is a process of its own, so that two cores are both used; with one worker, all are
played one after the other in this process. Rows are kept as they come, and an interrupted evaluation goes on,
also in the middle of a task.
"""

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from pydantic import BaseModel, Field

from mneme.core.errors import BadInput, MnemeError
from mneme.core.settings import settings
from mneme.environments.pddl import Problem, generate_suite, load_folder
from mneme.evals.answering import Identity, identify
from mneme.evals.options import RUNS, Agents, EmbedderName, Fresh, Out
from mneme.evals.pddl.play import Answered, Job, play
from mneme.evals.pddl.tables import report
from mneme.evals.report import ROOT, Journal, Progress, Report, Row, digest, open_journal
from mneme.models.asking.budget import tokens
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.pddl.pddl_team import task_of
from mneme.nodes.task_memories.kinds import MEMORIES

PROBLEMS = 60
AGAIN = ("none", "intrinsic")
"""The memories that are compared once more in a tight window, where turns are lost that a memory can keep."""
LEAST = 512
"""Tokens of the smallest window."""
LINE = 2**26
"""Bytes that a row with its transcript may take."""


class Options(BaseModel):
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
    window: int = Field(4096, ge=LEAST, description="Tokens of an agent's context.")
    memory_tokens: int = Field(700, ge=100, description="Tokens of a structured memory.")
    tight_window: int = Field(
        2500, ge=0, description="A second window, for no memory and intrinsic; below 512: none."
    )
    tight_memory_tokens: int = Field(400, ge=100, description="Tokens of a structured memory in that window.")
    workers: int | None = Field(
        None, ge=1, description="Processes at once; default: the cores, for a model MNEME_PARALLEL."
    )
    example: bool = Field(True, description="Show one worked example of the domain, as AgentBoard does.")
    project_insights: bool = Field(False, description="Word G-Memory's insights for each role.")
    out: Out = RUNS
    embedder: EmbedderName = ""
    fresh: Fresh = False


class Room(NamedTuple):
    """Tokens of an agent's context, and of its structured memory."""

    window: int
    memory_tokens: int


@dataclass
class Experiment:
    """What every job shares: the options, who answers, where ledgers are, and what is played already."""

    options: Options
    who: Identity
    home: Path
    journal: Journal
    progress: Progress

    @property
    def workers(self) -> int:
        """Return how many processes play at once: one would only wait for a model that serves another."""
        by_default = settings().parallel if self.who.is_model else os.cpu_count()
        return self.options.workers or by_default or 1

    def job(self, memory: str, seed: int, problems: list[Problem], room: Room) -> Job:
        """Return what a process has to play, without what is played already."""
        job = Job(
            memory=memory,
            seed=seed,
            who=self.who.responder,
            window=room.window,
            memory_tokens=room.memory_tokens,
            embedder=self.options.embedder or settings().embedder,
            example=self.options.example,
            project_insights=self.options.project_insights,
            home=self.home,
            problems=problems,
            done=[],
        )
        done = [number for number in range(len(problems)) if _case(job, number) in self.journal]
        return job.model_copy(update={"done": done})

    async def jobs(self, seed: int, loaded: Sequence[Problem]) -> list[Job]:
        """Return what is to be played in one order: every memory, then those that are played again."""
        options = self.options
        problems = await asyncio.to_thread(_order, options, loaded, seed)
        room = Room(options.window, options.memory_tokens)
        first = [self.job(memory, seed, problems, room) for memory in options.memories]
        if not LEAST <= options.tight_window < options.window:
            return first
        tight = Room(options.tight_window, options.tight_memory_tokens)
        fitting = await asyncio.to_thread(_fitting, problems, tight)
        again = [memory for memory in AGAIN if memory in options.memories and fitting]
        return first + [self.job(memory, seed, fitting, tight) for memory in again]

    async def run(self, jobs: Sequence[Job]) -> None:
        """Run the jobs, so many at once; the first failure stops them all."""
        free = asyncio.Semaphore(self.workers)
        try:
            async with asyncio.TaskGroup() as group:
                for job in jobs:
                    if len(job.done) < len(job.problems):
                        group.create_task(self._play(job, free, jobs))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _play(self, job: Job, free: asyncio.Semaphore, jobs: Sequence[Job]) -> None:
        rows_of = _rows_here if self.workers == 1 else _rows
        async with free, aclosing(rows_of(job)) as rows:
            async for number, row in rows:
                played = {
                    "memory": job.memory,
                    "seed": job.seed,
                    "number": number,
                    "window": job.window,
                    "memory_tokens": job.memory_tokens,
                }
                self.journal.add(_case(job, number), played | row)
                total = sum(len(each.problems) for each in jobs)
                self.progress(len(self.rows(jobs)), total, f"{job.memory}, order {job.seed}")

    def rows(self, jobs: Sequence[Job]) -> list[Row]:
        """Return what is played of some jobs."""
        cases = [_case(job, number) for job in jobs for number in range(len(job.problems))]
        return [self.journal[case] for case in cases if case in self.journal]


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Play every problem with every memory in every order; go on where an interrupted run stopped."""
    for memory in options.memories:
        if memory not in MEMORIES:
            raise BadInput(f"There is no memory {memory!r}.", f"There are: {', '.join(MEMORIES)}.")
    who = await identify(options.agents)
    folder = _folder(options)
    loaded = [] if folder is None else await asyncio.to_thread(load_folder, folder)
    journal = await _journal(options, who, loaded)
    experiment = Experiment(options, who, _home(journal), journal, progress)
    jobs = [each for seed in options.seeds for each in await experiment.jobs(seed, loaded)]
    await experiment.run(jobs)
    source = "our own, drawn by seed" if folder is None else f"from {folder}"
    return report(experiment.rows(jobs), options.seeds, who, source, journal.path)


def _fitting(problems: Sequence[Problem], room: Room) -> list[Problem]:
    """Return the problems whose task and memory leave something of a window, by the estimate, to turns."""
    return [each for each in problems if tokens(task_of(each).text) + room.memory_tokens < room.window]


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
        "rooms": [options.window, options.memory_tokens, options.tight_window, options.tight_memory_tokens],
        "shown": [options.example, options.project_insights],
        "embedder": (await open_embedder(options.embedder or settings().embedder)).name,
    }
    return open_journal(options.out, "pddl", configuration, fresh=options.fresh)


def _home(journal: Journal) -> Path:
    """Return the folder of the ledgers, emptied of what a run left that finished no task."""
    home = journal.path.with_suffix("").absolute()
    if not journal.rows:
        shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True, exist_ok=True)
    return home


def _order(options: Options, loaded: Sequence[Problem], seed: int) -> list[Problem]:
    """Return a seed's problems in its order."""
    problems = list(loaded) or generate_suite(options.problems or PROBLEMS, seed)
    Random(seed).shuffle(problems)  # noqa: S311 - an order, no secret
    return problems


def _case(job: Job, number: int) -> str:
    return f"{job.name}/{number:03d}"


async def _rows_here(job: Job) -> AsyncGenerator[tuple[int, Row], None]:
    """Run a job in this process and yield its rows."""
    async with aclosing(play(job)) as told:
        async for answered in told:
            yield answered.number, answered.row


async def _rows(job: Job) -> AsyncGenerator[tuple[int, Row], None]:
    """Have a process run a job and yield its rows; it plays on when the next row is asked for."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mneme.evals.pddl.play"),
        stdin=PIPE,
        stdout=PIPE,
        limit=LINE,
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        await _tell(process, job.model_dump_json())
        while line := await _line(process):
            answered = Answered.model_validate_json(line)
            if answered.error:
                raise MnemeError(answered.error, answered.hint)
            yield answered.number, answered.row
            await _tell(process, "kept")
        if status := await process.wait():
            raise MnemeError(
                f"The process that played {job.name} ended with status {status}.",
                "What it said is above; the same command goes on where it stopped.",
            )
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _tell(process: Process, line: str) -> None:
    if process.stdin is not None:
        process.stdin.write(f"{line}\n".encode())
        with suppress(ConnectionError):  # the process has ended; its status says why
            await process.stdin.drain()


async def _line(process: Process) -> bytes:
    return await process.stdout.readline() if process.stdout is not None else b""
