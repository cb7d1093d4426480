"""How rules discuss: they propose what the task calls for and their context does not show.

An agent by rules knows its field (`design_knowledge.py`) and what its context shows: task, memory,
turns. What has been lost from the context it takes for not said: it proposes it again, or leaves it out of a
summary or of the document. Items are said in one form, `Name (choice) because …. Pros: …. Cons: …`, so that
they can be read back from turns and memories, also where the end of one was cut.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from textwrap import shorten
from typing import NamedTuple

from mneme.prompts.discussion.intrinsic_memory import Speaking
from mneme.rules.discussion.design_knowledge import (
    KNOWLEDGE,
    PLATFORMS,
    Kind,
    is_competent,
    kinds_for,
    parts_of,
    platform_of,
)
from mneme.rules.discussion.memory_rules import CUT, briefer, words

PROPOSAL, SUMMARY, OBJECTION, GAP = "Proposal", "Summary", "Objection", "Gap"
AT_ONCE = 2
"""The most proposals in one turn, and the most answers to others."""
CORE = 4
"""The number of items that an agent proposes unless it is asked for more."""
GAPS = 3
ITEM = re.compile(
    r"^[\s\"\-*•]*(?:([A-Z]\w+): )?([^\W_a-z][\w /&'-]{2,60}?) \(([^()]{1,80})\) because ([^\"]*)"
)
MENTIONED = re.compile(
    r"(?:^|[;:.] )([^\W_a-z][\w /&'-]{2,60}?) \(([^()]{1,80})\) because ([^.;\n\"]*)", re.M
)
PART = re.compile(r"(?:^|[.;] )([A-Z][a-z]+): ")
ASKED = re.compile(r"^\s*[-*•]\s*(\S.+)$|([^.\n]*\b(?:must|should|needs? to|has to|have to)\b[^.\n]*)", re.M)
TOLD_IN = re.compile(r"\[(\d+)\] ")
SAID_IN = re.compile(r"(.*?)(?: \[(\d+)\])?")
"""The number of a turn: before what was said in it, or after what is remembered of it."""
PHRASE = re.compile(r"[,;:.]| and ")
PERSON = re.compile(r"^[^\n]*\(a person\)[^\n]*:\n", re.M)
CLAUSE = re.compile(r"(?<=[.!?;,])\s+|\n|\bbut\b")
REFUSED = re.compile(r"\b(no|without|drop|remove|avoid|leave out|don't|do not|never|nor)\b", re.IGNORECASE)
LIMITED = re.compile(r"\b(only|not|at most|instead of|rather than|no more than)\b|n't\b", re.IGNORECASE)
LACKING = re.compile(r"\b(there (is|are)|ha(s|ve|d)|see|found|find) (still )?no\b|\?\s*$", re.IGNORECASE)
"""A person's clause that misses something wishes for it, whatever `no` stands in it."""
SHORTEST = 90
LONGEST_NAME = 60


@dataclass
class Item:
    """A proposed item, as far as it is still visible in the context."""

    name: str
    choice: str
    because: str
    parts: dict[str, str] = field(default_factory=dict)
    label: str = ""
    turns: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        parts = "".join(f". {name.capitalize()}: {text}" for name, text in self.parts.items())
        return f"{self.name} ({self.choice}) because {self.because}{parts}."


