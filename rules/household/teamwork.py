"""Who should do what: the joint action of a whole team, by rules (eq. 4).

While something is to be found, fetching, looking and bringing home are shared out in joint routes
(`rules/household/joint_routes.py`), no two members going for the same. Once all is found, the things
are shared out in whole rounds, next-but-one deliveries included, so that the last member is done as early
as possible (`rules/household/rounds.py`).

A member's proposal decides between plans that are about as good (`HEEDING`): whoever is there may have a
reason that the fields do not say. One that was made three times may cost more (`INSISTING`).
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

from pydantic import BaseModel

from mneme.prompts.household.household import Knowledge, Option, Worker
from mneme.prompts.household.mita import OFTEN
from mneme.rules.household.errands import HANDS, Aim, Errands
from mneme.rules.household.joint_routes import JointRoutes
from mneme.rules.household.judgement import WAITING
from mneme.rules.household.rounds import Rounds

HEEDING, INSISTING = 1.0, 3.0
"""Steps that doing as was proposed may cost, and doing as was proposed again and again."""


class Hand(BaseModel):
    """A member, what it may do, which of that it proposed, if anything, and how often by now."""

    worker: Worker
    options: list[Option]
    proposal: int | None = None
    times: int = 1

    @property
    def worth(self) -> float:
        """Return the steps that doing as it proposed may cost."""
        return INSISTING if self.times >= OFTEN else HEEDING

    @property
    def proposed(self) -> Aim | None:
        """Return what it proposed to do to something."""
        option = None if self.proposal is None else self.options[self.proposal]
        return None if option is None or option.target is None else Aim(option.kind, option.target)


class Valued(NamedTuple):
    """An option's number, what nobody else may claim beside it, and what it brings."""

    number: int
    claim: object
    value: float


def share_out(knowledge: Knowledge, team: Sequence[Hand]) -> list[int]:
    """Return the number of one option for each member: they bring most together, and no claim is made twice.

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
                aim: 1 / (1 + max(0, steps - hand.worth * (aim == hand.proposed)))
                for aim, steps in rounds.openings(hand.worker, share).items()
            }
            for hand, share in shares
        ]
    else:
        wishes = [*_of_routes(errands, team)]
    rows = [_best(hand, wish)[: len(team)] for hand, wish in zip(team, wishes, strict=True)]
    apart = []
    for choice in product(*rows):
        claims = [each.claim for each in choice if each.claim is not None]
        if len(claims) == len({*claims}):
            apart.append(choice)
    return [each.number for each in max(apart, key=lambda choice: sum(each.value for each in choice))]


def _of_routes(errands: Errands, team: Sequence[Hand]) -> Iterator[dict[Aim, float]]:
    """Yield what each member does first on the joint routes; where that is nothing, it delivers."""
    proposed = [(each.proposed.target if each.proposed else None, each.worth) for each in team]
    routes = JointRoutes(errands, [each.worker for each in team], proposed)
    for number, hand in enumerate(team):
        first = routes.first(number)
        values = {} if first is None else {first: 1.0}
        if first is None or len(hand.worker.hands) >= HANDS:
            values |= {Aim("goput", target): 2.0 for target in errands.targets_of(hand.worker)}
        yield values


def _best(hand: Hand, values: dict[Aim, float]) -> list[Valued]:
    """Return a member's options, the best first; of those with the same claim the best alone.

    Rather wait than do what brings nothing.
    """
    valued = [
        Valued(
            number,
            option.claim,
            WAITING if option.kind == "wait" else values.get(Aim(option.kind, option.target or -1), -1.0),
        )
        for number, option in enumerate(hand.options)
    ]
    ordered = sorted(valued, key=lambda each: -each.value)
    claims = [each.claim for each in ordered]
    return [each for n, each in enumerate(ordered) if each.claim is None or each.claim not in claims[:n]]
