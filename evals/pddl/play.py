"""One problem played with one memory, in this process or in one of its own.

The ledger and the checkpoints of a memory and an order stay: killed at any moment, the next process goes on
with the task at the step where this one stopped. Each step is kept before the next begins, so that a task
which has ended, and whose row is not kept yet, cannot begin anew and recall itself.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_delay, wait_fixed

from mneme.core.errors import LedgerInUse
from mneme.environments.pddl import Problem
from mneme.evals.report import Row
from mneme.graphs import pddl_team
from mneme.models.asking.counting import tokens_in
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.pddl.context import PddlContext
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.base_store import LedgerStore
from mneme.stores.ledger.ledger import Ledger, open_ledger

MAX_WAIT = 20.0
"""Seconds for which a process that was stopped may still hold the ledger."""


@dataclass(frozen=True)
class Team:
    """A team that plays problems in one order: its memory, its context, and where its ledger is."""

    memory: str
    seed: int
    who: str
    window: int
    memory_tokens: int
    embedder: str
    home: Path
    example: bool = True

    @property
    def name(self) -> str:
        return f"{self.memory}-{self.seed}-{self.window}"


@dataclass(frozen=True)
class Case:
    """One problem of a team's order."""

    team: Team
    number: int
    problem: Problem

    @property
    def name(self) -> str:
        return f"{self.team.name}/{self.number:03d}"


def play_in_process(case: Case) -> Row:
    """Play a problem in a process that does nothing else."""
    return asyncio.run(play(case))


async def play(case: Case) -> Row:
    """Play one problem from where it stands: at its start, at some step, or at its end."""
    team, problem = case.team, case.problem
    config: Any = {"configurable": {"thread_id": case.name}}
    context = PddlContext(
        team=team.name,
        memory=team.memory,
        solver=team.who,
        second_agent=team.who,
        memory_model=team.who,
        window=team.window,
        memory_tokens=team.memory_tokens,
        example=team.example,
    )
    async with _opened(team) as (ledger, checkpointer):
        graph = pddl_team.builder.compile(store=LedgerStore(ledger), checkpointer=checkpointer)
        left = await graph.aget_state(config)
        given: Any = None if left.values else {"problem": problem.model_dump(), "task_id": case.name}
        started = perf_counter()
        values = await graph.ainvoke(given, config, context=context, durability="sync")
    played = {
        "memory": team.memory,
        "seed": team.seed,
        "number": case.number,
        "window": team.window,
        "memory_tokens": team.memory_tokens,
    }
    return played | _row(problem, values) | {"seconds": perf_counter() - started}


@asynccontextmanager
async def _opened(team: Team) -> AsyncIterator[tuple[Ledger, BaseCheckpointSaver[str]]]:
    embedder = await open_embedder(team.embedder)
    retrying = AsyncRetrying(
        retry=retry_if_exception_type(LedgerInUse),
        stop=stop_after_delay(MAX_WAIT),
        wait=wait_fixed(0.2),
        reraise=True,
    )
    ledger: Ledger = await retrying(open_ledger, str(team.home / team.name), embedder)
    try:
        async with open_checkpointer(str(team.home / f"{team.name}.sqlite")) as checkpointer:
            yield ledger, checkpointer
    finally:
        await ledger.close()


def _row(problem: Problem, values: Row) -> Row:
    return {
        "problem": problem.name,
        "domain": problem.domain,
        "difficulty": problem.difficulty,
        "reward": values["progress"],
        "success": values["success"],
        "steps": values["steps"],
        "valid_steps": values["valid_steps"],
        "tokens": tokens_in(values["asked"]),
        "calls": values["asked"]["calls"],
        "answered_by": values["answered_by"],
        "complaints": values["complaints"],
        "transcript": values["transcript"],
    }
