"""A planning problem as its task's text describes it: objects, goal, start, and what each action does.

A sentence is the tuple of its words, in small letters; in a description some words are `<parameters>`.
Nothing is known here of any domain: what is not in the text is not known.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from mneme.environments.pddl.compiling import GroundAction, Schema

Sentence = tuple[str, ...]
Facts = frozenset[Sentence]

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
class Manual:
    """What a task's text says."""

    actions: Mapping[str, Schema]
    kinds: Mapping[str, str]
    """Each object's kind; empty where the text names none."""
    objects: Mapping[str, Sequence[str]]
    """What may stand in the place of each parameter."""
    goal: Facts
    start: Facts

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
        literals = (each.requires + each.adds + each.deletes for each in self.actions.values())
        forms = {self._form(literal) for part in literals for literal in part}
        return frozenset(each for each in sentences(text) if self._form(each) in forms)

    @cached_property
    def possible(self) -> list[GroundAction]:
        """Return every action with objects for which what no action can change holds at the start."""
        changing = {
            self._form(each) for action in self.actions.values() for each in action.adds + action.deletes
        }
        found: list[GroundAction] = []
        for action in self.actions.values():
            fixed = tuple(each for each in action.requires if self._form(each) not in changing)
            bindable = replace(action, requires=fixed).instances(self.objects, self.start)
            found += [action.ground(each.words[1:]) for each in bindable]
        return found

    def _form(self, sentence: Sentence) -> Sentence:
        """Return a sentence with a gap for each parameter or object."""
        return tuple("_" if word[0] == "<" or word in self.kinds else word for word in sentence)


def sentences(text: str) -> list[Sentence]:
    """Cut a text into sentences of words in small letters."""
    return [cut for each in STOP.split(text.strip()) if (cut := tuple(each.lower().split()))]


@lru_cache(maxsize=256)
def read_manual(task: str) -> Manual:
    """Read a task's objects, actions, goal and start."""
    found = FORM.findall(f"{task}\n")
    goal, start, objects = GOAL.search(task), START.search(task), OBJECTS.search(task)
    kinds = _objects(objects[1]) if objects else {}
    fitting: dict[str, Sequence[str]] = {}
    actions = {each[0].lower(): _action(each[0], each[1], each[2], kinds, fitting) for each in found}
    bare = Manual(actions, kinds, fitting, Facts(), Facts())
    told = (bare.facts_in(each[1]) if each else Facts() for each in (goal, start))
    return Manual(actions, kinds, fitting, *told)


def _action(
    name: str, parameters: str, described: str, kinds: Mapping[str, str], fitting: dict[str, Sequence[str]]
) -> Schema:
    """Read an action; note in `fitting` which objects each of its parameters may be."""
    parts = dict(line.strip().split(": ", 1) for line in described.splitlines() if line.strip())
    needs, adds, deletes = (
        tuple(sentences(parts.get(each, ""))) for each in ("needs", "makes true", "makes untrue")
    )
    names = tuple(parameters.lower().split())
    types, wanted = tuple(f"{name} {each}" for each in names), _kinds(parts.get("where", ""))
    for each, key in zip(names, types, strict=True):
        allowed = wanted.get(each)
        fitting[key] = [thing for thing, kind in kinds.items() if allowed is None or kind in allowed]
    return Schema(name.lower(), names, types, needs, adds, deletes)


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
