"""What agents remember of a puzzle's turns, and the contexts that each memory leads to after some of them.

The memories are the product's: `Intrinsic` of `nodes/task_memories`, f_context, and the writer's view of all
memories (`nodes/discussion/experts.py`). Beside them the rivals: the newest turns alone, one summary in
prose, one memory of the same template for all, another agent's memory, and a template in which nothing
was ever written. All have the same tokens for task, memory and turns together.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args

from mneme.core.errors import BadAnswer
from mneme.evals.discussion.puzzle import Puzzle
from mneme.library.teams.team import CHARACTERS_PER_TOKEN, empty
from mneme.models.asking.asking import ask
from mneme.nodes.costs import Cost, CostCounter
from mneme.nodes.discussion.experts import SHARE, told_by
from mneme.nodes.task_memories.f_context import Count, Window, f_context
from mneme.nodes.task_memories.interface import Means, Role
from mneme.nodes.task_memories.intrinsic import Intrinsic
from mneme.prompts.task_memories.task_memories import Phase, summarise_phase
from mneme.stores.discussions.agent_memory import AgentMemory, MemoryVersion
from mneme.stores.ledger.ledger import Ledger
from mneme.stores.ledger.namespaces import team_namespace
from mneme.stores.task_memories.trials import Trials

Arm = Literal[
    "intrinsic",
    "newest turns",
    "one summary",
    "one shared memory",
    "another agent's",
    "empty template",
    "whole conversation",
]
ARMS: tuple[Arm, ...] = get_args(Arm)
ALL_MEMORIES = "intrinsic, all memories"
"""What the writer is shown: each agent's memory, as far as they fit."""
OWNER = "eval"
TEAM = "the_team"
"""Who keeps the one memory that all share."""


@dataclass(frozen=True)
class Bounds:
    """Tokens of a context and of a memory in it, as who answers counts them, and the memories compared."""

    context_tokens: int
    memory_tokens: int
    count: Count
    who: str
    arms: Sequence[Arm] = ARMS


@dataclass
class Remembered:
    """What was remembered after each turn that is looked at, and what remembering cost, by memory."""

    own: dict[int, dict[str, dict[str, Any]]] = field(default_factory=dict)
    shared: dict[int, dict[str, Any]] = field(default_factory=dict)
    summary: dict[int, str] = field(default_factory=dict)
    histories: dict[str, list[MemoryVersion]] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)


async def remember(puzzle: Puzzle, looked_at: Sequence[int], bounds: Bounds, ledger: Ledger) -> Remembered:
    """Let every memory take in the turns, one by one; keep what each holds at the turns looked at."""
    kept = Remembered()
    own = await _taken_in(puzzle, "own", looked_at, bounds, ledger, kept)
    kept.own = {turn: {name: held["memory"] for name, held in each.items()} for turn, each in own.items()}
    within = team_namespace(OWNER, "task_memory", Intrinsic.name, f"own-{puzzle.task.id}")
    for agent in puzzle.roles:
        kept.histories[agent] = await AgentMemory(ledger, within, agent).history()
    if "one shared memory" in bounds.arms:
        shared = await _taken_in(_as_one(puzzle), "shared", looked_at, bounds, ledger, kept)
        kept.shared = {turn: held[TEAM]["memory"] for turn, held in shared.items()}
    if "one summary" in bounds.arms:
        await _summed_up(puzzle, looked_at, bounds, kept)
    return kept


def _as_one(puzzle: Puzzle) -> Puzzle:
    """Return the puzzle as one agent would live it that had every role and took every turn."""
    first = next(iter(puzzle.roles.values()))
    everyone = Role("A team: " + " ".join(each.description for each in puzzle.roles.values()), first.template)
    said = [turn.model_copy(update={"agent": TEAM}) for turn in puzzle.turns]
    return replace(puzzle, roles={TEAM: everyone}, turns=said)


