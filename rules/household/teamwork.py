"""Allocation by rules: the joint action of a whole team (eq. 4).

While something is to be found, fetching, looking and bringing home are shared out in joint routes
(`rules/household/routes.py`), no two members going for the same. Once all is found, the things
are shared out in whole rounds, next-but-one deliveries included, so that the last member is done as early
as possible (`rules/household/rounds.py`).

A member's proposal decides between plans that are about as good (`HEEDING`): whoever is there may have a
reason that the fields do not say. One that was made three times may cost more (`INSISTING`).
"""

from collections.abc import Sequence
from itertools import product

from mneme.environments.household.world import HANDS
from mneme.prompts.household.household import Knowledge
from mneme.prompts.household.mita import REPEATS, Report
from mneme.rules.household.errands import Aim, Errands
from mneme.rules.household.judgement import valued
from mneme.rules.household.rounds import Rounds
from mneme.rules.household.routes import JointRoutes

HEEDING, INSISTING = 1.0, 3.0
"""Maximum cost in steps of following a proposal once, and a proposal made again and again."""


def share_out(knowledge: Knowledge, team: Sequence[Report]) -> list[int]:
    """Return the number of one option for each member: with the greatest gain together and no claim twice."""
    # Rather wait than do what is in no plan: its value is below that of waiting.
    values = [
        valued(member.options, planned, -1.0)
        for member, planned in zip(team, _planned(Errands(knowledge), team), strict=True)
    ]
    # The others make one claim each: of as many options as there are members, one is free for each.
    rows = [sorted(range(len(row)), key=lambda n: -row[n])[: len(team)] for row in values]
    apart = []
    for choice in product(*rows):
        claims = [member.options[n].claim for member, n in zip(team, choice, strict=True)]
        claimed = [claim for claim in claims if claim is not None]
        if len(claimed) == len({*claimed}):
            apart.append(choice)
    return [*max(apart, key=lambda choice: sum(row[n] for row, n in zip(values, choice, strict=True)))]


def _planned(errands: Errands, team: Sequence[Report]) -> list[dict[Aim, float]]:
    """Return the value of each member's actions in the team's plan."""
    workers = [each.worker for each in team]
    proposed = []
    for member in team:
        option = member.options[member.proposal]
        worth = INSISTING if member.times >= REPEATS else HEEDING
        proposed.append((Aim(option.kind, option.target or -1), worth))
    if errands.is_all_found:
        rounds = Rounds(errands, workers)
        return [
            {
                aim: 1 / (1 + max(0, steps - worth * (aim == wish)))
                for aim, steps in rounds.openings(worker, share).items()
            }
            for worker, share, (wish, worth) in zip(workers, rounds.shares(workers), proposed, strict=True)
        ]
    routes = JointRoutes(errands, workers, [(wish.target, worth) for wish, worth in proposed])
    planned = []
    for number, worker in enumerate(workers):
        first = routes.first(number)
        values = {} if first is None else {first: 1.0}
        if first is None or len(worker.hands) >= HANDS:
            # Above 1, since full hands come before the first stop of a route, which begins at the target.
            values |= {Aim("goput", target): 2.0 for target in errands.targets_of(worker)}
        planned.append(values)
    return planned
