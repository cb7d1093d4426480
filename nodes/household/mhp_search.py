"""Monte-Carlo tree search over subgoals: the upper level of MHP (Puig et al., ICLR 2021, Watch-And-Help).

A subgoal puts one thing to its target, one thing at a time, as published. Its low-level plan comes by
regression (put ← hold ← be close ← container open ← be in the room), which here is its cost in steps.
Exploration and its constants are the published ones (PUCT, uniform prior, 100 simulations, rollouts of at
most 5 random subgoals). Two deviations, both in the planner's favour: walking costs its real steps, where
the published code counts every walk alike; and a path's value includes what the path itself costs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

C_INIT = 0.1
C_BASE = 1_000_000.0
SIMULATIONS = 100
ROLLOUT = 5
SEARCH_STEP_COST = 0.02
"""Cost of one step, against 1 for a satisfied predicate: the published cost of a fetch over its steps."""

Steps = Callable[[int, int], int]
"""Steps from one spot (a thing or a room, by id) to another."""


class Item(NamedTuple):
    """A thing that may be fetched: its place in the belief's sample, and whether it was observed."""

    id: int
    """Negative where the thing was never seen."""
    name: str
    spot: int
    """The destination: the thing itself, its closed container, or its unexplored room."""
    opens: bool
    held: bool
    observed: bool


class Need(NamedTuple):
    """A number of things of a name that must still be put to a target."""

    name: str
    target: int
    left: int
    closed: bool
    """The target must be opened first."""


class Subgoal(NamedTuple):
    """Put this item to this target."""

    item: Item
    target: int


class Situation(NamedTuple):
    """The situation of one agent: where it is, what is left to do and with what."""

    here: int
    needs: tuple[Need, ...]
    items: tuple[Item, ...]


@dataclass
class Branch:
    """A node of the tree: the subgoal that led here, its cost, and the value from here."""

    situation: Situation
    subgoal: Subgoal | None = None
    cost: float = 0.0
    children: list["Branch"] = field(default_factory=list)
    expanded: bool = False
    visits: int = 0
    value: float = 0.0


def search(situation: Situation, steps: Steps, random: Random) -> list[Subgoal]:
    """Return the most visited sequence of subgoals, the first of which is to be pursued; empty if none is."""
    root = Branch(situation)
    _expand(root, steps)
    for _ in range(SIMULATIONS if len(root.children) > 1 else 0):  # nothing to choose between: no search
        path = _descend(root, steps, random)
        spent = sum(branch.cost for branch in path)
        # Each branch but the root satisfies a predicate, worth 1.
        value = len(path) - 1 - spent * SEARCH_STEP_COST + _rollout(path[-1].situation, steps, random)
        for branch in path:
            branch.visits += 1
            branch.value += value
    most_visited = [root]
    while children := most_visited[-1].children:
        most_visited.append(max(children, key=lambda child: child.visits))
    return [branch.subgoal for branch in most_visited if branch.subgoal]


def subgoals(situation: Situation) -> list[Subgoal]:
    """Return the open subgoals: those of held things, else of observed things, else all."""
    every = [
        Subgoal(item, need.target)
        for need in situation.needs
        if need.left
        for item in situation.items
        if item.name == need.name
    ]
    held, observed = ([each for each in every if getattr(each.item, how)] for how in ("held", "observed"))
    return held or observed or every


def _pursue(situation: Situation, subgoal: Subgoal, steps: Steps) -> tuple[Situation, float]:
    """Return the situation after a subgoal, and its cost in steps by regression."""
    item, target = subgoal
    fetch = 0 if item.held else steps(situation.here, item.spot) + item.opens + 1
    start = situation.here if item.held else item.spot
    number = next(
        n for n, need in enumerate(situation.needs) if need.name == item.name and need.target == target
    )
    need = situation.needs[number]
    cost = fetch + steps(start, target) + need.closed + 1
    needs = tuple(
        each._replace(left=each.left - (n == number), closed=each.closed and each.target != target)
        for n, each in enumerate(situation.needs)
    )
    items = tuple(  # what lies in the same container needs no second opening
        each._replace(opens=False) if each.spot == item.spot and item.opens else each
        for each in situation.items
        if each.id != item.id
    )
    return Situation(target, needs, items), cost


def _expand(branch: Branch, steps: Steps) -> None:
    for subgoal in subgoals(branch.situation):
        after, cost = _pursue(branch.situation, subgoal, steps)
        branch.children.append(Branch(after, subgoal, cost))
    branch.expanded = True


def _descend(root: Branch, steps: Steps, random: Random) -> list[Branch]:
    """Follow the best children to a leaf and expand it; return the path."""
    path = [root]
    while (branch := path[-1]).expanded and branch.children:
        if fresh := [child for child in branch.children if not child.visits]:
            path.append(random.choice(fresh))
            continue
        # PUCT with a uniform prior, 1 / len(children).
        curiosity = math.log((1 + branch.visits + C_BASE) / C_BASE) + C_INIT
        drive = curiosity / len(branch.children) * math.sqrt(branch.visits)
        path.append(max(branch.children, key=lambda at: at.value / at.visits + drive / (1 + at.visits)))
    if not path[-1].expanded:
        _expand(path[-1], steps)
    return path


def _rollout(situation: Situation, steps: Steps, random: Random) -> float:
    """Return the value of at most `ROLLOUT` random subgoals: predicates satisfied less the steps' cost."""
    gained = 0.0
    for _ in range(ROLLOUT):
        choices = subgoals(situation)
        if not choices:
            break
        situation, cost = _pursue(situation, random.choice(choices), steps)
        gained += 1 - cost * SEARCH_STEP_COST
    return gained
