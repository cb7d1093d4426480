"""What rules can draw from the courses of tasks: likeness, phases, failures and insights."""

import re
from collections import Counter
from collections.abc import Sequence
from textwrap import shorten
from typing import NamedTuple

from mneme.environments.turns import Turn

LONG_COURSE = 30
LAST = 1000
ROOM = 1500
MOST = 4000
"""Characters of a summary where nothing bounds it, of which so many are for each part."""
BRIEF = 160
KIND_ROOM, ORDER_ROOM = 280, 280
SAME = 0.8
FEWEST_REPEATS = 2
MOST_CHANGES = 8
STOP = frozenset(
    re.findall(
        r"\w+", "a an and are be by following for conditions goal in is it of on or satisfy the to with"
    )
)
DONE = re.compile(r"^Done, in order: (.*)$", re.MULTILINE)
EFFECTLESS = re.compile(r"^Without effect: (.*)$", re.MULTILINE)
OPEN = re.compile(r"^Open: (.*)$", re.MULTILINE)
SEEN = re.compile(r"^Seen: (.*)$", re.MULTILINE)
NOT_AGAIN = (
    "Do not repeat an action that had no effect, or that only undoes the one before: find out which of its "
    "conditions is missing, and do what makes that true first."
)
ORDER = re.compile(r"^For goals such as '(?P<kind>[^']*)': (?P<order>.*)\.$")
CONDITION = re.compile(r"(?:conditions?:|goal:)\s*(.*)", re.IGNORECASE | re.DOTALL)


class Change(NamedTuple):
    """One operation on a list of rules."""

    reason: str
    kind: str
    rule: int
    text: str


def likeness(one: str, other: str) -> float:
    """Return the share of words that two texts have in common; numbers within names do not count."""
    first, second = _kinds(one), _kinds(other)
    return len(first & second) / len(first | second) if first | second else 0.0


def _kinds(text: str) -> set[str]:
    words = re.findall(r"[a-z][a-z-]*", text.lower())
    return {word for word in words if word not in STOP}