@dataclass(frozen=True)
class View:
    """An agent's context, as the rules read it."""

    duties: str
    task: str
    memory: str
    turns: Sequence[str]
    item: str
    fields: list[str]

    @cached_property
    def visible(self) -> dict[str, Item]:
        """Return the items that memory and turns show, each as it was said last and most fully."""
        remembered = items(self.memory) or mentioned(self.memory)
        found = named([*remembered, *(item for turn in self.turns for item in items(turn))])
        return {name: item for name, item in found.items() if not self.is_refused(item.name)}

    @cached_property
    def summary(self) -> dict[str, Item]:
        """Return the items of the latest summary that is visible."""
        for turn in reversed(self.turns):
            if found := [item for item in items(turn) if item.label == SUMMARY]:
                return named(found)
        return {}

    @cached_property
    def called_for(self) -> list[Kind]:
        """Return what the task calls for, and what a person has wished for since, less what was refused."""
        wishes = "\n".join(self.wishes)
        asked = kinds_for(self.item, f"{self.task}\n{wishes}")
        wished = [kind for kind in asked if words(kind.name) <= words(wishes)]
        known = kinds_for(self.item, self.task) or asked_for(self.task, self.duties)
        return [
            kind
            for kind in [*known, *(kind for kind in wished if kind not in known)]
            if not self.is_refused(kind.name)
        ]

    @cached_property
    def mine(self) -> list[Kind]:
        """Return what this agent proposes: the most specific items of its field, and what it was asked for.

        Of whose field nothing is known, that one stands for what the task demands, or for its own duties.
        """
        own = [kind for kind in self.called_for if is_competent(self.duties, kind)] or self._unknown_field
        wished = words("\n".join(self.wishes))
        own = sorted(own, key=lambda kind: (not words(kind.name) <= wished, not kind.specific))
        asked = "\n".join([*self.gaps, *self.wishes])
        core = CORE if self.knows_its_field else len(own)
        return own[:core] + [kind for kind in own[core:] if words(kind.name) <= words(asked)]

    @cached_property
    def knows_its_field(self) -> bool:
        """Say whether rules know this agent's field: only then is finding nothing in it a finding."""
        return any(is_competent(self.duties, kind) for kind in KNOWLEDGE.get(self.item.lower(), ()))

    @cached_property
    def _unknown_field(self) -> list[Kind]:
        if self.knows_its_field:
            return []
        found = asked_for(self.task, self.duties) or duties_as_kinds(self.duties)
        return [kind for kind in found if not self.is_refused(kind.name)]

    @cached_property
    def clauses(self) -> list[str]:
        """Return what persons have said, clause by clause."""
        said = (PERSON.sub("", turn) for turn in self.turns if PERSON.match(turn))
        return [clause.strip() for text in said for clause in CLAUSE.split(text) if clause.strip()]

    @cached_property
    def wishes(self) -> list[str]:
        """Return the clauses of persons that neither refuse nor limit what they name."""
        return [
            clause
            for clause in self.clauses
            if LACKING.search(clause) or not (REFUSED.search(clause) or LIMITED.search(clause))
        ]

    def is_refused(self, name: str) -> bool:
        """Say whether the last clause of a person that names something refuses it."""
        named_in = [clause for clause in self.clauses if words(name) and words(name) <= plain_words(clause)]
        return bool(named_in) and bool(REFUSED.search(named_in[-1])) and not LACKING.search(named_in[-1])

    @cached_property
    def gaps(self) -> list[str]:
        return [line for turn in self.turns for line in turn.splitlines() if line.startswith(GAP)]

    def proposal(self, kind: Kind) -> Item:
        """Say a kind of item as a proposal for this task."""
        parts = dict(parts_of(kind, self.task, self.fields))
        because = kind.because_of(self.task)
        return Item(kind.name, kind.choice(platform_of(self.task)), because, parts, PROPOSAL)


def asked_for(task: str, duties: str) -> list[Kind]:
    """Take a task's demands in an unknown field for kinds of items: those in a role's words first."""
    demands = [" ".join((hit[1] or hit[2]).split()).strip(" .:;-*") for hit in ASKED.finditer(task)]
    made = [_demand(each, duties) for each in dict.fromkeys(demands)]
    return sorted(made, key=lambda each: not each.field)


def duties_as_kinds(duties: str) -> list[Kind]:
    """Take each phrase of a role's duties for a kind of item: where the task itself demands nothing."""
    phrases = (" ".join(each.split()) for each in PHRASE.split(duties))
    return [
        Kind(_short(each), each, {"": "to be seen to"}, f"it is among my duties: {each[:160]}", {})
        for each in dict.fromkeys(phrases)
        if len(_short(each)) > 2
    ]


def plain_words(clause: str) -> frozenset[str]:
    """Return the words of a clause, each by itself, whatever `not` stands before it."""
    return words(re.sub(r"\bnot\b", " ", clause, flags=re.IGNORECASE))


def _short(text: str) -> str:
    name = shorten(" ".join(re.findall(r"[\w'-]+", text)), LONGEST_NAME, placeholder="")
    return name[:1].upper() + name[1:]


def _demand(text: str, duties: str) -> Kind:
    shared = " ".join(sorted(words(text) & words(duties)))
    return Kind(_short(text), shared, {"": "to be met"}, f"the task asks for it: {text[:160]}", {})


