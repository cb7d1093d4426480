"""A planning problem as its task's text describes it: objects, goal, start, and what each action does.

A sentence is the tuple of its words, in small letters; in a description some words are `<parameters>`.
Nothing is known here of any domain: what is not in the text is not known.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

Sentence = tuple[str, ...]
Facts = frozenset[Sentence]
Binding = Mapping[str, str]

FORM = re.compile(
    r"^- (\S+)((?: <[^>]+>)*)\s*$\n((?:^\s+(?:where|needs|makes true|makes untrue): .*\n?)*)", re.M
)
OBJECTS = re.compile(r"^Objects: (.*)$", re.M)
GOAL = re.compile(r"conditions: (.*?)(?:\n|$)")
START = re.compile(r"^At the start: (.*)$", re.M)
KIND = re.compile(r"<([^>]+)> is (.+)")
ARTICLE = re.compile(r"\b(?:an?|the) ")
WORD = re.compile(r"[a-z0-9_][a-z0-9_-]*")
STOP = re.compile(r"\.(?:\s+|$)")


@dataclass(frozen=True)
class Action:
    """What an action needs, makes true and makes untrue; with parameters, or with objects in their place."""

    form: Sentence
    kinds: Mapping[str, frozenset[str]]
    needs: Facts
    adds: Facts
    deletes: Facts

    def of(self, binding: Binding) -> "Action":
        """Return the action with objects in the place of parameters."""
        needs, adds, deletes = (_filled(each, binding) for each in (self.needs, self.adds, self.deletes))
        return Action(tuple(binding.get(word, word) for word in self.form), {}, needs, adds, deletes - adds)

    def after(self, facts: Facts) -> Facts:
        """Return what holds once it is done."""
        return (facts - self.deletes) | self.adds

    def __str__(self) -> str:
        return " ".join(self.form)


@dataclass(frozen=True)
class Manual:
    """What a task's text says."""

    actions: Mapping[str, Action]
    kinds: Mapping[str, str]
    """Each object's kind; empty where the text names none."""
    goal: Facts
    start: Facts

    def actions_in(self, text: str) -> Iterator[Action]:
        """Yield the actions that a text names with all their objects, in order."""
        words = WORD.findall(text.lower())
        for at, word in enumerate(words):
            if action := self.actions.get(word):
                objects = words[at + 1 : at + len(action.form)]
                if len(objects) == len(action.form) - 1 and self.kinds.keys() >= {*objects}:
                    yield action.of(dict(zip(action.form[1:], objects, strict=True)))

    def facts_in(self, text: str) -> Facts:
        """Return the sentences of a text that have a form which the descriptions use."""
        return frozenset(each for each in sentences(text) if self._form(each) in self._forms)

    @cached_property
    def possible(self) -> list[Action]:
        """Return every action with objects for which what no action can change holds at the start."""
        changing = {
            self._form(each) for action in self.actions.values() for each in action.adds | action.deletes
        }
        fixed = [
            frozenset(each for each in action.needs if self._form(each) not in changing)
            for action in self.actions.values()
        ]
        pairs = zip(self.actions.values(), fixed, strict=True)
        return [
            action.of(binding) for action, given in pairs for binding in self._bindings(action, given, {})
        ]

    def _bindings(self, action: Action, given: Facts, bound: Binding) -> Iterator[Binding]:
        """Bind parameter by parameter; a fixed condition is looked up as soon as all of it is bound."""
        filled = _filled(given, bound)
        if any(each not in self.start for each in filled if not any(map(_is_parameter, each))):
            return
        free = [each for each in action.form[1:] if each not in bound]
        if not free:
            yield bound
            return
        wanted = action.kinds.get(free[0])
        for name, kind in self.kinds.items():
            if wanted is None or kind in wanted:
                yield from self._bindings(action, given, {**bound, free[0]: name})

    @cached_property
    def _forms(self) -> set[Sentence]:
        found = (
            each for action in self.actions.values() for each in action.needs | action.adds | action.deletes
        )
        return {self._form(each) for each in found}

    def _form(self, sentence: Sentence) -> Sentence:
        """Return a sentence with a gap for each parameter or object."""
        return tuple("_" if _is_parameter(word) or word in self.kinds else word for word in sentence)


def sentences(text: str) -> list[Sentence]:
    """Cut a text into sentences of words in small letters."""
    return [cut for each in STOP.split(text.strip()) if (cut := tuple(each.lower().split()))]


@lru_cache(maxsize=256)
def read_manual(task: str) -> Manual:
    """Read a task's objects, actions, goal and start."""
    actions = [_action(*found) for found in FORM.findall(f"{task}\n")]
    goal, start, objects = GOAL.search(task), START.search(task), OBJECTS.search(task)
    bare = Manual(
        {each.form[0]: each for each in actions}, _objects(objects[1]) if objects else {}, *[Facts()] * 2
    )
    told = (bare.facts_in(each[1]) if each else Facts() for each in (goal, start))
    return Manual(bare.actions, bare.kinds, *told)


def _action(name: str, parameters: str, described: str) -> Action:
    parts = dict(line.strip().split(": ", 1) for line in described.splitlines() if line.strip())
    needs, adds, deletes = (
        frozenset(sentences(parts.get(each, ""))) for each in ("needs", "makes true", "makes untrue")
    )
    form = (name.lower(), *parameters.lower().split())
    return Action(form, _kinds(parts.get("where", "")), needs, adds, deletes)


def _kinds(where: str) -> dict[str, frozenset[str]]:
    found = (KIND.match(each.strip()) for each in where.lower().rstrip(".").split(";"))
    return {
        f"<{each[1]}>": frozenset(ARTICLE.sub("", kind).strip() for kind in each[2].split(" or "))
        for each in found
        if each
    }


def _objects(line: str) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for group in line.lower().rstrip(".").split(";"):
        names, _, kind = group.partition("(")
        kinds.update(dict.fromkeys((each.strip() for each in names.split(",")), kind.rstrip(") ").strip()))
    return {name: kind for name, kind in kinds.items() if name}


def _filled(forms: Facts, binding: Binding) -> Facts:
    return frozenset(tuple(binding.get(word, word) for word in form) for form in forms)


def _is_parameter(word: str) -> bool:
    return word.startswith("<")
