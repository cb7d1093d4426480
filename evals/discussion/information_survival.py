"""Information survival: after k turns, is a fact in the next context?

A planning world that shows its whole state at every step cannot tell memories apart: with and without
intrinsic memory rules make the same moves (`mneme eval pddl` counts them). Here facts are said once, by the
one who alone knows them, and are followed by talk of other things. The program looks up which of them are in
what the next speaker is shown, and in what the writer is shown who reads what all agents remember.

The memories are the product's: `Intrinsic` of `nodes/task_memories`, f_context, and the writer's view of all
memories (`nodes/discussion/experts.py`). Beside them the rivals, with the same tokens for task, memory and
turns together. What is measured is what survives, and nothing about planning. The paper has no such table.
"""

import json
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from typing import Any, Literal, TypeVar, get_args

import pandas as pd
from pydantic import Field

from mneme.core.errors import BadAnswer, BadInput
from mneme.evals.answering import identify
from mneme.evals.discussion.storehouse import AISLES, ROUNDS, Storehouse, storehouse
from mneme.evals.measuring import temporary_ledger, wilcoxon_p
from mneme.evals.options import Agents, NotNegative, Positive, RunOptions
from mneme.evals.report import Progress, Report, Row, framed
from mneme.library.teams.team import CHARACTERS_PER_TOKEN, empty
from mneme.models.asking.asking import ask
from mneme.models.asking.counting import counting, tokens_in
from mneme.models.embedding.embedders import Embedder
from mneme.models.ollama.tokenizers import counter_of
from mneme.nodes.discussion.experts import SHARE, told_by
from mneme.nodes.task_memories.f_context import Count, Window, f_context
from mneme.nodes.task_memories.interface import MemoryServices, Role
from mneme.nodes.task_memories.intrinsic import Intrinsic
from mneme.prompts.task_memories.task_memories import Phase, summarise_phase
from mneme.stores.discussions.agent_memory import AgentMemory
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.task_memories.trials import Trials

Arm = Literal[
    "intrinsic, all memories",
    "intrinsic",
    "one shared memory",
    "one summary",
    "another agent's",
    "empty template",
    "newest turns",
    "whole conversation",
]
"""The writer's view of all agents' memories first; the last is not bounded: all that there was to know."""
ARMS: tuple[Arm, ...] = get_args(Arm)
OWNER, TEAM = "eval", "the_team"


class Options(RunOptions):
    """How long, in what room, and who remembers."""

    agents: Agents = "auto"
    roles: int = Field(4, ge=2, le=len(AISLES), description="Number of agents.")
    turns: list[Positive] = Field([16, 32, 64], min_length=1, description="Turns after which is looked.")
    seeds: list[NotNegative] = Field(list(range(1, 11)), min_length=1, description="Storehouses.")
    context_tokens: int = Field(1000, ge=600, description="Tokens of task, memory and turns, for every arm.")
    memory_tokens: int = Field(400, ge=100, description="Tokens of a memory.")


@dataclass(frozen=True)
class Bounds:
    """Tokens of a context and of a memory in it, as who answers counts them, and the turns looked at."""

    context_tokens: int
    memory_tokens: int
    turns: Sequence[int]
    count: Count
    who: str


