"""Very many cards, made by the worlds' own generators: no text is invented here.

A card is what a task of a world teaches: the claim that the rules' monitor makes of the task's condition and
of a remedy of that world, about the task that it was seen in. The queries are what a task searches by.
"""

from collections.abc import Iterator
from itertools import count, product

from mneme.environments.sql_tuning.analysis import general
from mneme.environments.sql_tuning.patterns import REMEDIES
from mneme.environments.sql_tuning.tasks import tasks
from mneme.environments.workspace.world import tactics
from mneme.environments.worlds import find_world
from mneme.prompts.learning.compound_learning.task import about
from mneme.rules.learning.compound_learning import claim
from mneme.stores.cards.card import Lesson, Rule

TASKS_PER_SEED = 48
ASKED_FROM = 1_000_000
"""Seeds of the tasks that are asked about: those of the cards are below."""


def lessons_of_worlds(size: int) -> list[Lesson]:
    """Return so many different lessons; a longer list begins with the shorter one."""
    made: dict[str, Lesson] = {}
    for lesson in _all():
        made.setdefault(lesson.text, lesson)
        if len(made) == size:
            break
    return list(made.values())


def _all() -> Iterator[Lesson]:
    for known in tactics().values():
        cases = [_subject(case.text) for case in find_world(known.scope).cases()]
        for condition, pattern, seen in product(known.features, known.patterns, cases):
            yield _lesson(condition, pattern, known.noun, seen, known.scope)
    for seed in count():
        for task in tasks(seed, TASKS_PER_SEED):
            seen = f"{_subject(task.description)} ({seed})"
            conditions = dict.fromkeys(["; ".join(task.features), "; ".join(general(task.features))])
            for condition, pattern in product(conditions, REMEDIES):
                yield _lesson(condition, pattern, "queries", seen, "sql_tuning")


def _subject(text: str) -> str:
    return text.partition(". ")[0].rstrip(".")


def _lesson(condition: str, pattern: str, noun: str, seen: str, scope: str) -> Lesson:
    said = f"{claim(condition, pattern, noun)}. Seen in: {seen}."
    return Lesson(claim=said, rules=[Rule(condition=condition, pattern=pattern)], scope=scope)


def queries(wanted: int) -> list[str]:
    """Return what so many tasks search by: their features, and for some their words as well."""
    asked: list[str] = []
    for seed in count(ASKED_FROM):
        for task in tasks(seed, TASKS_PER_SEED):
            asked.append(about("; ".join(general(task.features)), "queries"))
            asked.append(f"{asked[-1]}: {_subject(task.description)}")
        if len(asked) >= wanted:
            return asked[:wanted]
    raise AssertionError("tasks never end")
