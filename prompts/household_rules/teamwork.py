"""Who should do what: the joint action of a whole team, by rules (eq. 4).

While something is to be found, fetching and looking are shared out so that together they bring most, no two
members going for the same (an assignment problem, solved exactly by scipy). Once all is found, the things
are shared out in whole rounds, next-but-one deliveries included, so that the last member is done as early
as possible (`household_rules/rounds.py`).

A member's proposal decides between plans that are about as good (`HEEDING`): whoever is there may have a
reason that the fields do not say.
"""

from collections.abc import Sequence

import numpy
from pydantic import BaseModel
from scipy.optimize import linear_sum_assignment

from prompts.household import Knowledge, Option, Worker
from prompts.household_rules.errands import Aim, Errands
from prompts.household_rules.judgement import DETOUR, WAITING, is_on_the_way
from prompts.household_rules.rounds import Rounds
from prompts.household_rules.search_routes import HEEDING, Routes

IMPOSSIBLE = -1e3


class Hand(BaseModel):
    """A member, what it may do, and which of that it proposed, if anything."""

    worker: Worker
    options: list[Option]
    proposal: int | None = None

    @property
    def proposed(self) -> Aim | None:
        """Return what it proposed to do to something."""
        option = None if self.proposal is None else self.options[self.proposal]
        return None if option is None or option.target is None else Aim(option.kind, option.target)


def share_out(knowledge: Knowledge, team: Sequence[Hand]) -> list[int]:
    """Return the number of one option for each member; no two go for the same."""
    errands = Errands(knowledge)
    aims = _of_rounds(errands, team) if errands.is_all_found else _of_routes(errands, team)
    return _assigned(team, [_row(hand, wish) for hand, wish in zip(team, aims, strict=True)])


def _of_routes(errands: Errands, team: Sequence[Hand]) -> list[dict[Aim, float]]:
    """Return each member's first stop on the joint routes, or a delivery on its way."""
    proposed = [each.proposed.target if each.proposed else None for each in team]
    routes = Routes(errands, [each.worker for each in team], proposed)
    return [_wish(errands, hand, routes.first(number)) for number, hand in enumerate(team)]


def _wish(errands: Errands, hand: Hand, first: Aim | None) -> dict[Aim, float]:
    values = {} if first is None else {first: 1.0}
    for target in errands.targets_of(hand.worker):
        delivery = Aim("goput", target)
        detour = DETOUR + HEEDING * (hand.proposed == delivery)
        if first is None or is_on_the_way(errands, hand.worker, target, first.target, detour):
            values[delivery] = 2.0
    return values


def _of_rounds(errands: Errands, team: Sequence[Hand]) -> list[dict[Aim, float]]:
    """Return how good each first action of a member's own share is, once all is found."""
    workers = [each.worker for each in team]
    rounds = Rounds(errands, workers)
    shares = rounds.shares(workers)
    return [_soon(rounds, hand, share) for hand, share in zip(team, shares, strict=True)]


def _soon(rounds: Rounds, hand: Hand, share: int) -> dict[Aim, float]:
    openings = rounds.openings(hand.worker, share)
    return {aim: 1 / (1 + steps - HEEDING * (aim == hand.proposed)) for aim, steps in openings.items()}


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
