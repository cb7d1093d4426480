"""How rules update a structured memory: each statement into the slot whose words it shares.

A line that begins with a label (`Risk: …`) is one statement; other lines are cut into sentences. A slot's
words are its name's and its description's. A statement about the same subject as an entry of its slot takes
that entry's place, and so does one that denies it (`The door is closed.`); words with a digit (`ball1`) are
names, and tell subjects apart, as their order does. What stands in a slot of open things (`open`) moves to
the slot of settled ones beside it (`done`) when it is said to be so.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

from mneme.prompts.discussion.memory_template import LONGEST_ENTRY, MOST_ENTRIES, size
from mneme.rules.discussion.memory_template import Path, content, slots

LABELLED = re.compile(r"^\s*[-*•]?\s*([A-Za-z][\w '/-]{1,40}):\s+(\S.*)$")
CLAUSE = re.compile(r"\b(?:is|are|was|were|has|have|had|can|cannot|must|will|does|did)\b", re.IGNORECASE)
"""Shows that what stands before a colon is a clause of its own (`Gate 4 is shut: …`), and no label."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'(])")
SUBJECT = re.compile(r"^([^:(.;,]{3,60})\s*[:(]")
NEGATED = re.compile(r"\bnot (?=[a-z])")
WORD = re.compile(r"\b\w*\d\w*\b|not_[a-z]+|[^\W\d_]{3,}")
SPOKEN = re.compile(r"[\w-]+")
NUMBERED = re.compile(r"\b\w*\d\w*\b")
COMMON = frozenset(
    re.findall(
        r"\w+",
        "the and for are was were has have had that this with from what which who whom whose each every any "
        "all not but our your their its they them you she her his him one two into onto over under than then "
        "when where while will would can could may might must should shall been being does did done how why",
    )
)
CUES: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = (
    (re.compile(r"\?\s*$"), frozenset(("question", "questions", "open", "unclear", "ask"))),
    (
        re.compile(
            r"\b(risk|fail|fails|failed|danger|problem|however|cannot|object|concern|not valid)", re.I
        ),
        frozenset(
            ("risk", "risks", "concern", "concerns", "issue", "issues", "failure", "failed", "objection")
        ),
    ),
    (
        re.compile(r"\b(agree|accept|settled|decided|consensus|endorse)", re.I),
        frozenset(("agreed", "agreement", "agreements", "decision", "decisions", "consensus", "accepted")),
    ),
    (
        re.compile(r"\b(propose|proposal|suggest|recommend|let us use|should use)", re.I),
        frozenset(("proposal", "proposals", "proposed", "solution", "plan", "component", "components")),
    ),
)
"""What a statement looks like, and the words of slots that are for such statements."""
OPEN = frozenset(("open", "outstanding", "pending", "todo"))
DONE = frozenset(("done", "reached", "settled", "closed"))
"""Names of slots for what is still to come, and of those beside them for what has come."""
FAILED = frozenset(("fail", "failed", "failure", "error"))
WHOLE = frozenset(("fact", "action", "subgoal", "step", "event", "observation"))
"""Words of list slots for what went wrong, and of those whose entries lose their sense when they are cut."""
OPPOSITES = frozenset(
    frozenset(pair.split())
    for pair in ("open closed", "on off", "loose tight", "full empty", "up down", "clean dirty")
)
"""Words of which one denies what the other says, beside those that begin with `un`, and `not`."""
LABEL, CUE, OVERLAP = 4.0, 2.0, 1.0
ALIKE = 0.7
CUT = "…"
BRIEFER = (12, 9, 7, 5, 4)
"""Words that are kept of each sentence, where a text must be said more and more briefly."""
NAMED = re.compile(
    r"[^:(.]{1,70}(?:\([^)]{1,80}\) (?:because )?|: )(?:[A-Z][^:(.]{1,60}\([^)]{1,80}\) (?:because )?)?"
)
"""What a sentence is about: `Data ingestion (Kafka) because …`, `Pros: …`."""
SHORT = 60
"""Characters below which an entry is not shortened any further."""


def updated(
    template: Mapping[str, Any], memory: Mapping[str, Any], output: str, limit: int
) -> tuple[str, dict[str, Any]]:
    """Return why, and the memory with the output's statements in their slots, within its bound."""
    known = deepcopy(dict(memory))
    changed = [path for each in statements(output) for path in _take_in(template, known, each)]
    _bound(template, known, limit)
    names = sorted({".".join(path) for path in changed})
    return (f"New in {', '.join(names)}." if names else "Nothing new was said."), known


def statements(output: str) -> list[str]:
    """Cut an output into its statements."""
    found: list[str] = []
    for line in filter(None, (each.strip() for each in output.splitlines())):
        found += [line] if _labelled(line) else SENTENCE_END.split(line)
    return [" ".join(each.lstrip("-*• ").split()) for each in found if WORD.search(each.lower())]


def _labelled(line: str) -> re.Match[str] | None:
    found = LABELLED.match(line)
    return None if found is None or CLAUSE.search(found[1]) else found


