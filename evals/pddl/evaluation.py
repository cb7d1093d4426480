"""Intrinsic Memory Agents, table 1: eight memories of a team on PDDL tasks.

A team of two plays every problem in a seeded order with each memory; a memory that learns across tasks has
its own ledger per order. Reward is a task's progress, a table's value the mean over tasks. Problems are
our own, drawn from the seed with AgentBoard's shares of the four domains, or a folder's (AgentBoard's 60
files with `--data`, or the folder `pddl` of MNEME_DATA), which a seed only puts into another order.
"""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import yaml
from matplotlib.axes import Axes
from pydantic import Field

from mneme.api.tables import Table
from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.environments.pddl import Problem, generate_suite, load_folder
from mneme.evals.measuring import holm, home_beside, interval_of_mean, processes, wilcoxon_p
from mneme.evals.options import Agents, Identity, Jobs, RunOptions, identify, jobs_of
from mneme.evals.pddl.play import Case, Team, play
from mneme.evals.report import Journal, Progress, Report, Row, digest, table
from mneme.models.asking.counting import tokens
from mneme.nodes.pddl.context import PddlContext
from mneme.nodes.pddl.pddl_team import task_of
from mneme.nodes.task_memories.kinds import MEMORIES_BY_NAME

_PRINTED = yaml.safe_load(Path(__file__).with_name("paper.yaml").read_text(encoding="utf-8"))
LABELS: dict[str, str] = {name: each["label"] for name, each in _PRINTED.items()}
PAPER_ROWS = {name: (each["reward"], each["tokens"]) for name, each in _PRINTED.items()}
"""Table 1: rewards and tokens."""
PROBLEM_COLUMNS = ["seed", "number"]
"""Common columns of the rows of one problem."""
PROBLEMS = 60
PDDL_FIELDS: Any = PddlContext.model_fields


class Options(RunOptions):
    """Problems, memories, orders, and responders."""

    data: Path | None = Field(
        None, description="Folder of PDDL problems; default: MNEME_DATA's, if it has them, else our own."
    )
    problems: int | None = Field(
        None, ge=1, description=f"So many of our own, whatever data there are; default: {PROBLEMS}."
    )
    memories: list[str] = Field(list(MEMORIES_BY_NAME), min_length=1, description="The memories compared.")
    seeds: list[int] = Field([1], min_length=1, description="Problems of our own, and their order.")
    agents: Agents = "auto"
    context_tokens: int = PDDL_FIELDS["context_tokens"]
    memory_tokens: int = PDDL_FIELDS["memory_tokens"]
    jobs: Jobs = 0
    example: bool = PDDL_FIELDS["example"]


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Play every problem with every memory in every order; an interrupted run is continued."""
    for memory in options.memories:
        if memory not in MEMORIES_BY_NAME:
            raise BadInput(f"There is no memory {memory!r}.", f"There are: {', '.join(MEMORIES_BY_NAME)}.")
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
    jobs = jobs_of(options.jobs, who.is_model)
    # By turns, so that an interrupted run has the same problems for all.
    turns = {case.name: case for turn in zip_longest(*teams) for case in turn if case}
    if not turns:
        wrong = f"No problem leaves room for turns: the context has {options.context_tokens} tokens."
        raise BadInput(wrong, "Give a larger --context-tokens.")
    locks = defaultdict[str, asyncio.Lock](asyncio.Lock)
    with processes(jobs, play) as player:

        async def one(case: Case) -> Row:
            async with locks[case.team.name]:  # a team plays one problem after the other
                return await player(case)

        await journal.play(turns, one, progress, concurrency=jobs)
    source = "our own, drawn by seed" if folder is None else f"from {folder}"
    rows = [journal[case.name] for team in teams for case in team]
    return report(rows, options.seeds, who, source, journal)


def _cases(
    options: Options, who: Identity, home: Path, loaded: Sequence[Problem], seed: int
) -> list[list[Case]]:
    """Return the cases of each memory for one seed: the problems that leave room for turns."""
    problems = list(loaded) or generate_suite(options.problems or PROBLEMS, seed)
    Random(seed).shuffle(problems)  # noqa: S311 - an order, no secret
    room, kept = options.context_tokens, options.memory_tokens
    fitting = [each for each in problems if tokens(task_of(each).text) + kept < room]
    embedder = options.embedder or settings().embedder
    teams = [
        Team(memory, seed, who.responder, room, kept, embedder, home, options.example)
        for memory in options.memories
    ]
    return [[Case(team, number, each) for number, each in enumerate(fitting)] for team in teams]


def _folder(options: Options) -> Path | None:
    """Return the folder of the problems; None for our own."""
    if options.data is not None or options.problems is not None:
        return options.data
    place = settings().data
    return place / "pddl" if place is not None and (place / "pddl").is_dir() else None


async def _journal(options: Options, who: Identity, loaded: Sequence[Problem]) -> Journal:
    configuration = {
        "problems": [digest(problem.model_dump()) for problem in loaded] or options.problems or PROBLEMS,
        "agents": who.model_dump(),
        "rooms": [options.context_tokens, options.memory_tokens],
        "shown": options.example,
        "embedder": (await options.opened_embedder()).name,
    }
    return options.journal("pddl", configuration)


def report(rows: list[Row], seeds: Sequence[int], who: Identity, source: str, journal: Journal) -> Report:
    """Return tables, plot and summary of rows, one per memory, seed and problem."""
    played = pd.DataFrame(rows)
    played["success"] = played["success"].astype(float)
    # AgentBoard's grounding accuracy: valid steps of all.
    played["grounding"] = played["valid_steps"] / played["steps"].clip(lower=1)
    order = {name: at for at, name in enumerate(LABELS)}
    played = played.sort_values("memory", key=lambda each: each.map(order), kind="stable")
    summary = _summaries(played)
    return journal.report(
        who,
        {"seeds": list(seeds), "problems": source, "memories": summary},
        _table_1(summary, who),
        _notes(played, seeds, source),
        rows,
    ).with_plots(f"PDDL tasks, {_counted(played, seeds)}", partial(_bars, summary))


def _summaries(played: pd.DataFrame) -> dict[str, Row]:
    """Return each memory's figures, with p against no memory, raw and corrected (Holm)."""
    by_memory = {str(name): own for name, own in played.groupby("memory", sort=False)}
    rewards = played.pivot_table(index=PROBLEM_COLUMNS, columns="memory", values="reward")
    summary = {
        name: _figures(own)
        | {"p": wilcoxon_p((rewards[name] - rewards["none"]).dropna()) if "none" in by_memory else None}
        for name, own in by_memory.items()
    }
    for name, corrected in holm({name: each["p"] for name, each in summary.items()}).items():
        summary[name]["p_holm"] = corrected
    return summary


