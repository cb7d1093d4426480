"""One member's judgement by rules: the value of each of its options.

While something is to be found, the member plans its route through the places that may have it
(`rules/household/routes.py`); an option is worth the more, the sooner all would be home if it came
first. With one thing in hand it goes on, unless the target lies about on its way. Once all is found, the
shortest rounds decide (`rules/household/rounds.py`).
"""

from collections.abc import Mapping, Sequence

from mneme.environments.household.world import HANDS
from mneme.prompts.household.household import Option, View
from mneme.rules.household.errands import Aim, Errands
from mneme.rules.household.rounds import Rounds
from mneme.rules.household.routes import MIN_STEPS_TO_TURN, Routes

WAITING = 1e-9
"""Value of waiting: less than that of any plan, and more than that of what brings nothing."""
DETOUR = 3
"""Maximum steps of a detour for an early delivery, which frees a hand."""


def valued(options: Sequence[Option], values: Mapping[Aim, float], otherwise: float) -> list[float]:
    """Return the value of each option; `otherwise` is that of an action which is not valued."""
    return [
        WAITING if each.kind == "wait" else values.get(Aim(each.kind, each.target or -1), otherwise)
        for each in options
    ]


def merits(view: View) -> list[float]:
    """Return the value of each option to the member whose view it is; more is better, none is below 0."""
    errands, me = Errands(view, view.taken), view.myself
    if errands.is_all_found:
        openings = Rounds(errands, [me]).openings(me)
        return valued(view.options, {aim: 1 / (1 + steps) for aim, steps in openings.items()}, 0.0)
    routes = Routes(errands, [me])
    # With the bonus for what is under way a cost is -MIN_STEPS_TO_TURN at least.
    values = {aim: 1 / (1 + MIN_STEPS_TO_TURN + cost) for aim, cost in routes.openings().items()}
    first = routes.first(0)
    for target in errands.targets_of(me):
        detour = 0
        if first is not None and len(me.hands) < HANDS:
            onward = errands.steps(errands.spots[target].corner, first.target)
            detour = errands.steps(me.corner, target) + onward - errands.steps(me.corner, first.target)
        values[Aim("goput", target)] = 1.0 if detour <= DETOUR else WAITING
    return valued(view.options, values, 0.0)


def best(view: View) -> int:
    """Return the option with the highest value; of equals, the one under way."""
    values = merits(view)
    return max(range(len(values)), key=lambda n: (values[n], view.options[n].under_way, -n))
