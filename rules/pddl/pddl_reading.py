"""What a solver gathers from its context: what holds, what was tried, what is still to be reached.

Everything comes from the words of the task, of the memory and of the turns that are visible. What is not
there is not known: without the first turns, what they changed is believed to be as it was at the start.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mneme.environments.turns import Turn, read_turns, split_turns
from mneme.rules.pddl.pddl_manual import Act, Manual, Sentence, is_parameter, read_manual, unified

Facts = frozenset[Sentence]

GOAL = re.compile(r"conditions: (.*?)(?:\n|$)")
START = re.compile(r"^At the start: (.*)$", re.MULTILINE)
EARLIER = re.compile(r"^An earlier task that (succeeded|failed)\. Its goal: ", re.MULTILINE)
STEP = re.compile(r"^\d+\. (.*)$", re.MULTILINE)
FAILED = re.compile(r"fail|without effect|not valid", re.IGNORECASE)
WANTED = re.compile(r"\b(?:open|next|goal|plan|subgoal|wanted)\b", re.IGNORECASE)
THOUGHT = re.compile(r"(?:;|think:|subgoals?:)\s*", re.IGNORECASE)
NEEDED = re.compile(r"needed for:", re.IGNORECASE)
IN_ORDER = re.compile(r"in order", re.IGNORECASE)
LISTED = "valid actions: "
FEW = 2


@dataclass
class Example:
    """An earlier task that succeeded, as it was told."""

    goals: list[Sentence]
    acts: list[Act]


@dataclass
class Reading:
    """What was gathered."""

    manual: Manual
    goals: list[Sentence]
    facts: Facts
    done: list[Act] = field(default_factory=list)
    """Actions that worked, in order."""
    failed: list[Act] = field(default_factory=list)
    """Actions without effect since something last worked, and those that failed again and again."""
    led_back: set[Act] = field(default_factory=set)
    """Actions that were taken before, when things stood as they do now."""
    noted: list[tuple[Sentence, Facts]] = field(default_factory=list)
    """What somebody noted as still to be reached, newest first, and what for."""
    examples: list[Example] = field(default_factory=list)
    orders: list[list[str]] = field(default_factory=list)
    """Orders of actions that insights tell."""
    listed: list[Act] = field(default_factory=list)
    """The valid actions that were listed last, if nothing was done since."""

    @property
    def subgoals(self) -> list[Sentence]:
        """Return the noted subgoals that are not reached yet, nor what they were needed for."""
        return [each for each, served in self.noted if each not in self.facts and not served & self.facts]


def read(task: str, memory: str, turns: str) -> Reading:
    """Gather what the three texts say."""
    manual = read_manual(task)
    goal, start = GOAL.search(task), START.search(task)
    reading = Reading(
        manual=manual,
        goals=manual.facts_in(goal[1]) if goal else [],
        facts=frozenset(manual.facts_in(start[1])) if start else frozenset(),
    )
    _read_memory(reading, memory)
    _read_turns(reading, read_turns(split_turns(turns)))
    return reading


def _read_turns(reading: Reading, turns: Sequence[Turn]) -> None:
    """Go through the turns in order, keeping up with what they changed."""
    acted: list[tuple[Act, Facts | None]] = []
    failures: list[Act] = []
    for turn in turns:
        acts = reading.manual.acts_in(turn.output)[:1]
        if turn.output.lower().startswith("think"):
            _note_subgoals(reading, turn.output)
        elif LISTED in turn.outcome.lower():
            reading.listed = reading.manual.acts_in(turn.outcome)
        elif turn.failed:
            failures += acts
            reading.failed += acts
        else:
            is_whole = _see(reading, acts, turn.outcome)
            acted += [(act, reading.facts if is_whole else None) for act in acts]
    reading.failed += [act for act in failures if failures.count(act) >= FEW]
    stood = _stood(reading.manual, acted, reading.facts)
    reading.led_back = {act for act, before in stood if before == reading.facts}


def _stood(
    manual: Manual, acted: Sequence[tuple[Act, Facts | None]], now: Facts
) -> Iterator[tuple[Act, Facts]]:
    """Yield each action, the last one first, with how things stood before it, going back from now.

    What a memory holds is of now: going on from it, past turns would seem to have begun where they ended.
    """
    for act, seen in reversed(acted):
        adds, deletes = manual.effects(act)
        now = ((now if seen is None else seen) - adds) | deletes | manual.needed(act)
        yield act, now


def _see(reading: Reading, acts: Sequence[Act], outcome: str) -> bool:
    """Take in what a turn that worked has changed, and what was seen after it; say whether that was all."""
    for act in acts:
        _did(reading, act)
    seen = frozenset(reading.manual.facts_in(outcome))
    adds = frozenset[Sentence]().union(*(reading.manual.effects(act)[0] for act in acts))
    is_whole = bool(seen - adds)  # more is shown than what changed
    reading.facts = seen if is_whole else reading.facts | seen
    reading.failed, reading.listed = [], []
    return is_whole


def _did(reading: Reading, act: Act) -> None:
    adds, deletes = reading.manual.effects(act)
    reading.facts = (reading.facts - deletes) | adds
    reading.done.append(act)


def _note_subgoals(reading: Reading, text: str) -> None:
    for thought in filter(str.strip, THOUGHT.split(text)):
        wanted, *served = (reading.manual.facts_in(each) for each in NEEDED.split(thought)[:2])
        serves = frozenset(served[0] if served else ())
        reading.noted[:0] = [(each, serves) for each in wanted]


def _read_memory(reading: Reading, memory: str) -> None:
    """Read notes, slot by slot or line by line, and the earlier tasks that are told."""
    own, *earlier = _parts(memory)
    for succeeded, told in earlier:
        if succeeded:
            reading.examples += _examples(reading.manual, told)
    notes = list(_notes(own[1]))
    for label, note in notes:
        if not _is_no_fact(label, note):
            _believe_note(reading, label, note)
    for label, note in notes:
        _read_note(reading, label, note)


def _parts(memory: str) -> list[tuple[bool, str]]:
    starts = [*EARLIER.finditer(memory)]
    ends = [*(each.start() for each in starts), len(memory)][1:]
    own = memory[: starts[0].start()] if starts else memory
    told = [
        (each[1] == "succeeded", memory[each.end() : end]) for each, end in zip(starts, ends, strict=True)
    ]
    return [(False, own), *told]


def _examples(manual: Manual, told: str) -> Iterator[Example]:
    """Read the goal and the actions that worked, from turns or from numbered steps."""
    head, _, body = told.partition("\n")
    goal = GOAL.search(f"{head}\n")
    turns = [turn.output for turn in read_turns(split_turns(body)) if turn.worked]
    acts = [act for act in map(manual.act_of_another, turns or STEP.findall(body)) if act]
    if acts:
        yield Example(manual.facts_in(goal[1] if goal else head), acts)


def _notes(text: str) -> Iterator[tuple[str, str]]:
    """Yield each note with its label: the slots of structured memory, or lines with a heading."""
    try:
        slots = json.loads(text)
    except json.JSONDecodeError:
        slots = None
    if isinstance(slots, Mapping):
        yield from _slots(slots, "")
        return
    for line in filter(str.strip, text.splitlines()):
        label, colon, note = line.partition(": ")
        yield (label, note) if colon and not line.startswith("- ") else ("", line)


def _slots(slots: Mapping[str, Any], above: str) -> Iterator[tuple[str, str]]:
    for name, value in slots.items():
        label = f"{above} {name.replace('_', ' ')}".strip()
        if isinstance(value, Mapping):
            yield from _slots(value, label)
            continue
        for note in value if isinstance(value, list) else [value]:
            yield label, str(note)


def _is_no_fact(label: str, note: str) -> bool:
    """Say whether a note tells of what failed, or of what is or was wanted."""
    return bool(FAILED.search(f"{label} {note}") or WANTED.search(label))


def _believe_note(reading: Reading, label: str, note: str) -> None:
    """Take a noted fact for true, and what it rules out by the descriptions for untrue."""
    told = reading.manual.facts_in(_unlabelled(note))
    for fact in told:
        reading.facts = frozenset(
            each for each in reading.facts if not _rules_out(reading.manual, fact, each)
        )
        reading.facts |= {fact}


def _unlabelled(note: str) -> str:
    label, colon, rest = note.partition(": ")
    return rest if colon and "." not in label else note


def _rules_out(manual: Manual, fact: Sentence, other: Sentence) -> bool:
    """Say whether an action that makes one true makes the other untrue, about the same thing."""
    for doing in manual.doings.values():
        for form in doing.adds:
            binding = unified(form, fact, {})
            if not binding or not all(manual.may_be(doing, each, thing) for each, thing in binding.items()):
                continue
            if any(_meets(each, other, binding) for each in doing.deletes):
                return True
    return False


def _meets(form: Sentence, other: Sentence, binding: Mapping[str, str]) -> bool:
    shared = any(is_parameter(word) and word in binding for word in form)
    return shared and unified(form, other, dict(binding)) is not None


def _read_note(reading: Reading, label: str, note: str) -> None:
    """Read the actions and the subgoals that a note names."""
    acts = reading.manual.acts_in(note)
    names = reading.manual.names_in(note)
    if FAILED.search(f"{label} {note}"):
        reading.failed += acts
    elif WANTED.search(label):
        _note_subgoals(reading, note)
    elif acts and IN_ORDER.search(label):
        for act in acts:
            _did(reading, act)
    elif acts:
        reading.done += acts
    elif len(names) >= FEW:
        reading.orders.append(names)