def _figures(own: pd.DataFrame) -> Row:
    rewards, by_seed = own["reward"], own.groupby("seed")["reward"].mean()
    means = own[["reward", "tokens", "success", "grounding", "steps", "seconds"]].mean().to_dict()
    return {
        **means,
        "reward_by_seed": by_seed.tolist(),
        "reward_sd": float(by_seed.std()) if len(by_seed) > 1 else None,
        "reward_interval": interval_of_mean(rewards) if rewards.nunique() > 1 else None,
        "efficiency": means["reward"] / means["tokens"] if means["tokens"] else 0.0,
        "calls": float(own["calls"].mean()),
    }


def _table_1(summary: dict[str, Row], who: Identity) -> list[Table]:
    """Return table 1 in two halves, to be read one after the other."""
    rewards, tokens = list[tuple[object, ...]](), list[tuple[object, ...]]()
    for name, each in summary.items():
        reward, spent = PAPER_ROWS[name]
        interval = each["reward_interval"]
        between = f"{interval[0]:.3f} to {interval[1]:.3f}" if interval else None
        figures = (f"{each['reward']:.4f}", f"{reward:.4f}", between, each["reward_sd"], each.get("p_holm"))
        rewards.append((LABELS[name], *figures))
        efficiency = (f"{each['efficiency'] * 1e7:.2f}", f"{reward / spent * 1e7:.2f}")
        tokens.append((LABELS[name], f"{each['tokens']:,.0f}", f"{spent:,}", *efficiency))
    head = f"({who}; the paper: Llama 3.1 8B)"
    columns = ("memory", "reward", "paper", "95 % over tasks", "sd", "p, Holm")
    return [
        table(f"Table 1, rewards {head}", columns, rewards),
        table(f"Table 1, tokens {head}", ("memory", "tokens", "paper", "reward/10⁷ tokens", "paper"), tokens),
    ]


def _counted(played: pd.DataFrame, seeds: Sequence[int]) -> str:
    """Return the number of problems played, by domain and memory, and of orders."""
    first = played[(played["memory"] == played["memory"].iloc[0]) & (played["seed"] == seeds[0])]
    counts = first["domain"].value_counts().sort_index()
    each = ", ".join(f"{count} {domain}" for domain, count in counts.items())
    return f"{len(first)} problems ({each}), {len(seeds)} {'order' if len(seeds) == 1 else 'orders'}"


def _notes(played: pd.DataFrame, seeds: Sequence[int], source: str) -> list[str]:
    seconds = played["seconds"].sum()
    notes = [
        f"{_counted(played, seeds)}, {source}; "
        f"{len(played)} tasks, {seconds:.0f} s of playing, {seconds / len(played):.2f} s a task.",
        *_same_moves(played),
    ]
    if unusable := int(played["complaints"].map(len).sum()):
        notes.append(f"{unusable} answers stayed unusable after their repairs; the raw results say which.")
    return notes


def _same_moves(played: pd.DataFrame) -> list[str]:
    """Return in how many problems the moves with intrinsic memory and without were the same."""
    moves = played.assign(moves=played["transcript"].map(lambda steps: [step["action"] for step in steps]))
    by_memory = moves.pivot_table(index=PROBLEM_COLUMNS, columns="memory", values="moves", aggfunc="first")
    if not {"none", "intrinsic"} <= {*by_memory.columns}:
        return []
    both = by_memory[["none", "intrinsic"]].dropna()
    same = int((both["none"] == both["intrinsic"]).sum())
    return [f"The moves with intrinsic memory and without were the same in {same} of {len(both)} problems."]


def _bars(summary: dict[str, Row], axes: Axes) -> None:
    """Draw the mean rewards beside the paper's."""
    names = [LABELS[name] for name in summary]
    here = [each["reward"] for each in summary.values()]
    means = pd.DataFrame(
        {"here": here, "paper, Llama 3.1 8B": [PAPER_ROWS[name][0] for name in summary]}, names
    )
    means.plot.barh(ax=axes, xlabel="average reward").invert_yaxis()
