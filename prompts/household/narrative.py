"""Hold the words of a synopsis against the record that it was made of.

Only what can be read surely is judged: numbers and the names beside them, and statements about containers and
things in a clause of one tense. What is promised or still to be done claims nothing, nor does what follows
"before", "until" or "if".
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

NAMED = re.compile(r"<([^<>]+)> ?\((\d+)\)")
CLAUSE = re.compile(
    r"[.;!?\n]|, (?:and|but|while)\b|\b(?:and|but|while)\b(?! <)|(?=\b(?:if|until|before)\b)", re.IGNORECASE
)
OPEN_MATTER = re.compile(
    r"\b(?:will|would|should|must|may|might|could|can|to be|going|about to|next|plans?|wants?|under way|"
    r"promise\w*|need\w*|if|until|before|toward\w*)\b",
    re.IGNORECASE,
)
NOT_CHECKED = re.compile(
    r"\b(?:unchecked|unopened|not (?:yet )?(?:been )?(?:checked|opened|looked)"
    r"|nobody (?:has )?(?:checked|opened))\b",
    re.IGNORECASE,
)
CHECKED = re.compile(r"\b(?:checked|opened|looked in(?:to|side)?)\b", re.IGNORECASE)
NOT_PLACED = re.compile(r"\b(?:not|never|failed|unable|nobody)\b", re.IGNORECASE)
PLACED = re.compile(r"\b(?:placed|delivered)\b|\bput\b.*\b(?:on|in|inside|into|onto)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Borne:
    """What a record supports: the names of each number, and which containers and things are how."""

    names: Mapping[int, Collection[str]]
    checked: Collection[int]
    unchecked: Collection[int]
    loose: Collection[int]


def contradictions(narrative: str, borne: Borne) -> Iterator[str]:
    """Yield a sentence for each statement that the record does not support."""
    for name, number in NAMED.findall(narrative):
        known = borne.names.get(int(number))
        if known is None:
            yield f"nothing in what was told has the number {number}"
        elif name not in known:
            yield f"({number}) is <{'> or <'.join(sorted(known))}>, not <{name}>"
    for clause in CLAUSE.split(narrative):
        if not OPEN_MATTER.search(clause):
            yield from _contradicted(clause, borne)


def _contradicted(clause: str, borne: Borne) -> Iterator[str]:
    """Yield what a clause says of a container or a thing and the record does not."""
    named = [(int(number), f"<{name}> ({number})") for name, number in NAMED.findall(clause)]
    for number, label in named:
        if NOT_CHECKED.search(clause) and number in borne.checked:
            yield f"{label} was checked"
        elif CHECKED.search(clause) and not NOT_CHECKED.search(clause) and number in borne.unchecked:
            yield f"nobody has opened {label}"
        elif PLACED.search(clause) and not NOT_PLACED.search(clause) and number in borne.loose:
            yield f"{label} is not where it belongs"