def items(text: str) -> list[Item]:
    """Read the items that a text names, in order."""
    told = TOLD_IN.match(text)
    return [
        _item(hit, [int(number) for number in (said or "", told and told[1]) if number])
        for line, said in (SAID_IN.fullmatch(each).groups() for each in text.splitlines())  # type: ignore[union-attr]
        if (hit := ITEM.match(line))
    ]


def mentioned(text: str) -> list[Item]:
    """Read the items that stand in prose, such as another memory's summary: no more than their reasons."""
    return [
        Item(hit[1].strip(), hit[2].strip(), hit[3].strip(f" .;{CUT}")) for hit in MENTIONED.finditer(text)
    ]


def _item(hit: re.Match[str], turns: list[int]) -> Item:
    because, *rest = PART.split(hit[4].rstrip(f' .,{CUT}"'))
    parts = {name.lower(): text.strip(f" .;{CUT}") for name, text in zip(rest[::2], rest[1::2], strict=True)}
    return Item(
        hit[2].strip(), hit[3].strip(), because.strip(f" .;{CUT}"), _filled(parts), hit[1] or "", turns
    )


def _filled(parts: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in parts.items() if text}


def named(found: Iterable[Item]) -> dict[str, Item]:
    """Return items by name: the last said counts, with the parts that only an earlier saying still has."""
    by_name: dict[str, Item] = {}
    for item in found:
        key = item.name.lower()
        older = by_name.pop(key, None)
        if older and older.choice == item.choice:
            parts = {**older.parts, **item.parts} | _longer(older.parts, item.parts)
            turns = sorted({*older.turns, *item.turns})
            item = Item(item.name, item.choice, item.because or older.because, parts, item.label, turns)  # noqa: PLW2901
        by_name[key] = item
    return by_name


