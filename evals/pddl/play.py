"""One problem played with one memory, in this process or in one of its own.

The ledger and the checkpoints of a memory and an order are kept: after a kill, the next process continues the
task at the same step. Each step is stored before the next begins, so that a completed task without a stored
row cannot start again and recall itself.
"""

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from mneme.environments.pddl import Problem
from mneme.evals.measuring import ledger_at
from mneme.evals.report import Row
from mneme.graphs import pddl_team
from mneme.models.asking.counting import tokens_in
from mneme.models.embedding.embedders import open_embedder
from mneme.nodes.pddl.context import PddlContext
from mneme.stores.checkpoints.checkpointer import open_checkpointer
from mneme.stores.ledger.base_store import LedgerStore

RESULT_COLUMNS = ("success", "steps", "valid_steps", "answered_by", "complaints", "transcript")
"""Fields of a graph's result in a row."""


@dataclass(frozen=True)
class Team:
    """A team that plays problems in one order: its memory, its context, and where its ledger is."""

    memory: str
    seed: int
    who: str
    context_tokens: int
    memory_tokens: int
    embedder: str
    home: Path
    example: bool = True

    @property
    def name(self) -> str:
        return f"{self.memory}-{self.seed}-{self.context_tokens}"


@dataclass(frozen=True)
class Case:
    """One problem of a team's order."""

    team: Team
    number: int
    problem: Problem

    @property
    def name(self) -> str:
        return f"{self.team.name}/{self.number:03d}"


async def play(case: Case) -> Row:
    """Play one problem from its current state: its start, a step, or its end."""
    team, problem = case.team, case.problem
    config: Any = {"configurable": {"thread_id": case.name}}
    context = PddlContext(
        team=team.name,
        memory=team.memory,
        solver=team.who,
        second_agent=team.who,
        memory_model=team.who,
        context_tokens=team.context_tokens,
        memory_tokens=team.memory_tokens,
        example=team.example,
    )
    embedder, place = await open_embedder(team.embedder), team.home / team.name
    async with ledger_at(place, embedder) as ledger, open_checkpointer(f"{place}.sqlite") as checkpointer:
        graph = pddl_team.builder.compile(store=LedgerStore(ledger), checkpointer=checkpointer)
        left = await graph.aget_state(config)
        # Without input LangGraph goes on where the thread was stopped.
        given: Any = None if left.values else {"problem": problem.model_dump(), "task_id": case.name}
        started = perf_counter()
        # The default writes a step while the next one runs.
        values = await graph.ainvoke(given, config, context=context, durability="sync")
    return {
        "memory": team.memory,
        "seed": team.seed,
        "number": case.number,
        "window": team.context_tokens,
        "memory_tokens": team.memory_tokens,
        "problem": problem.name,
        "domain": problem.domain,
        "difficulty": problem.difficulty,
        "reward": values["progress"],
        **{name: values[name] for name in RESULT_COLUMNS},
        "tokens": tokens_in(values["asked"]),
        "calls": values["asked"]["calls"],
        "seconds": perf_counter() - started,
    }
