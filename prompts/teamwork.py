"""Who should do what: the joint action of a whole team, by rules (eq. 4).

While something is to be found, fetching and looking are shared out so that together they bring most, no two
members going for the same (an assignment problem, solved exactly by scipy). Once all is found, the things
are shared out in whole rounds, next-but-one deliveries included, so that the last member is done as early
as possible (`prompts/rounds.py`).
"""

from collections.abc import Sequence

import numpy
from pydantic import BaseModel
from scipy.optimize import linear_sum_assignment

from prompts.errands import PATIENCE, Aim, Errands
from prompts.household import Knowledge, Option, Worker
from prompts.judgement import worth_of_delivery
from prompts.rounds import Rounds

IMPOSSIBLE = -1e3
USELESS = 1e-9


class Hand(BaseModel):
    """A member and what it may do."""

    worker: Worker
    options: list[Option]


def share_out(knowledge: Knowledge, team: Sequence[Hand]) -> list[int]:
    """Return the number of one option for each member; no two go for the same."""
    errands = Errands(knowledge)
    values = _of_rounds(errands, team) if errands.is_all_found else _of_search(errands, team)
    return _assigned(team, values)


def _of_search(errands: Errands, team: Sequence[Hand]) -> list[list[float]]:
    """Return what each option of each member brings while something is to be found."""
    aims = set(errands.aims())
    return [_row(errands, each, aims) for each in team]


def _row(errands: Errands, hand: Hand, aims: set[Aim]) -> list[float]:
    me = hand.worker
    values: dict[Aim, float] = {}
    for aim in (_aim(option) for option in hand.options):
        if aim in aims:
            values[aim] = errands.worth(me.corner, aim.target)
    for target in errands.targets_of(me):
        values[Aim("goput", target)] = worth_of_delivery(errands, me, target, values)
    return [_value(option, values) for option in hand.options]


def _value(option: Option, values: dict[Aim, float]) -> float:
    """Return what an option brings; rather wait than do what brings nothing."""
    if option.kind == "wait":
        return USELESS
    return values.get(_aim(option), -1.0)


def _aim(option: Option) -> Aim:
    return Aim(option.kind, -1 if option.target is None else option.target)


def _of_rounds(errands: Errands, team: Sequence[Hand]) -> list[list[float]]:
    """Return what each option brings once all is found: the first step of the member's best round."""
    rounds = Rounds(errands, [each.worker for each in team])
    shares = rounds.shares([each.worker for each in team])
    return [
        [_value(option, _soon(rounds, each.worker, share)) for option in each.options]
        for each, share in zip(team, shares, strict=True)
    ]


def _soon(rounds: Rounds, worker: Worker, share: int) -> dict[Aim, float]:
    return {aim: PATIENCE**steps for aim, steps in rounds.openings(worker, share).items()}


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
