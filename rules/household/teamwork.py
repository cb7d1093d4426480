"""Allocation by rules: the joint action of a whole team (eq. 4).

While something is to be found, fetching, looking and bringing home are shared out in joint routes
(`rules/household/routes.py`), no two members going for the same. Once all is found, the things
are shared out in whole rounds, next-but-one deliveries included, so that the last member is done as early
as possible (`rules/household/rounds.py`).

A member's proposal decides between plans that are about as good (`HEEDING`): whoever is there may have a
reason that the fields do not say. One that was made three times may cost more (`INSISTING`).
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from mneme.prompts.household.household import Knowledge
from mneme.prompts.household.mita import REPEATS, Report
from mneme.rules.household.errands import HANDS, Aim, Errands
from mneme.rules.household.judgement import WAITING
from mneme.rules.household.rounds import Rounds
from mneme.rules.household.routes import JointRoutes

HEEDING, INSISTING = 1.0, 3.0
"""Maximum cost in steps of following a proposal once, and a proposal made again and again."""


class OptionValue(NamedTuple):
    """An option's number, the target that it claims for itself, and its gain."""

    number: int
    claim: object
    value: float


def share_out(knowledge: Knowledge, team: Sequence[Report]) -> list[int]:
    """Return the number of one option for each member: with the greatest gain together and no claim twice.

    The others make one claim each, so that among a member's best options, as many as there are members, one
    is free: only those are weighed.
    """
    errands = Errands(knowledge)
    workers = [each.worker for each in team]
    if errands.is_all_found:
        rounds = Rounds(errands, workers)
        shares = zip(team, rounds.shares(workers), strict=True)
        wishes = [
            {
                aim: 1 / (1 + max(0, steps - _worth(member) * (aim == _proposed(member))))
                for aim, steps in rounds.openings(member.worker, share).items()
            }
            for member, share in shares
        ]
    else:
        wishes = [*_of_routes(errands, team)]
    rows = [_best(member, wish)[: len(team)] for member, wish in zip(team, wishes, strict=True)]
    apart = []
    for choice in product(*rows):
        claims = [each.claim for each in choice if each.claim is not None]
        if len(claims) == len({*claims}):
            apart.append(choice)
    return [each.number for each in max(apart, key=lambda choice: sum(each.value for each in choice))]


def _worth(member: Report) -> float:
    """Return the maximum cost in steps of following a member's proposal."""
    return INSISTING if member.times >= REPEATS else HEEDING


def _proposed(member: Report) -> Aim:
    """Return a member's proposed action on a target; nothing if it would wait."""
    option = member.options[member.proposal]
    return Aim(option.kind, option.target or -1)


def _of_routes(errands: Errands, team: Sequence[Report]) -> Iterator[dict[Aim, float]]:
    """Yield each member's first action on the joint routes; without one, it delivers."""
    proposed = [(_proposed(each).target, _worth(each)) for each in team]
    routes = JointRoutes(errands, [each.worker for each in team], proposed)
    for number, member in enumerate(team):
        first = routes.first(number)
        values = {} if first is None else {first: 1.0}
        if first is None or len(member.worker.hands) >= HANDS:
            values |= {Aim("goput", target): 2.0 for target in errands.targets_of(member.worker)}
        yield values


def _best(member: Report, values: dict[Aim, float]) -> list[OptionValue]:
    """Return a member's options, the best first; of those with the same claim the best alone.

    Rather wait than do what brings nothing.
    """
    valued = [
        OptionValue(
            number,
            option.claim,
            WAITING if option.kind == "wait" else values.get(Aim(option.kind, option.target or -1), -1.0),
        )
        for number, option in enumerate(member.options)
    ]
    ordered = sorted(valued, key=lambda each: -each.value)
    claims = [each.claim for each in ordered]
    return [each for n, each in enumerate(ordered) if each.claim is None or each.claim not in claims[:n]]