async def _taken_in(  # noqa: PLR0913, PLR0917  (what it is done with, and where it is counted)
    puzzle: Puzzle,
    name: str,
    looked_at: Sequence[int],
    bounds: Bounds,
    ledger: Ledger,
    kept: Remembered,
) -> dict[int, dict[str, Any]]:
    """Let structured memories take in the turns; return what they hold at those looked at."""
    means = _means(f"{name}-{puzzle.task.id}", puzzle.roles, bounds, ledger)
    memory = Intrinsic(means)
    held = await memory.recall(puzzle.task)
    found: dict[int, dict[str, Any]] = {}
    for at, turn in enumerate(puzzle.turns, start=1):
        held = await memory.observe(puzzle.task, held, puzzle.turns[:at])
        if turn.number in looked_at:
            found[turn.number] = held
    kept.costs[name] = means.tally.cost()
    kept.complaints += means.complaints
    return found


def _means(trial: str, roles: Mapping[str, Role], bounds: Bounds, ledger: Ledger) -> Means:
    return Means(
        ledger=ledger,
        trials=Trials(ledger, OWNER, Intrinsic.name),
        who=bounds.who,
        trial=trial,
        window=bounds.context_tokens,
        memory_tokens=bounds.memory_tokens,
        count=bounds.count,
        team=OWNER,
        roles=roles,
    )


async def _summed_up(puzzle: Puzzle, looked_at: Sequence[int], bounds: Bounds, kept: Remembered) -> None:
    """Sum all turns up, once a round, in one text that goes on from the one before."""
    tally, summary, since = CostCounter(), "", 0
    limit = CHARACTERS_PER_TOKEN * bounds.memory_tokens
    for turn in puzzle.turns:
        if turn.number % len(puzzle.roles) == 0:
            steps = [str(each) for each in puzzle.turns[since : turn.number]]
            given = Phase(goal=puzzle.task.text, before=summary, steps=steps, limit=limit)
            try:
                answered = await ask(summarise_phase, given, bounds.who, lane="background")
                summary = tally.add(summarise_phase, given, answered).summary
            except BadAnswer as bad:
                tally.failed(summarise_phase, given, bad)
                kept.complaints.append(str(bad))
            since = turn.number
        if turn.number in looked_at:
            kept.summary[turn.number] = summary
    kept.costs["summary"] = tally.cost()


class View(NamedTuple):
    """What is shown after a turn, by memory: within the same tokens for all but the whole conversation."""

    puzzle: Puzzle
    turn: int
    kept: Remembered
    bounds: Bounds

    def of(self, arm: Arm, agent: str) -> Window:
        """Return what an agent is shown with one memory: the task, the memory, the newest turns that fit."""
        own, names = self.kept.own[self.turn], list(self.puzzle.roles)
        other = names[(names.index(agent) + 1) % len(names)]
        memories: dict[Arm, str] = {
            "intrinsic": text(own[agent]),
            "one summary": self.kept.summary.get(self.turn, ""),
            "one shared memory": text(self.kept.shared.get(self.turn, {})),
            "another agent's": text(own[other]),
            "empty template": text(empty(self.puzzle.roles[agent].template)),
        }
        return self._window(memories.get(arm, ""), is_whole=arm == "whole conversation")

    def of_writer(self) -> Window:
        """Return what the one is shown who reads what all agents remember."""
        room = (self.bounds.context_tokens - self.bounds.count(self.puzzle.task.text)) * SHARE
        histories = [
            (agent.replace("_", " "), [each for each in history if each.turn <= self.turn])
            for agent, history in self.kept.histories.items()
        ]
        return self._window(told_by(histories, room, self.bounds.count))

    def _window(self, memory: str, *, is_whole: bool = False) -> Window:
        task, count = self.puzzle.task.text, self.bounds.count
        turns = [str(each) for each in self.puzzle.turns[: self.turn]]
        room = count(task) + sum(map(count, turns)) if is_whole else self.bounds.context_tokens
        return f_context(task, memory, turns, room, count)


def text(memory: Mapping[str, Any]) -> str:
    """Return a memory as its agent is shown it."""
    return json.dumps(memory, indent=1, ensure_ascii=False)
