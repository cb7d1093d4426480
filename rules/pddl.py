"""Rules that answer the questions of `prompts/pddl/pddl_team.py`: they plan with pyperplan.

What the task, the memory's list of actions and the visible turns do not tell is not known. So a plan may be
made from a state that is no longer the world's; an action that fails shows it, and the next one looks around.
Such a solver tells whether a harness works from end to end, and nothing about a language model's plans.

A sentence is the tuple of its words, in small letters; in a description some words are `<parameters>`.
Nothing is known here of any domain: what is not in the text is not known.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from mneme.core.errors import needs
from mneme.environments.pddl.compiling import GroundAction, Schema
from mneme.environments.pddl.world import CHECK, LOOK, PDDL_WORD
from mneme.environments.turns import Turn, read_turns, split_turns
from mneme.prompts.pddl import pddl_team as questions
from mneme.prompts.pddl.pddl_team import Move, Repetition, Situation
from mneme.rules.registry import rule

Sentence = tuple[str, ...]
Facts = frozenset[Sentence]

ACTION_LINE = re.compile(
    r"^- (\S+)((?: <[^>]+>)*)\s*$\n((?:^\s+(?:where|needs|makes true|makes untrue): .*\n?)*)", re.M
)
OBJECTS_LINE = re.compile(r"^Objects: (.*)$", re.M)
OBJECT_GROUP = re.compile(r"([^;()]+)(?:\(([^)]*)\))?")
GOAL = re.compile(r"conditions: (.*?)(?:\n|$)")
START_LINE = re.compile(r"^At the start: (.*)$", re.M)
KIND = re.compile(r"(<[^>]+>) is ([^;.]+)")
ARTICLE = re.compile(r"\b(?:an?|the) ")
FULL_STOP = re.compile(r"\.(?:\s+|$)")
EARLIER_TASK = re.compile(r"^An earlier task that ", re.MULTILINE)
FAILED = re.compile(r"fail|without effect|not valid", re.IGNORECASE)
IN_ORDER = re.compile(r"in.order", re.IGNORECASE)


class Manual:
    """The content of a task's text."""

    def __init__(self, task: str) -> None:
        groups = OBJECT_GROUP.findall("".join(OBJECTS_LINE.findall(task)).lower().rstrip("."))
        self.kinds = {name: kind for names, kind in groups for name in PDDL_WORD.findall(names)}
        """Each object's kind; empty where the text names none."""
        self.objects: dict[str, Sequence[str]] = {}
        """The objects that each parameter may take."""
        self.actions = {each[0]: self._action(*each) for each in ACTION_LINE.findall(f"{task.lower()}\n")}
        goal, start = GOAL.search(task), START_LINE.search(task)
        self.goal, self.start = (self.facts_in(each[1]) if each else Facts() for each in (goal, start))

    def _action(self, name: str, parameters: str, described: str) -> Schema:
        """Read an action, and which objects each of its parameters may be."""
        parts = dict(line.strip().split(": ", 1) for line in described.splitlines() if line.strip())
        names = tuple(parameters.split())
        types = tuple(f"{name} {each}" for each in names)
        wanted = {
            each: ARTICLE.sub("", kind).split(" or ") for each, kind in KIND.findall(parts.get("where", ""))
        }
        for each, key in zip(names, types, strict=True):
            allowed = wanted.get(each, self.kinds.values())
            self.objects[key] = [thing for thing, kind in self.kinds.items() if kind in allowed]
        needs, adds, deletes = (
            tuple(sentences(parts.get(each, ""))) for each in ("needs", "makes true", "makes untrue")
        )
        return Schema(name, names, types, needs, adds, deletes)

    def actions_in(self, text: str) -> Iterator[GroundAction]:
        """Yield the actions that a text names with all their objects, in order."""
        words = PDDL_WORD.findall(text.lower())
        for at, word in enumerate(words):
            if action := self.actions.get(word):
                things = words[at + 1 : at + 1 + len(action.parameters)]
                if len(things) == len(action.parameters) and self.kinds.keys() >= {*things}:
                    yield action.ground(things)

    def facts_in(self, text: str) -> Facts:
        """Return the sentences of a text that have a form which the descriptions use."""
        return frozenset(each for each in sentences(text) if self._form(each) in self._forms)

    @cached_property
    def _forms(self) -> set[Sentence]:
        parts = (each.requires + each.adds + each.deletes for each in self.actions.values())
        return {self._form(literal) for part in parts for literal in part}

    @cached_property
    def possible(self) -> list[GroundAction]:
        """Return every action with objects for which what no action can change holds at the start."""
        known = self.actions.values()
        changing = {self._form(each) for action in known for each in action.adds + action.deletes}
        found: list[GroundAction] = []
        for action in known:
            fixed = tuple(each for each in action.requires if self._form(each) not in changing)
            bindable = replace(action, requires=fixed).instances(self.objects, self.start)
            found += [action.ground(each.words[1:]) for each in bindable]
        return found

    def _form(self, sentence: Sentence) -> Sentence:
        """Return a sentence with a gap for each parameter or object."""
        return tuple("_" if word[0] == "<" or word in self.kinds else word for word in sentence)


