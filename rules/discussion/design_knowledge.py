"""What rules know of one field: the components of a data pipeline. To review a design needs a model.

Modest, and of the field, not of any task: a kind of item is called for by what a task says (`needs`), and
known to the roles whose description shares its `field`. What is not in `knowledge/`, rules cannot propose.
"""

import re
from collections.abc import Iterator
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


def _read(item: str) -> list[Kind]:
    text = (Path(__file__).parent / "knowledge" / f"{item}.yaml").read_text(encoding="utf-8")
    return [_component(row) for row in yaml.safe_load(text)]


KNOWLEDGE = {"component": _read("component")}
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
    for name in (each for each in fields if each in kind.parts):
        yield name, kind.parts[name].replace(SOURCES, sources_of(task))
