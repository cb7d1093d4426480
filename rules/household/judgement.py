"""One member's judgement by rules: the value of each of its options.

While something is to be found, the member plans its route through the places that may have it
(`rules/household/routes.py`); an option is worth the more, the sooner all would be home if it came
first. With one thing in hand it goes on, unless the target lies about on its way. Once all is found, the
shortest rounds decide (`rules/household/rounds.py`).
"""

from mneme.prompts.household.household import View, Worker
from mneme.rules.household.errands import HANDS, Aim, Errands
from mneme.rules.household.rounds import Rounds
from mneme.rules.household.routes import MIN_STEPS_TO_TURN, Routes

WAITING = 1e-9
DETOUR = 3
"""Maximum steps of a detour for an early delivery, which frees a hand."""


def merits(view: View) -> list[float]:
    """Return the value of each option to the member whose view it is; more is better, none is below 0."""
    errands = Errands(view, view.taken)
    me = view.myself
    if errands.is_all_found:
        openings = Rounds(errands, [me]).openings(me)
        values = {aim: 1 / (1 + steps) for aim, steps in openings.items()}
    else:
        values = _merits_of_search(errands, me)
    return [
        WAITING if option.kind == "wait" else values.get(Aim(option.kind, option.target or -1), 0.0)
        for option in view.options
    ]


def best(view: View) -> int:
    """Return the option with the highest value; of equals, the one under way."""
    values = merits(view)
    return max(range(len(values)), key=lambda n: (values[n], view.options[n].under_way, -n))


def _merits_of_search(errands: Errands, me: Worker) -> dict[Aim, float]:
    """Weigh each stop by the expected end if it came first, and a delivery by whether it is on the way."""
    routes = Routes(errands, [me])
    values = {aim: 1 / (1 + MIN_STEPS_TO_TURN + cost) for aim, cost in routes.openings().items()}
    first = routes.first(0)
    for target in errands.targets_of(me):
        on_the_way = first is None or _is_on_the_way(errands, me, target, first.target)
        values[Aim("goput", target)] = 1.0 if on_the_way else WAITING
    return values


def _is_on_the_way(errands: Errands, me: Worker, target: int, following: int) -> bool:
    """Return whether to deliver first: with both hands full, or where the target lies about on the way."""
    if len(me.hands) >= HANDS:
        return True
    around = errands.steps(me.corner, target) + errands.steps(errands.spots[target].corner, following)
    return around - errands.steps(me.corner, following) <= DETOUR