read_manual = lru_cache(maxsize=256)(Manual)  # the same text comes with each step's question


def sentences(text: str) -> list[Sentence]:
    """Cut a text into sentences of words in small letters."""
    return [cut for each in FULL_STOP.split(text.strip()) if (cut := tuple(each.lower().split()))]


@rule(questions.choose_otherwise)
@rule(questions.choose_action)
def choose(given: Situation) -> Move:
    """Plan from what the context tells, without an action that is repeated."""
    avoided = given.repeated if isinstance(given, Repetition) else ""
    return Move(action=next_action(given.task, read(given.task, given.memory, given.turns), avoided))


@dataclass
class KnownFacts:
    """A context's content: the facts that hold, and actions that failed since one last worked."""

    facts: Facts
    failed: set[str] = field(default_factory=set)
    last: Turn | None = None


def read(task: str, memory: str, turns: str) -> KnownFacts:
    """Gather what the three texts say: first the memory's, then the turns, which came later or again."""
    manual = read_manual(task)
    known, heading = KnownFacts(manual.start), ""
    for line in EARLIER_TASK.split(memory)[0].splitlines():  # an earlier task's actions were not done here
        heading = line if ":" in line else heading
        for action in manual.actions_in(line):
            if FAILED.search(heading + line):
                known.failed.add(str(action))
            elif IN_ORDER.search(heading):
                known.facts = action.after(known.facts)
    for turn in read_turns(split_turns(turns)):
        known.last = turn
        actions = [*manual.actions_in(turn.output)][:1]
        if turn.failed:
            known.failed |= {str(each) for each in actions}
        elif not turn.thought:
            seen, adds = manual.facts_in(turn.outcome), Facts().union(*(each.adds for each in actions))
            for action in actions:
                known.facts, known.failed = action.after(known.facts), set()
            # more than the action's effects: then the text lists everything that holds
            known.facts = seen if seen - adds else known.facts | seen
    return known


def next_action(task: str, known: KnownFacts, avoided: str = "") -> str:
    """Return the next action of a plan; without one, or after a failed action, look around."""
    failed = known.last is not None and known.last.failed
    # After a failure the assumed state is no longer the world's: a plan from it would fail again.
    if not failed and (planned := _planned(task, known, known.failed | {avoided})):
        return planned
    looked = LOOK in (avoided, known.last.output.lower() if known.last else "")
    return CHECK if looked else LOOK


def _planned(task: str, known: KnownFacts, barred: set[str]) -> str:
    """Return the next action on the way from the start; beside that way, the first of a plan from here."""
    manual = read_manual(task)
    facts, by_name = manual.start, {str(each): each for each in manual.possible}
    for action in plan(task, facts, frozenset()):
        if facts == known.facts and action not in barred:
            return action
        facts = by_name[action].after(facts)
    return next(iter(plan(task, known.facts, frozenset(barred & by_name.keys()))), "")


@lru_cache(maxsize=256)  # `_planned` walks along the plan from the start again at each step
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
