"""One memory and one order of problems, played in a process of its own: `python -m mneme.evals.pddl.play`.

The process reads its job as one line of JSON, then writes a line for every task that is played and
waits for a line in return, which says that the row is kept. Where the other end is gone it stops. Its
ledger and checkpoints are its own, and stay: killed at any moment, the next process goes on with the task
at the step where this one stopped. Each step is kept before the next begins, so that a task which has
ended, and whose row is not kept yet, cannot begin anew and recall itself.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from pydantic import BaseModel
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from mneme.core.errors import LedgerInUse, MnemeError
from mneme.environments.pddl import Problem
from mneme.graphs import pddl_team
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.pddl.context import PddlContext
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger

Row = dict[str, Any]
LONGEST_WAIT = 20.0
"""Seconds for which a process that was stopped may still hold the ledger."""


class Job(BaseModel):
    """What a process has to play: the problems in order, without those whose rows are kept."""

    memory: str
    seed: int
    who: str
    window: int
    memory_tokens: int
    embedder: str
    example: bool = True
    project_insights: bool = False
    home: Path
    problems: list[Problem]
    done: list[int]

    @property
    def name(self) -> str:
        return f"{self.memory}-{self.seed}-{self.window}"


class Answered(BaseModel):
    """A line of the process: a row of the journal, or what went wrong."""

    number: int = -1
    row: Row = {}
    error: str = ""
    hint: str = ""


async def play(job: Job) -> AsyncGenerator[Answered, None]:
    """Play every problem that is not done; a row each. The caller keeps a row before it asks for the next."""
    async with _opened(job) as (ledger, checkpointer):
        graph = pddl_team.builder.compile(store=LedgerStore(ledger), checkpointer=checkpointer)
        for number, problem in enumerate(job.problems):
            if number in job.done:
                continue
            task = f"{job.name}/{number}"
            yield Answered(number=number, row=await _play(graph, job, problem, task))
            await checkpointer.adelete_thread(task)


@asynccontextmanager
async def _opened(job: Job) -> AsyncIterator[tuple[Ledger, BaseCheckpointSaver[str]]]:
    embedder = await open_embedder(job.embedder)
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(LedgerInUse),
        stop=stop_after_delay(LONGEST_WAIT),
        wait=wait_fixed(0.2),
        reraise=True,
    )
    ledger: Ledger = await retrying(open_ledger, str(job.home / job.name), embedder)
    try:
        async with open_checkpointer(str(job.home / f"{job.name}.sqlite")) as checkpointer:
            yield ledger, checkpointer
    finally:
        await ledger.close()


async def _play(graph: Any, job: Job, problem: Problem, task: str) -> Row:
    """Play one problem from where it stands: at its start, at some step, or at its end."""
    config: Any = {"configurable": {"thread_id": task}}
    context = PddlContext(
        team=job.name,
        memory=job.memory,
        solver=job.who,
        second_agent=job.who,
        memory_model=job.who,
        window=job.window,
        memory_tokens=job.memory_tokens,
        example=job.example,
        project_insights=job.project_insights,
    )
    left = await graph.aget_state(config)
    given = None if left.values else {"problem": problem.model_dump(), "task_id": task}
    started = perf_counter()
    values = await graph.ainvoke(given, config, context=context, durability="sync")
    return _row(problem, values) | {"seconds": perf_counter() - started}


def _row(problem: Problem, values: Row) -> Row:
    cost = values["cost"]
    return {
        "problem": problem.name,
        "domain": problem.domain,
        "difficulty": problem.difficulty,
        "reward": values["progress"],
        "success": values["success"],
        "steps": values["steps"],
        "valid_steps": values["valid_steps"],
        "tokens": cost["prompt_tokens"] + cost["reply_tokens"],
        "cost": cost,
        "answered_by": values["answered_by"],
        "complaints": values["complaints"],
        "transcript": values["transcript"],
    }


async def _main() -> None:
    reader = asyncio.StreamReader(limit=2**26)
    lines, main = asyncio.Queue[bytes](), asyncio.current_task()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb")
    )

    async def listen() -> None:
        while line := await reader.readline():
            lines.put_nowait(line)
        if main is not None:
            main.cancel()

    listening = asyncio.create_task(listen())
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no row
    try:
        async for answered in play(Job.model_validate_json(await lines.get())):
            print(answered.model_dump_json(), file=out, flush=True)
            await lines.get()
    except MnemeError as error:
        print(Answered(error=str(error), hint=error.hint).model_dump_json(), file=out, flush=True)
    finally:
        listening.cancel()


if __name__ == "__main__":
    try:
        asyncio.run(_main())
    except (asyncio.CancelledError, KeyboardInterrupt, BrokenPipeError):
        sys.exit(1)
