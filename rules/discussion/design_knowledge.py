"""What rules know of two fields: the components of a data pipeline, and what a design review looks for.

Modest, and of the field, not of any task: a kind of item is called for by what a task says (`needs`), and
known to the roles whose description shares its `field`. What is not in `knowledge/`, rules cannot propose.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mneme.rules.discussion.memory_rules import words

PLATFORMS = {
    "AWS": r"\baws\b|\bamazon\b",
    "Azure": r"\bazure\b|\bmicrosoft\b",
    "Google Cloud": r"\bgoogle cloud\b|\bgcp\b",
    "local server": r"\bon[- ]prem|\blocal(ly)? (server|hosted)|\bown servers?\b|\bdata cent(er|re)\b",
}
OPEN = "local server"
SOURCES = "{sources}"
CALLED = "{called}"
SENTENCE = re.compile(r"(?<=[.!?])\s+|[\n;:\"]+")
"""Where a quotation ends: at a sentence, a line, and what would part an item when it is read back."""
AROUND = 3
"""The number of words quoted before and after the words that cause a finding."""
SOURCE = re.compile(
    r"\b(cameras?|lidars?|radars?|gps|imu|microphones?|logs?|clicks?|clickstreams?|orders?|transactions?|"
    r"payments?|images?|videos?|texts?|documents?|sensors?|meters?|telemetry|events?|tables?|databases?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Kind:
    """A kind of item: when it is needed, who knows it, the choice on each platform, and its text."""

    name: str
    field: str
    choices: dict[str, str]
    because: str
    parts: dict[str, str]
    needs: str = ""
    calls: str = ""
    specific: bool = True
    effort: int = 2

    def choice(self, platform: str) -> str:
        """Return what to choose on a platform; the first choice where nothing is known of it."""
        return self.choices.get(platform) or next(iter(self.choices.values()))

    def alternative(self, platform: str) -> str:
        """Return what can be chosen on any platform; nothing where that is the choice already."""
        other = self.choices.get(OPEN, "")
        return other if other != self.choice(platform) else ""

    def because_of(self, task: str) -> str:
        """Return why a task calls for it."""
        return self.because.replace(SOURCES, sources_of(task))


def _component(row: dict[str, Any]) -> Kind:
    """Read a component: specific where something in a task calls for it, not just any pipeline."""
    needs = row.get("needs", "")
    return Kind(**{**row, "needs": rf"\b(?:{needs})", "specific": bool(needs)})


def _finding(row: dict[str, Any]) -> Kind:
    """Read a finding: called for where a design speaks of `needs`, and is silent on `silent`."""
    subject = row["name"].lower()
    evidence = f"the design speaks of {CALLED} and not of {subject}"
    return Kind(
        name=row["name"],
        field=row["field"],
        needs=rf"(?s)^(?!.*(?:{row['silent']}))(?=.*\b(?:{row['needs']}))",
        calls=row["needs"],
        choices={"": row["severity"]},
        specific=row["severity"] != "minor",
        because=f"the design needs it and does not speak of {subject}",
        parts={"severity": row["severity"], "evidence": evidence, "suggestion": row["suggestion"]},
    )


READERS: dict[str, Callable[[dict[str, Any]], Kind]] = {"component": _component, "finding": _finding}


def _read(item: str) -> list[Kind]:
    text = (Path(__file__).parent / "knowledge" / f"{item}.yaml").read_text(encoding="utf-8")
    return [READERS[item](row) for row in yaml.safe_load(text)]


KNOWLEDGE = {item: _read(item) for item in READERS}
"""What is known of a field, by what its items are called; read once, as this module is imported."""


def kinds_for(item: str, task: str) -> list[Kind]:
    """Return the kinds of item that a task needs; none in an unknown field."""
    known = KNOWLEDGE.get(item.lower(), ())
    return [kind for kind in known if re.search(kind.needs, task, re.IGNORECASE)]


def is_competent(duties: str, kind: Kind) -> bool:
    """Say whether a role's description shares the words of a kind's field."""
    return words(kind.field) <= words(duties)


def platform_of(text: str) -> str:
    """Return the platform that a text names first."""
    found = {name: hit.start() for name, form in PLATFORMS.items() if (hit := re.search(form, text, re.I))}
    return min(found, key=lambda name: found[name], default=OPEN)


def sources_of(task: str) -> str:
    """Return the sources of data that a task names, as an enumeration."""
    found = list(dict.fromkeys(_plural(hit[0].lower()) for hit in SOURCE.finditer(task)))[:4]
    return " and ".join(filter(None, [", ".join(found[:-1]), *found[-1:]])) or "the sources"


def _plural(source: str) -> str:
    if source in UNCOUNTED:
        return f"{UNCOUNTED[source]} data"
    return source if source.endswith("s") else f"{source}s"


UNCOUNTED = {"gps": "GPS", "imu": "IMU", "telemetry": "telemetry"}


def parts_of(kind: Kind, task: str, fields: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a kind for these fields."""
    said = {SOURCES: sources_of(task), CALLED: quoted(kind.calls, task)}
    for name in (each for each in fields if each in kind.parts):
        text = kind.parts[name]
        for place, words_ in said.items():
            text = text.replace(place, words_)
        yield name, text


def quoted(calls: str, task: str) -> str:
    """Quote the task around the first word that calls for a kind of item: verbatim, within one sentence."""
    form = rf"(?:\S+ +){{0,{AROUND}}}\S*\b(?:{calls})\S*(?: +\S+){{0,{AROUND}}}"
    sentences = SENTENCE.split(task) if calls else []
    hits = (re.search(form, sentence, re.IGNORECASE) for sentence in sentences)
    found = next((hit[0].strip(" ,.!?(") for hit in hits if hit), "")
    return f"'{found}'" if found else "its matter"