def _longer(one: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    return {name: max(one[name], other[name], key=len) for name in one.keys() & other.keys()}


class Said(NamedTuple):
    """A worker's turn by rules: why, what, whether it brings something new or objects, whether it accepts."""

    reasoning: str
    message: str
    changes: bool
    accept: bool


def view_of(given: Speaking) -> View:
    """Return what an agent by rules makes of what it is shown."""
    parts = [each.strip() for each in given.fields.split(",")]
    return View(given.duties, given.task, given.memory, given.turns.root, given.item, parts)


def contribution(view: View, room: int) -> Said:
    """Propose missing items, repeat lost ones, object; accept no empty solution."""
    mine, visible = view.mine, view.visible
    missing = [kind for kind in mine if kind.name.lower() not in visible]
    lost = _left_out(view)
    said = [view.proposal(kind) for kind in missing[:AT_ONCE]] or lost[:AT_ONCE]
    objections = _objections(view)
    accept = (
        len(missing) <= AT_ONCE and not (lost or objections) and bool(visible or said or view.knows_its_field)
    )
    lines = [f"{PROPOSAL}: {item}" for item in said] + [f"{OBJECTION}: {each}" for each in objections]
    lines += [*_weighed(missing[:AT_ONCE], view.task), *_reactions(view)]
    lines += ["Accepted: I accept the solution with what is said here."] if accept else []
    reasons = [
        f"{len(missing)} of my {len(mine)} items are missing",
        f"{len(lost)} were left out of the summary",
    ]
    message = fitted(lines or ["I have nothing to add yet."], room)
    return Said(f"{'; '.join(reasons)}.", message, bool(missing or objections), accept)


def _weighed(proposed: Sequence[Kind], task: str) -> list[str]:
    """Say which alternative to each proposal was weighed."""
    platform = platform_of(task)
    return [
        f"Alternative: {kind.name}: {other} was weighed; {kind.choice(platform)} fits {platform}."
        for kind in proposed
        if (other := kind.alternative(platform))
    ]


def _reactions(view: View) -> list[str]:
    """Answer the newest proposals of other fields, once each as far as this agent remembers."""
    own = {kind.name.lower() for kind in view.mine}
    told = [item for turn in view.turns for item in items(turn) if item.label == PROPOSAL]
    others = [item for name, item in named(told).items() if name not in own]
    seen = "\n".join([view.memory, *view.turns])
    new = [item for item in others if f"{item.name}: {item.choice}" not in seen]
    return [_reaction(item, "cons" in view.fields) for item in new[-AT_ONCE:]]


def _reaction(item: Item, has_cons: bool) -> str:
    if not has_cons:
        return f"Agreed: {item.name}: {item.choice} is right for my field too."
    if against := item.parts.get("cons", "").partition(";")[0]:
        return f"Agreed: {item.name}: {item.choice} suits my field; its drawback: {against}."
    return f"Question: {item.name}: {item.choice} is named, but what speaks against it?"


def _left_out(view: View) -> list[Item]:
    """Return what this agent remembers having proposed, and the latest summary does not have."""
    summary = view.summary
    known = {kind.name.lower() for kind in view.mine}
    return [item for name, item in view.visible.items() if summary and name in known and name not in summary]


def _objections(view: View) -> list[str]:
    """Object to a choice that belongs to another platform than the task's."""
    wanted = platform_of(view.task)
    return [
        f"{item.name}: {item.choice} is not of {wanted}, which the task names."
        for name, item in view.visible.items()
        if name in {kind.name.lower() for kind in view.mine}
        and (theirs := platform_of(item.choice)) != wanted
        and re.search(PLATFORMS[theirs], item.choice, re.IGNORECASE)
    ]


def delegation(view: View, outstanding: Sequence[str], next_speaker: str) -> tuple[str, str, bool]:
    """Ask for the document once all have accepted; otherwise choose the next speaker and name open points."""
    if not outstanding:
        return "All have accepted.", "All have accepted: let the document be written.", True
    open_ = [
        line for turn in view.turns[-6:] for line in turn.splitlines() if line.startswith((OBJECTION, GAP))
    ]
    asked = f" Please look at this: {open_[-1]}" if open_ else ""
    said = f"{next_speaker}, what does your field need here, and do you accept what is proposed?{asked}"
    return f"Outstanding: {', '.join(outstanding)}.", said, False


def integration(view: View, room: int) -> tuple[str, str]:
    """Join all that is visible into one list."""
    found = list(view.visible.values())
    lines = [f"{SUMMARY}: {item}" for item in found]
    return f"{len(found)} items are visible.", fitted(lines or ["Nothing has been proposed yet."], room)


def answered(view: View, issues: Sequence[str], message: str) -> list[int]:
    """Return the numbers of the open issues that ask for an item which is said now, or visible."""
    said = [*view.visible.values(), *items(message)]
    return [
        number
        for number, issue in enumerate(issues)
        if issue.endswith("open)") and any(words(item.name) <= words(issue) for item in said)
    ]


def evaluation(view: View, room: int) -> tuple[str, str, list[str]]:
    """Name what the task calls for and nobody proposed, and what is said without its parts.

    Only what nobody proposed is a gap that somebody must answer. Where the team's items are of a field that
    rules do not know, they cannot say what is missing.
    """
    visible = view.summary or view.visible
    known = {kind.name.lower() for kind in KNOWLEDGE.get(view.item.lower(), ())}
    is_known_field = not visible or bool(known & visible.keys())
    called = [kind for kind in view.called_for if kind.specific and kind.name.lower() not in visible]
    called = called if is_known_field else []
    gaps = [f"no {view.item.lower()} for {kind.name}" for kind in called[:GAPS]]
    bare = [f"{item.name} lacks {_lacking(item, view)}" for item in visible.values() if _lacking(item, view)]
    lines = [f"{GAP}: {each}." for each in gaps] + [f"Weak: {each}." for each in bare[:GAPS]]
    lines = lines or ["Strength: nothing is missing that I know of."]
    return f"{len(visible)} items, {len(called)} gaps.", fitted(lines, room), [f"{each}." for each in gaps]


def _lacking(item: Item, view: View) -> str:
    return ", ".join(name for name in view.fields if name not in item.parts)


def fitted(lines: Sequence[str], room: int) -> str:
    """Join lines, the longest said ever more briefly until all fit; what cannot even so is left out."""
    kept = list(lines)
    while sum(map(len, kept)) + len(kept) > room:
        longest = max(range(len(kept)), key=lambda at: len(kept[at]))
        if len(kept[longest]) <= SHORTEST:
            kept.pop()
        else:
            kept[longest] = briefer(kept[longest], max(SHORTEST, len(kept[longest]) * 4 // 5))
    return "\n".join(kept)
