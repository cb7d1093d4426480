"""The shortest rounds that fetch known things with two hands each: exact, by dynamic programming."""

from collections.abc import Sequence

from mneme.environments.household.walking import Corner
from mneme.environments.household.world import HANDS
from mneme.prompts.household.household import Worker
from mneme.rules.household.errands import Aim, Errands

MAX_EXACT_ITEMS = 6  # each worker but the first makes 3 ** 6 divisions more to weigh
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
            self._costs[key] = min(self._moves(start, held, items).values(), default=0)
        return self._costs[key]

    def openings(self, worker: Worker, items: int | None = None) -> dict[Aim, int]:
        """Return for each first action how many steps it takes until all is done, if it is the first."""
        return self._moves(worker.corner, self._held(worker), self.all if items is None else items)

    def _held(self, worker: Worker) -> Held:
        return tuple(sorted(self.errands.targets_of(worker)))

    def _moves(self, start: Corner, held: Held, items: int) -> dict[Aim, int]:
        """Return each first action with the steps until all is done."""
        errands, moves = self.errands, dict[Aim, int]()
        for target in dict.fromkeys(held):
            steps = errands.steps(start, target) + held.count(target) - 1
            rest = tuple(each for each in held if each != target)
            moves[Aim("goput", target)] = steps + self.cost(errands.spots[target].corner, rest, items)
        if len(held) < HANDS:
            for number, item in enumerate(self.items):
                if items >> number & 1:
                    now_held = tuple(sorted((*held, errands.home(item.id))))
                    after = self.cost(item.corner, now_held, items & ~(1 << number))
                    moves[Aim("gograb", item.id)] = errands.steps(start, item.id) + after
        return moves

    def shares(self, workers: Sequence[Worker]) -> list[int]:
        """Divide the items so that the last worker is done as early as possible, then all others."""
        best: dict[int, tuple[int, int, list[int]]] = {0: (0, 0, [])}
        for worker in workers:
            costs = [self.cost(worker.corner, self._held(worker), items) for items in range(self.all + 1)]
            before, best = best, {}
            for taken in range(self.all + 1):  # by the workers up to this one; by those before, `rest` of it
                ends = [
                    (max(latest, costs[taken ^ rest]), total + costs[taken ^ rest], [*shares, taken ^ rest])
                    for rest, (latest, total, shares) in before.items()
                    if rest & taken == rest
                ]
                best[taken] = min(ends, key=lambda end: end[:2])
        return best[self.all][2]
