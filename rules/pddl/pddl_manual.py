"""Actions as a reader finds them described in a task: what they need, what they make true and untrue.

A sentence is the tuple of its words, in small letters; in a description some words are `<parameters>`.
Nothing is known here of any domain: what is not in the text is not known.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

Sentence = tuple[str, ...]
Binding = dict[str, str]

FORM = re.compile(r"^- (\S+)((?: <[^>]+>)*)\s*$")
LABEL = re.compile(r"^\s+(where|needs|makes true|makes untrue): (.*)$")
OBJECTS = re.compile(r"^Objects: (.*)$", re.MULTILINE)
KIND = re.compile(r"<([^>]+)> is (.+)")
ARTICLE = re.compile(r"\b(?:an?|the) ")
WORD = re.compile(r"[a-z0-9_][a-z0-9_-]*")
STOP = re.compile(r"\.(?:\s+|$)")


class Act(NamedTuple):
    """An action with its objects."""

    name: str
    things: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.name, *self.things))


@dataclass(frozen=True)
class Doing:
    """How one action is described."""

    name: str
    parameters: tuple[str, ...]
    kinds: dict[str, frozenset[str]] = field(default_factory=dict)
    needs: tuple[Sentence, ...] = ()
    adds: tuple[Sentence, ...] = ()
    deletes: tuple[Sentence, ...] = ()

    def act(self, binding: Binding) -> Act:
        """Return the action with its objects; a parameter that is not bound stays as it is."""
        return Act(self.name, tuple(binding.get(each, each) for each in self.parameters))


@dataclass(frozen=True)
class Manual:
    """What a task's text says of actions and objects."""

    doings: dict[str, Doing]
    kinds: dict[str, str]
    """Each object's kind; empty where the text names none."""

    def may_be(self, doing: Doing, parameter: str, thing: str) -> bool:
        """Say whether an object is of a kind that a parameter takes, as far as the text tells."""
        wanted = doing.kinds.get(parameter)
        return wanted is None or self.kinds.get(thing, "") in wanted

    def bound(self, act: Act) -> tuple[Doing, Binding] | None:
        """Return an action's description and what its parameters stand for."""
        doing = self.doings.get(act.name)
        if doing is None or len(doing.parameters) != len(act.things):
            return None
        return doing, dict(zip(doing.parameters, act.things, strict=True))

    def effects(self, act: Act) -> tuple[frozenset[Sentence], frozenset[Sentence]]:
        """Return what an action makes true and untrue, by its description."""
        found = self.bound(act)
        if found is None:
            return frozenset(), frozenset()
        doing, binding = found
        adds = frozenset(filled(each, binding) for each in doing.adds)
        return adds, frozenset(filled(each, binding) for each in doing.deletes) - adds

    def needed(self, act: Act) -> frozenset[Sentence]:
        """Return what an action needs, by its description."""
        found = self.bound(act)
        return frozenset(filled(each, found[1]) for each in found[0].needs) if found else frozenset()

    def acts_in(self, text: str) -> list[Act]:
        """Return the actions that a text names with all their objects, in order."""
        words = WORD.findall(text.lower())
        return [act for at, word in enumerate(words) if word in self.doings for act in self._act(words, at)]

    def act_of_another(self, text: str) -> Act | None:
        """Return the action that a line of another task tells, whose objects are not known here."""
        name, *things = WORD.findall(text.lower()) or [""]
        doing = self.doings.get(name)
        return Act(name, tuple(things)) if doing and len(doing.parameters) == len(things) else None

    def _act(self, words: Sequence[str], at: int) -> Iterator[Act]:
        wanted = len(self.doings[words[at]].parameters)
        things = tuple(words[at + 1 : at + 1 + wanted])
        if len(things) == wanted and all(each in self.kinds for each in things):
            yield Act(words[at], things)

    def names_in(self, text: str) -> list[str]:
        """Return the names of actions in a text, in order."""
        return [word for word in WORD.findall(text.lower()) if word in self.doings]

    def facts_in(self, text: str) -> list[Sentence]:
        """Return the sentences of a text that have a form which the descriptions use."""
        return [each for each in sentences(text) if self.knows(each)]

    def knows(self, sentence: Sentence) -> bool:
        """Say whether a sentence has the form of one in the descriptions."""
        return any(unified(form, sentence, {}) is not None for form in _forms(self, len(sentence)))


def _forms(manual: Manual, length: int) -> list[Sentence]:
    found: dict[Sentence, None] = {}
    for doing in manual.doings.values():
        found.update(dict.fromkeys((*doing.needs, *doing.adds, *doing.deletes)))
    return [each for each in found if len(each) == length]


def sentences(text: str) -> list[Sentence]:
    """Cut a text into sentences of words in small letters."""
    cut = (tuple(each.lower().split()) for each in STOP.split(text.strip()))
    return [each for each in cut if each]


def said(sentence: Sentence) -> str:
    """Write a sentence as observations do."""
    words = " ".join(sentence)
    return f"{words[:1].upper()}{words[1:]}"


@lru_cache(maxsize=256)
def read_manual(task: str) -> Manual:
    """Read a task's descriptions of actions and its objects."""
    doings: dict[str, Doing] = {}
    lines: list[str] = []
    for line in [*task.splitlines(), "-"]:
        if LABEL.match(line) and lines:
            lines.append(line)
            continue
        if lines and (doing := _doing(lines)):
            doings[doing.name] = doing
        lines = [line] if FORM.match(line) else []
    found = OBJECTS.search(task)
    return Manual(doings, _objects(found[1]) if found else {})


def _doing(lines: Sequence[str]) -> Doing | None:
    head = FORM.match(lines[0])
    if head is None:
        return None
    parts = {found[1]: found[2] for found in map(LABEL.match, lines[1:]) if found}
    told = [tuple(sentences(parts.get(each, ""))) for each in ("needs", "makes true", "makes untrue")]
    parameters = tuple(each.lower() for each in head[2].split())
    return Doing(head[1].lower(), parameters, _kinds(parts.get("where", "")), *told)


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


def filled(form: Sentence, binding: Binding) -> Sentence:
    """Put objects in the place of parameters."""
    return tuple(binding.get(word, word) for word in form)


def unified(form: Sentence, sentence: Sentence, binding: Binding) -> Binding | None:
    """Return the binding that makes a form say this sentence; None where there is none."""
    if len(form) != len(sentence):
        return None
    bound = binding
    for word, thing in zip(form, sentence, strict=True):
        if not is_parameter(word):
            if word != thing:
                return None
        elif (known := bound.get(word)) is None:
            bound = {**bound, word: thing}
        elif known != thing:
            return None
    return bound


def is_parameter(word: str) -> bool:
    return word.startswith("<")


def is_open(sentence: Iterable[str]) -> bool:
    """Say whether a sentence still has a parameter in it."""
    return any(map(is_parameter, sentence))
