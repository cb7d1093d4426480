"""Who should do what: the joint action of a whole team, by rules (eq. 4).

While something is to be found, fetching and looking are shared out so that together they bring most, no two
members going for the same (an assignment problem, solved exactly by scipy). Once all is found, the things
are shared out in whole rounds, next-but-one deliveries included, so that the last member is done as early
as possible (`household_rules/rounds.py`).
"""

from collections.abc import Sequence

import numpy
from pydantic import BaseModel
from scipy.optimize import linear_sum_assignment

from prompts.household import Knowledge, Option, Worker
from prompts.household_rules.errands import Aim, Errands
from prompts.household_rules.judgement import WAITING, is_on_the_way
from prompts.household_rules.rounds import Rounds
from prompts.household_rules.search_routes import Routes

IMPOSSIBLE = -1e3


class Hand(BaseModel):
    """A member and what it may do."""

    worker: Worker
    options: list[Option]


def share_out(knowledge: Knowledge, team: Sequence[Hand]) -> list[int]:
    """Return the number of one option for each member; no two go for the same."""
    errands = Errands(knowledge)
    workers = [each.worker for each in team]
    aims = _of_rounds(errands, workers) if errands.is_all_found else _of_routes(errands, workers)
    return _assigned(team, [_row(hand, wish) for hand, wish in zip(team, aims, strict=True)])


def _of_routes(errands: Errands, workers: Sequence[Worker]) -> list[dict[Aim, float]]:
    """Return each member's first stop on the joint routes, or a delivery on its way."""
    routes = Routes(errands, workers)
    return [_wish(errands, routes, worker, n) for n, worker in enumerate(workers)]


def _wish(errands: Errands, routes: Routes, worker: Worker, number: int) -> dict[Aim, float]:
    first = routes.first(number)
    values = {} if first is None else {first: 1.0}
    for target in errands.targets_of(worker):
        if first is None or is_on_the_way(errands, worker, target, first.target):
            values[Aim("goput", target)] = 2.0
    return values


def _of_rounds(errands: Errands, workers: Sequence[Worker]) -> list[dict[Aim, float]]:
    """Return how good each first action of a member's own share is, once all is found."""
    rounds = Rounds(errands, workers)
    shares = rounds.shares(workers)
    return [_soon(rounds, worker, share) for worker, share in zip(workers, shares, strict=True)]


def _soon(rounds: Rounds, worker: Worker, share: int) -> dict[Aim, float]:
    return {aim: 1 / (1 + steps) for aim, steps in rounds.openings(worker, share).items()}


def _row(hand: Hand, values: dict[Aim, float]) -> list[float]:
    return [_value(option, values) for option in hand.options]


def _value(option: Option, values: dict[Aim, float]) -> float:
    """Return what an option brings; rather wait than do what brings nothing."""
    if option.kind == "wait":
        return WAITING
    return values.get(Aim(option.kind, -1 if option.target is None else option.target), -1.0)


def _assigned(team: Sequence[Hand], values: Sequence[Sequence[float]]) -> list[int]:
    """Choose one option for each member so that they bring most together and no claim is made twice."""
    columns: dict[tuple[str, int], int] = {}
    for number, hand in enumerate(team):
        for place, option in enumerate(hand.options):
            columns.setdefault(_column(option, number, place), len(columns))
    table = numpy.full((len(team), len(columns)), IMPOSSIBLE)
    for number, hand in enumerate(team):
        for place, option in enumerate(hand.options):
            table[number, columns[_column(option, number, place)]] = values[number][place]
    _, chosen = linear_sum_assignment(table, maximize=True)
    places = [
        {columns[_column(option, number, place)]: place for place, option in enumerate(hand.options)}
        for number, hand in enumerate(team)
    ]
    return [places[number][column] for number, column in enumerate(chosen.tolist())]


def _column(option: Option, number: int, place: int) -> tuple[str, int]:
    """Name what a choice takes away from the others: its target, or nothing."""
    return ("claim", option.claim) if option.claim is not None else (f"member {number}", place)