@lru_cache(4096)
def words(text: str) -> frozenset[str]:
    """Return the words of a text that mean something, without the plural's s; `not valid` is one word."""
    return frozenset(_meaningful(text))


def _meaningful(text: str) -> list[str]:
    plain = NEGATED.sub("not_", text.lower().replace("_", " "))
    found = (word for word in WORD.findall(plain) if word not in COMMON)
    return [word.removesuffix("s") if len(word) > 4 and word.isalpha() else word for word in found]


def _take_in(template: Mapping[str, Any], memory: dict[str, Any], statement: str) -> list[Path]:
    """Put a statement into the slot that it fits best, settle what it settles; return the slots changed."""
    label, said = _label(statement, template)
    path, _, is_list = max(slots(template), key=lambda slot: (_fit(slot[0], slot[1], label, said), slot[2]))
    settled = [] if OPEN.intersection(path[-1].split("_")) else _settle(template, memory, said)
    if not is_list:
        _set(memory, path, said[:LONGEST_ENTRY])
        return [path, *settled]
    return [path, *settled] if _add(_listed(memory, path), said[:LONGEST_ENTRY]) else settled


def _listed(memory: Mapping[str, Any], path: Path) -> list[str]:
    kept = content(memory, path)
    assert isinstance(kept, list)
    return kept


def _settle(template: Mapping[str, Any], memory: dict[str, Any], said: str) -> list[Path]:
    """Move the open things that are now said to be so to where settled ones are; return the slots changed."""
    changed: list[Path] = []
    for waiting, settled in _settling(template):
        reached = [each for each in _listed(memory, waiting) if _spoken(_first(each)) == _spoken(said)]
        for each in reached:
            _listed(memory, waiting).remove(each)
            _add(_listed(memory, settled), each)
            changed.append(settled)
    return changed


def _settling(template: Mapping[str, Any]) -> list[tuple[Path, Path]]:
    """Return the list slots for open things, each with the one for settled things beside it."""
    lists = [path for path, _, is_list in slots(template) if is_list]
    return [
        (one, other)
        for one in lists
        for other in lists
        if one[:-1] == other[:-1]
        if OPEN.intersection(one[-1].split("_")) and DONE.intersection(other[-1].split("_"))
    ]


def _first(entry: str) -> str:
    return SENTENCE_END.split(entry)[0]


def _spoken(statement: str) -> list[str]:
    return SPOKEN.findall(statement.lower())


def _label(statement: str, template: Mapping[str, Any]) -> tuple[str, str]:
    """Part a statement from its label, and from a second one that names a slot (`think: open subgoal: …`)."""
    found = _labelled(statement)
    if not found:
        return "", statement
    names = frozenset(word for path, _, _ in slots(template) for word in words(" ".join(path)))
    second = _labelled(found[2])
    if second and words(second[1]) & names:
        return f"{found[1]} {second[1]}", second[2]
    return found[1], found[2]


def _fit(path: Path, purpose: str, label: str, said: str) -> float:
    """Say how well a statement fits a slot: by its label, by what it looks like, by the words they share."""
    name, all_words = words(" ".join(path)), words(f"{' '.join(path)} {purpose}")
    labelled = LABEL * len(words(label) & name) + CUE * len(words(label) & all_words)
    cued = sum(CUE for looks, fitting in CUES if looks.search(f"{label} {said}") and name & fitting)
    shared = len(words(said) & all_words)
    overlap: float = OVERLAP * shared / (1 + len(words(said))) ** 0.5
    return labelled + cued + overlap


