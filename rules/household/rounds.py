"""The shortest rounds that fetch known things with two hands each: exact, by dynamic programming."""

from collections.abc import Sequence

from mneme.environments.household.walking import Corner
from mneme.prompts.household.household import Worker
from mneme.rules.household.errands import HANDS, Aim, Errands

MAX_EXACT_ITEMS = 6
"""Maximum things whose rounds are searched exactly; of more, the nearest."""
Held = tuple[int, ...]
"""Targets of the things in hand, sorted."""


class Rounds:
    """Plan of who fetches what; `items` are as many as are missing, those that are home soonest."""

    def __init__(self, errands: Errands, workers: Sequence[Worker]) -> None:
        self.errands = errands
        self.items = errands.needed(workers)[:MAX_EXACT_ITEMS]
        self.all = (1 << len(self.items)) - 1
        """The set of all items, one bit for each."""
        self._costs: dict[tuple[Corner, Held, int], int] = {}

    def cost(self, start: Corner, held: Held, items: int) -> int:
        """Return the steps until everything in hand and all these items are where they belong."""
        key = (start, held, items)
        if key not in self._costs:
            moves = self._moves(start, held, items)
            self._costs[key] = min((steps for _, steps in moves), default=0)
        return self._costs[key]

    def openings(self, worker: Worker, items: int | None = None) -> dict[Aim, int]:
        """Return for each first action how many steps it takes until all is done, if it is the first."""
        held = tuple(sorted(self.errands.targets_of(worker)))
        return dict(self._moves(worker.corner, held, self.all if items is None else items))

    def _moves(self, start: Corner, held: Held, items: int) -> list[tuple[Aim, int]]:
        """Return each first action with the steps until all is done."""
        errands, moves = self.errands, []
        for target in dict.fromkeys(held):
            steps = errands.steps(start, target) + held.count(target) - 1
            rest = tuple(each for each in held if each != target)
            after = self.cost(errands.spots[target].corner, rest, items)
            moves.append((Aim("goput", target), steps + after))
        if len(held) < HANDS:
            for number, item in enumerate(self.items):
                if items >> number & 1:
                    now_held = tuple(sorted((*held, errands.home(item.id))))
                    after = self.cost(item.corner, now_held, items & ~(1 << number))
                    moves.append((Aim("gograb", item.id), errands.steps(start, item.id) + after))
        return moves

    def shares(self, workers: Sequence[Worker]) -> list[int]:
        """Divide the items so that the last worker is done as early as possible, then all others."""
        best: dict[int, tuple[int, int, list[int]]] = {0: (0, 0, [])}
        for worker in workers:
            held = tuple(sorted(self.errands.targets_of(worker)))
            costs = [self.cost(worker.corner, held, items) for items in range(self.all + 1)]
            best = {taken: _better(best, costs, taken) for taken in range(self.all + 1)}
        return best[self.all][2]


def _better(
    best: dict[int, tuple[int, int, list[int]]], costs: Sequence[int], taken: int
) -> tuple[int, int, list[int]]:
    """Give one more worker the part of the taken items that makes the whole end soonest."""
    found: tuple[int, int, list[int]] | None = None
    part = taken
    while True:
        others = best.get(taken ^ part)
        if others is not None:
            latest, total, shares = others
            end = (max(latest, costs[part]), total + costs[part])
            if found is None or end < found[:2]:
                found = (*end, [*shares, part])
        if part == 0:
            break
        part = (part - 1) & taken
    return found or (10**9, 10**9, [])
