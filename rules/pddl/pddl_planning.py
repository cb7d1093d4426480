"""How rules plan: with pyperplan, from what the context tells of the world.

What the task, the memory's list of actions and the visible turns do not tell is not known. So a plan may be
made from a state that is no longer the world's; an action that fails shows it, and the next one looks around.
Such a solver tells whether a harness works from end to end, and nothing about a language model's plans.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from mneme.core.errors import needs
from mneme.environments.turns import Turn, read_turns, split_turns
from mneme.rules.pddl.pddl_manual import Facts, Manual, read_manual

CHECK, LOOK = "check valid actions", "look around"
LISTED = "valid actions: "
EARLIER = re.compile(r"^An earlier task that ", re.MULTILINE)
FAILED = re.compile(r"fail|without effect|not valid", re.IGNORECASE)
IN_ORDER = re.compile(r"in.order", re.IGNORECASE)


@dataclass
class Known:
    """What a context tells: what holds, what failed since something last worked, what was listed last."""

    manual: Manual
    facts: Facts
    failed: set[str] = field(default_factory=set)
    done: list[str] = field(default_factory=list)
    listed: list[str] = field(default_factory=list)
    last: Turn | None = None


def read(task: str, memory: str, turns: str) -> Known:
    """Gather what the three texts say: first the memory's, then the turns, which came later or again."""
    manual = read_manual(task)
    known = Known(manual, manual.start)
    heading = ""
    for line in EARLIER.split(memory)[0].splitlines():
        heading = line if ":" in line else heading
        for action in manual.actions_in(line):
            if FAILED.search(heading + line):
                known.failed.add(str(action))
            elif IN_ORDER.search(heading):
                known.facts = action.after(known.facts)
    for turn in read_turns(split_turns(turns)):
        _follow(known, turn)
    return known


def _follow(known: Known, turn: Turn) -> None:
    known.last = turn
    actions = [*known.manual.actions_in(turn.output)][:1]
    if LISTED in turn.outcome.lower():
        listed = turn.outcome.lower().partition(LISTED)[2].split(";")
        known.listed = [each.strip() for each in listed]
    elif turn.failed:
        known.failed |= {str(each) for each in actions}
    elif not turn.thought:
        seen, adds = known.manual.facts_in(turn.outcome), Facts().union(*(each.adds for each in actions))
        for action in actions:
            known.facts = action.after(known.facts)
            known.done.append(str(action))
            known.failed, known.listed = set(), []
        known.facts = seen if seen - adds else known.facts | seen  # more than what changed: all that holds


def next_action(task: str, known: Known, avoided: str = "") -> str:
    """Return the next action of a plan; where there is none, look, ask what is valid, and try that."""
    last = known.last.output.lower() if known.last else ""
    barred = known.failed | {avoided}
    if not (known.last and known.last.failed) and (planned := _planned(task, known, barred)):
        return planned
    new = [each for each in known.listed if each not in barred | {CHECK, LOOK, *known.done}]
    tried = [each for each in (LOOK, CHECK) if each not in (last, avoided)]
    return LOOK if LOOK in tried else next(iter([*new, *tried]))


def _planned(task: str, known: Known, barred: set[str]) -> str:
    """Return the next action on the way from the start; beside that way, the first of a plan from here."""
    facts = known.manual.start
    by_name = {str(each): each for each in known.manual.possible}
    for action in plan(task, facts, frozenset()):
        if facts == known.facts and action not in barred:
            return action
        facts = by_name[action].after(facts)
    return next(iter(plan(task, known.facts, frozenset(barred & by_name.keys()))), "")


@lru_cache(maxsize=256)
def plan(task: str, facts: Facts, barred: frozenset[str]) -> Sequence[str]:
    """Return the actions that lead from these facts to the task's goal; none where none were found."""
    with needs("Planning by rules", "pddl"):
        from pyperplan.heuristics.relaxation import hFFHeuristic  # noqa: PLC0415  (an extra)
        from pyperplan.search.a_star import greedy_best_first_search  # noqa: PLC0415
        from pyperplan.task import Operator, Task  # noqa: PLC0415
    manual = read_manual(task)
    actions = [each for each in manual.possible if str(each) not in barred]
    sentences = {each for action in actions for each in action.requires | action.adds | action.deletes}
    # Numbers for sentences: sets of them have the same order in every process.
    number = {each: at for at, each in enumerate(sorted(sentences | facts | manual.goal))}

    def numbers(told: Facts) -> frozenset[int]:
        return frozenset(number[each] for each in told)

    operators = [
        Operator(str(each), *map(numbers, (each.requires, each.adds, each.deletes))) for each in actions
    ]
    problem = Task("", range(len(number)), numbers(facts), numbers(manual.goal), operators)
    found = greedy_best_first_search(problem, hFFHeuristic(problem), use_relaxed_plan=True)
    return [each.name for each in found or ()]