Held = dict[int, dict[str, Any]]
"""What each agent remembers after the turns that are looked at."""


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Hold every storehouse against every memory; go on where an interrupted run stopped."""
    if min(options.turns) < (least := ROUNDS * options.roles):
        raise BadInput(f"--turn {min(options.turns)}: facts are said until turn {least}; look after them.")
    who = await identify(options.agents)
    embedder = await options.opened_embedder()
    configuration: Row = options.model_dump(include={"turns", "roles", "context_tokens", "memory_tokens"})
    configuration |= {"agents": who.model_dump(), "embedder": embedder.name}
    journal = options.journal("information_survival", configuration)
    measure = partial(_measured, who=who.responder, options=options, embedder=embedder)
    rows = await journal.play({str(seed): seed for seed in options.seeds}, measure, progress)
    shares = _shares(pd.DataFrame(look | {"row": row["case"]} for row in rows for look in row["looks"]))
    tokens = pd.DataFrame([row["tokens"] for row in rows]).mean()
    spent = ", ".join(f"{what} {count:,.0f}" for what, count in tokens.items())
    complaints = sum(row["complaints"] for row in rows)
    return Report(
        "information_survival",
        str(who),
        journal.path,
        rows,
        {"shares": shares.to_dict("records"), "tokens_of_remembering": tokens.to_dict()},
        [framed(f"Share of facts, {len(options.seeds)} storehouses", shares)],
        notes=[
            "arm: what the next speaker is shown beside task and turns; all memories: the writer. own, "
            "others: of the next speaker's own facts, and of the rest; p: Wilcoxon signed-rank of the share "
            "of all facts against the newest turns alone, same storehouses.",
            f"Tokens of remembering in a storehouse: {spent}; {complaints} updates got no usable answer, or "
            "one in part.",
        ],
    )


def _shares(looks: pd.DataFrame) -> pd.DataFrame:
    """Return by turn and memory the means over storehouses, and p against the newest turns alone."""
    shares = looks.groupby(["turn", "arm"], sort=False)[["facts", "own", "others"]].mean()
    facts = looks.pivot(index=["turn", "row"], columns="arm", values="facts")
    p = [wilcoxon_p((facts[arm] - facts["newest turns"]).loc[turn]) for turn, arm in shares.index]
    return shares.assign(p=p).reset_index()


T = TypeVar("T")


async def _counted(work: Awaitable[T]) -> tuple[T, int]:
    """Return what a piece of work comes to, and the tokens that it took."""
    with counting() as asked:
        done = await work
    return done, tokens_in(asked)


async def _measured(seed: int, *, who: str, options: Options, embedder: Embedder) -> Row:
    world, count = storehouse(seed, options.roles, max(options.turns)), await counter_of(who)
    bounds = Bounds(options.context_tokens, options.memory_tokens, options.turns, count, who)
    async with temporary_ledger(embedder) as ledger:
        services = {name: _services(name, each, bounds, ledger) for name, each in _settings(world)}
        taken = {
            name: await _counted(_taken_in(each, services[name], bounds)) for name, each in _settings(world)
        }
        (own, _), (shared, _) = taken.values()
        summaries, summing = await _counted(_summed_up(world, bounds))
        within = team_namespace(OWNER, "task_memory", Intrinsic.name, services["own"].trial)
        histories = [(agent, await AgentMemory(ledger, within, agent).history()) for agent in world.roles]
    looks = []
    for turn in options.turns:
        room = (bounds.context_tokens - count(world.task.text)) * SHARE
        until = [(a.replace("_", " "), [each for each in h if each.turn <= turn]) for a, h in histories]
        agent, names = world.next_speaker(turn), list(world.roles)
        memories: dict[Arm, str] = {
            "intrinsic, all memories": told_by(until, room, count),
            "intrinsic": _text(own[turn][agent]),
            "one shared memory": _text(shared[turn][TEAM]),
            "one summary": summaries[turn],
            "another agent's": _text(own[turn][names[(names.index(agent) + 1) % len(names)]]),
            "empty template": _text(empty(world.roles[agent].template)),
        }
        looks += [
            _look(world, turn, arm, _shown(world, turn, arm, memories.get(arm, ""), bounds)) for arm in ARMS
        ]
    tokens = {name: cost for name, (_, cost) in taken.items()} | {"summary": summing}
    complaints = sum(len(each.complaints) for each in services.values())
    return {"looks": looks, "tokens": tokens, "complaints": complaints, "memories": own[max(options.turns)]}


def _settings(world: Storehouse) -> Iterator[tuple[str, Storehouse]]:
    """Yield the world of agents with a memory each, and of one agent that has all roles and turns."""
    yield "own", world
    first = next(iter(world.roles.values()))
    everyone = Role("A team: " + " ".join(each.description for each in world.roles.values()), first.template)
    said = [turn.model_copy(update={"agent": TEAM}) for turn in world.turns]
    yield "shared", replace(world, roles={TEAM: everyone}, turns=said)


def _services(name: str, world: Storehouse, bounds: Bounds, ledger: Ledger) -> MemoryServices:
    return MemoryServices(
        ledger=ledger,
        trials=Trials(ledger, OWNER, Intrinsic.name),
        who=bounds.who,
        trial=f"{name}-{world.task.id}",
        window=bounds.context_tokens,
        memory_tokens=bounds.memory_tokens,
        count=bounds.count,
        team=OWNER,
        roles=world.roles,
    )


async def _taken_in(world: Storehouse, services: MemoryServices, bounds: Bounds) -> Held:
    """Let structured memories take in the turns, one by one; return what they hold at those looked at."""
    memory, found = Intrinsic(services), Held()
    held = await memory.recall(world.task)
    for turn in world.turns:
        held = await memory.observe(world.task, held, world.turns[: turn.number])
        if turn.number in bounds.turns:
            found[turn.number] = {agent: each["memory"] for agent, each in held.items()}
    return found


async def _summed_up(world: Storehouse, bounds: Bounds) -> dict[int, str]:
    """Sum all turns up, once a round, in one text that goes on from the one before."""
    summary, since = "", 0
    found: dict[int, str] = {}
    for turn in world.turns:
        if turn.number % len(world.roles) == 0:
            steps = [str(each) for each in world.turns[since : turn.number]]
            limit = CHARACTERS_PER_TOKEN * bounds.memory_tokens
            given = Phase(goal=world.task.text, before=summary, steps=steps, limit=limit)
            with suppress(BadAnswer):
                summary = (await ask(summarise_phase, given, bounds.who, lane="background")).value.summary
            since = turn.number
        found[turn.number] = summary
    return found


def _shown(world: Storehouse, turn: int, arm: Arm, memory: str, bounds: Bounds) -> Window:
    """Return the task, the memory and the newest turns that fit; for the whole conversation, all of it."""
    task, count = world.task.text, bounds.count
    turns = [str(each) for each in world.turns[:turn]]
    is_whole = arm == "whole conversation"
    room = count(task) + sum(map(count, turns)) if is_whole else bounds.context_tokens
    return f_context(task, memory, turns, room, count)


def _look(world: Storehouse, turn: int, arm: Arm, window: Window) -> Row:
    """Look up which facts a context holds, the next speaker's own and those of the others."""
    said, speaker = "\n".join([window.memory, *window.turns]), world.next_speaker(turn)
    there = {
        own: [f.stands_in(said) for f in world.facts if (f.owner == speaker) == own] for own in (True, False)
    }
    return {
        "turn": turn,
        "arm": arm,
        "facts": fmean([*there[True], *there[False]]),
        "own": fmean(there[True]),
        "others": fmean(there[False]),
        "tokens": window.tokens,
    }


def _text(memory: dict[str, Any]) -> str:
    """Return a memory as its agent is shown it."""
    return json.dumps(memory, indent=1, ensure_ascii=False)