def phase(before: str, turns: Sequence[Turn], limit: int = MOST) -> str:
    """Sum up a phase: what was done in order, without effect, open, and seen; of each the newest has room."""
    done = _listed(DONE, before) + [brief(turn.output) for turn in turns if turn.worked]
    failed = _listed(EFFECTLESS, before) + [brief(turn.output) for turn in turns if turn.failed]
    thoughts = _listed(OPEN, before) + [brief(turn.thought) for turn in turns if turn.thought]
    outcomes = [turn.outcome for turn in turns if turn.worked and turn.outcome]
    seen = _listed(SEEN, before) + [_within_one_line(each) for each in outcomes if len(each) <= BRIEF]
    share = limit / MOST
    parts = (
        ("Done, in order", _latest(done, round(ROOM * share))),
        ("Without effect", _latest(failed, round(ROOM * share) // 4)),
        ("Open", _latest(thoughts, round(ROOM * share) // 4)),
        ("Seen", _latest(list(dict.fromkeys(seen)), round(ROOM * share) // 4)),
        ("Last seen", outcomes[-1][: round(LAST * share)] if outcomes else ""),
    )
    told = "\n".join(f"{name}: {told}" for name, told in parts if told) or "Nothing was done yet."
    return told[:limit]


def _within_one_line(text: str) -> str:
    return " ".join(text.replace(";", ",").split())


def _listed(pattern: re.Pattern[str], text: str) -> list[str]:
    found = pattern.search(text)
    return found[1].split("; ") if found else []


def _latest(said: Sequence[str], room: int) -> str:
    """Join the latest of what was said, as much of it as there is room for, in order."""
    kept: list[str] = []
    for each in reversed(list(said)):
        room -= len(each) + 2
        if room < 0:
            break
        kept.insert(0, each)
    return "; ".join(kept)


def brief(text: str) -> str:
    """Return a text, or where it is long its beginning, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= BRIEF else f"{line[:BRIEF].rpartition(' ')[0]} …"


def failure(turns: Sequence[Turn]) -> str:
    """Say what was repeated most: something without effect, else something that was done and undone."""
    effectless = Counter(brief(turn.output) for turn in turns if turn.failed).most_common(1)
    if effectless and effectless[0][1] >= FEWEST_REPEATS:
        return f"'{effectless[0][0]}' was tried {effectless[0][1]} times, though it had no effect."
    repeated = Counter(brief(turn.output) for turn in turns).most_common(1)
    if repeated and repeated[0][1] >= FEWEST_REPEATS:
        return f"'{repeated[0][0]}' was done {repeated[0][1]} times: what it did was undone again and again."
    return f"The {len(turns)} steps that there were went to parts of the goal: its order was too long a way."


def revised(rules: Sequence[str], succeeded: Sequence[str], failed: Sequence[str], most: int) -> list[Change]:
    """Return the changes that the trials suggest, a rule at most once."""
    wanted = list(dict.fromkeys(filter(None, map(_order, succeeded))))
    changes = [_towards(rules, text) for text in wanted]
    if failed:
        changes.append(_towards(rules, NOT_AGAIN))
    room = most - len(rules)
    return _once(_making_room(changes, rules, room))[:MOST_CHANGES]


def _order(trial: str) -> str:
    """Say in which order a success used its actions, for goals of its kind."""
    steps = [step.strip() for step in _after(trial, "Key steps:").split(";") if step.strip()]
    if not steps:
        return ""
    verbs = list(dict.fromkeys(step.split()[0] for step in steps))
    things = {word for step in steps for word in step.split()[1:]}
    kind = shorten(_kind_of_goal(_after(trial, "Goal:"), things), KIND_ROOM, placeholder=" …")
    return f"For goals such as '{kind}': {shorten(', then '.join(verbs), ORDER_ROOM, placeholder=' …')}."


def _after(text: str, heading: str) -> str:
    lines = (line for line in text.splitlines() if line.startswith(heading))
    return next(lines, "").removeprefix(heading).strip()


def _kind_of_goal(goal: str, things: set[str]) -> str:
    """Return the goal's conditions with `…` for the things in them, each form once."""
    found = CONDITION.search(goal)
    conditions = re.split(r",\s*|\.\s*", (found[1] if found else goal).strip().rstrip("."))
    forms = [" ".join("…" if word in things else word for word in each.split()) for each in conditions]
    return ", ".join(sorted(set(filter(None, forms)))).replace("'", "")


def _towards(rules: Sequence[str], text: str) -> Change:
    """Return the operation that makes the rules say this."""
    if text in rules:
        return Change("These trials bear it out.", "AGREE", rules.index(text), "")
    new = ORDER.match(text)
    for number, rule in enumerate(rules):
        old = ORDER.match(rule)
        if new and old and old["kind"] == new["kind"]:
            return _shorter(number, old["order"], new["order"], text)
    return Change("No rule says this yet.", "ADD", -1, text)


def _shorter(number: int, old: str, new: str, text: str) -> Change:
    if new.count("then") < old.count("then"):
        return Change("It was done with fewer kinds of action.", "EDIT", number, text)
    return Change("It was done, if in another order.", "AGREE", number, "")


def _making_room(changes: Sequence[Change], rules: Sequence[str], room: int) -> list[Change]:
    """Take the last rules out, which are the weakest, where there is no room for new ones."""
    touched = {change.rule for change in changes}
    spare = [number for number in reversed(range(len(rules))) if number not in touched]
    missing = max(0, sum(change.kind == "ADD" for change in changes) - room)
    gone = [
        Change("The list is full, and others are better.", "REMOVE", each, "") for each in spare[:missing]
    ]
    return [*gone, *changes]


def _once(changes: Sequence[Change]) -> list[Change]:
    seen: dict[tuple[int, str], Change] = {}
    for change in changes:
        seen.setdefault((change.rule, change.text if change.rule < 0 else ""), change)
    return list(seen.values())


def merged(rules: Sequence[str]) -> list[str]:
    """Return the rules without those that another one says, too."""
    kept: list[str] = []
    for rule in sorted(rules, key=len, reverse=True):
        if not any(_says(other, rule) for other in kept):
            kept.append(rule)
    return [rule for rule in rules if rule in kept]


def _says(rule: str, other: str) -> bool:
    words = _kinds(other)
    return rule == other or (
        bool(words) and len(words & _kinds(rule)) >= SAME * len(words) and not _orders(rule, other)
    )


def _orders(rule: str, other: str) -> bool:
    """Say whether both tell an order of actions, where other words matter than those they share."""
    return bool(ORDER.match(rule) and ORDER.match(other))


def key_turns(turns: Sequence[Turn]) -> list[int]:
    """Return the places of the turns that led on: without effectless ones and without ways back.

    A way back is what lies between two turns after which the same was seen, if what was seen is more
    than a few words.
    """
    kept: list[int] = []
    for place, turn in enumerate(turns):
        if not turn.worked:
            continue
        seen = [at for at, earlier in enumerate(kept) if _same_sight(turns[earlier], turn)]
        kept = kept[: seen[-1] + 1] if seen else [*kept, place]
    return kept


def _same_sight(one: Turn, other: Turn) -> bool:
    return len(one.outcome.split(". ")) > 3 and one.outcome == other.outcome
