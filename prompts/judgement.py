"""One member's judgement, by rules: what each of its options is worth.

While something is to be found, it weighs fetching and looking (`prompts/errands.py`); with one thing in hand
it goes on, unless the target lies about on its way. Once all is found, the shortest rounds decide
(`prompts/rounds.py`).
"""

from prompts.errands import HANDS, PATIENCE, Aim, Errands
from prompts.household import Option, View, Worker
from prompts.rounds import Rounds

USELESS = 1e-6
DETOUR = 3
"""Steps that an early delivery may cost: it frees a hand."""


def merits(view: View) -> list[float]:
    """Return what each option is worth to the member whose view it is; more is better, nothing below 0."""
    errands = Errands(view, view.taken)
    me = view.myself
    values = _merits_of_rounds(errands, me) if errands.is_all_found else _merits_of_search(errands, me)
    return [_merit(option, values) for option in view.options]


def _merit(option: Option, values: dict[Aim, float]) -> float:
    if option.kind == "wait":
        return USELESS
    return 0.0 if option.target is None else values.get(Aim(option.kind, option.target), 0.0)


def best(view: View) -> int:
    """Return the option that is worth most, the one under way where several are worth the same."""
    values = merits(view)
    return max(range(len(values)), key=lambda n: (values[n], view.options[n].under_way, -n))


def _merits_of_search(errands: Errands, me: Worker) -> dict[Aim, float]:
    """Weigh what is to be found and to be fetched, and a delivery on the way."""
    values = {aim: errands.worth(me.corner, aim.target) for aim in errands.aims()}
    for target in errands.targets_of(me):
        values[Aim("goput", target)] = worth_of_delivery(errands, me, target, values)
    return values


def worth_of_delivery(errands: Errands, me: Worker, target: int, values: dict[Aim, float]) -> float:
    """Prefer a delivery where both hands are full, or where what comes next lies behind the target."""
    best = max(values, key=lambda aim: values[aim], default=None)
    if best is None or len(me.hands) >= HANDS:
        return 1.0
    around = errands.steps(me.corner, target) + errands.steps(errands.spots[target].corner, best.target)
    detour = around - errands.steps(me.corner, best.target)
    return values[best] * (1.01 if detour <= DETOUR else 0.5)


def _merits_of_rounds(errands: Errands, me: Worker) -> dict[Aim, float]:
    """Weigh each first action by how soon the rounds that begin so are over."""
    rounds = Rounds(errands, [me])
    return {aim: PATIENCE**steps for aim, steps in rounds.openings(me).items()}