def _set(memory: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        memory = memory[name]
    memory[path[-1]] = value


def _add(kept: list[str], said: str) -> bool:
    """Add a statement as the newest, in the place of an older one about the same; say whether it is new."""
    if said in kept:
        kept.remove(said)
        kept.append(said)
        return False
    older = next((n for n, each in enumerate(kept) if _same_subject(each, said) or denies(each, said)), None)
    if older is not None:
        kept.pop(older)
    kept.append(said)
    return True


def _same_subject(one: str, other: str) -> bool:
    subjects = [found[1].strip().lower() for found in map(SUBJECT.match, (one, other)) if found]
    if len(subjects) == 2:
        return subjects[0] == subjects[1]
    left, right = words(one), words(other)
    if set(NUMBERED.findall(one.lower())) != set(NUMBERED.findall(other.lower())):
        return False
    if _meaningful(one)[:1] != _meaningful(other)[:1] or _is_turned_round(one, other):
        return False
    return bool(left | right) and len(left & right) / len(left | right) >= ALIKE


def _is_turned_round(one: str, other: str) -> bool:
    """Say whether two statements say the same words in another order (`move rooma roomb`)."""
    left, right = _spoken(one), _spoken(other)
    return left != right and sorted(left) == sorted(right)


def denies(one: str, other: str) -> bool:
    """Say whether two statements differ in nothing but a `not`, or in a word that stands for its opposite."""
    left, right = _spoken(one), _spoken(other)
    if len(left) == len(right):
        differing = [pair for pair in zip(left, right, strict=True) if pair[0] != pair[1]]
        return len(differing) == 1 and _are_opposites(*differing[0])
    shorter, longer = sorted((left, right), key=len)
    return any(word == "not" and longer[:at] + longer[at + 1 :] == shorter for at, word in enumerate(longer))


def _are_opposites(one: str, other: str) -> bool:
    return frozenset((one, other)) in OPPOSITES or f"un{one}" == other or f"un{other}" == one


def _bound(template: Mapping[str, Any], memory: dict[str, Any], limit: int) -> None:
    """Make the memory fit: shed what is done, then what failed; shorten the longest; drop the oldest.

    A fact or an action is dropped whole, since a part of one says something else; and what is kept in order
    goes last of all, since what holds now follows from it.
    """
    lists = [path for path, _, is_list in slots(template) if is_list]
    for path in lists:
        del _listed(memory, path)[:-MOST_ENTRIES]
    while (excess := size(memory) - limit) > 0:
        shed = _shed(template, memory) or _shorten(template, memory, excess) or _drop(memory, lists)
        if not (shed or _cut(template, memory, excess)):
            return


def _shed(template: Mapping[str, Any], memory: dict[str, Any]) -> bool:
    """Drop the oldest of the things that are done; where none is left, of those that failed."""
    done = [settled for _, settled in _settling(template)]
    failed = [path for path, _, is_list in slots(template) if is_list and FAILED & _name(path)]
    return any(_drop(memory, paths) for paths in (done, failed))


def _shorten(template: Mapping[str, Any], memory: dict[str, Any], excess: int) -> bool:
    """Say the longest entry more briefly, of those that are long and still say the same when shortened."""
    places = [each for each in _places(template, memory) if each[1] < 0 or not WHOLE & _name(each[0])]
    path, at = max(places, key=lambda place: len(_entry(memory, *place)), default=((), 0))
    entry = _entry(memory, path, at) if path else ""
    if len(entry) <= SHORT:
        return False
    _put(memory, path, at, briefer(entry, max(SHORT, len(entry) - excess, len(entry) * 3 // 4)))
    return True


def _drop(memory: dict[str, Any], paths: Sequence[Path]) -> bool:
    """Drop the oldest entry of the fullest list; of one that is kept in order, where the others are empty."""
    filled = [path for path in paths if _listed(memory, path)]
    if not filled:
        return False
    path = max(filled, key=lambda path: ("order" not in _name(path), len(_listed(memory, path))))
    _listed(memory, path).pop(0)
    return True


def _cut(template: Mapping[str, Any], memory: dict[str, Any], excess: int) -> bool:
    """Cut the longest text, where no list has anything left."""
    path, at = max(_places(template, memory), key=lambda place: len(_entry(memory, *place)))
    entry = _entry(memory, path, at)
    if entry:
        _put(memory, path, at, entry[: max(0, len(entry) - excess)])
    return bool(entry)


def _name(path: Path) -> frozenset[str]:
    return words(" ".join(path))


def _places(template: Mapping[str, Any], memory: Mapping[str, Any]) -> Iterable[tuple[Path, int]]:
    for path, _, is_list in slots(template):
        yield from ((path, at) for at in range(len(content(memory, path)))) if is_list else [(path, -1)]


def _entry(memory: Mapping[str, Any], path: Path, at: int) -> str:
    held = content(memory, path)
    return held[at] if isinstance(held, list) else held


def _put(memory: dict[str, Any], path: Path, at: int, text: str) -> None:
    held = content(memory, path)
    if isinstance(held, list):
        held[at] = text
    else:
        _set(memory, path, text)


def briefer(text: str, room: int) -> str:
    """Say a text more briefly: its sentences' first clauses, then their first words; at last cut it."""
    if len(concise := _clauses(text)) < len(text):
        return concise
    for most in BRIEFER:
        if len(brief := _words(text, most)) < len(text):
            return brief
    return shortened(text, room)


def _clauses(text: str) -> str:
    """Keep of each sentence what stands before its first semicolon."""
    return ". ".join(sentence.partition(";")[0].rstrip(".") for sentence in text.split(". ")) + "."


def _words(text: str, most: int) -> str:
    """Keep of each sentence its subject, where it names one, and so many words after it."""
    return ". ".join(_first_words(sentence.rstrip("."), most) for sentence in text.split(". ")) + "."


def _first_words(sentence: str, most: int) -> str:
    named = NAMED.match(sentence)
    subject = named[0] if named else ""
    kept = sentence[len(subject) :].rstrip(CUT).split()
    said = " ".join(kept[:most])
    is_cut = len(kept) > most or sentence.endswith(CUT)
    return f"{subject}{said}{CUT if is_cut else ''}"


def shortened(entry: str, room: int) -> str:
    """Cut an entry at the end of a clause, or else of a word, within its room."""
    head = entry[:room]
    clause = max(head.rfind(". "), head.rfind("; "))
    if clause >= room // 2:
        return head[: clause + 1]
    return f"{head[:-1].rpartition(' ')[0].rstrip(',;:') or head[:-1]}{CUT}"
