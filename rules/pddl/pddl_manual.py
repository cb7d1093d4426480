"""A planning problem as its task's text describes it: objects, goal, start, and what each action does.

A sentence is the tuple of its words, in small letters; in a description some words are `<parameters>`.
Nothing is known here of any domain: what is not in the text is not known.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

from mneme.environments.pddl.compiling import GroundAction, Schema

Sentence = tuple[str, ...]
Facts = frozenset[Sentence]

FORM = re.compile(
    r"^- (\S+)((?: <[^>]+>)*)\s*$\n((?:^\s+(?:where|needs|makes true|makes untrue): .*\n?)*)", re.M
)
OBJECTS = re.compile(r"^Objects: (.*)$", re.M)
GROUP = re.compile(r"([^;()]+)(?:\(([^)]*)\))?")
GOAL = re.compile(r"conditions: (.*?)(?:\n|$)")
START = re.compile(r"^At the start: (.*)$", re.M)
KIND = re.compile(r"(<[^>]+>) is ([^;.]+)")
ARTICLE = re.compile(r"\b(?:an?|the) ")
WORD = re.compile(r"[a-z0-9_][a-z0-9_-]*")
STOP = re.compile(r"\.(?:\s+|$)")


class Manual:
    """What a task's text says."""

    def __init__(self, task: str) -> None:
        groups = GROUP.findall("".join(OBJECTS.findall(task)).lower().rstrip("."))
        self.kinds = {name: kind for names, kind in groups for name in WORD.findall(names)}
        """Each object's kind; empty where the text names none."""
        self.objects: dict[str, Sequence[str]] = {}
        """What may stand in the place of each parameter."""
        self.actions = {each[0]: self._action(*each) for each in FORM.findall(f"{task.lower()}\n")}
        goal, start = GOAL.search(task), START.search(task)
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
        words = WORD.findall(text.lower())
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


read_manual = lru_cache(maxsize=256)(Manual)


def sentences(text: str) -> list[Sentence]:
    """Cut a text into sentences of words in small letters."""
    return [cut for each in STOP.split(text.strip()) if (cut := tuple(each.lower().split()))]
