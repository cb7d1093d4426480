"""Find in a card what reads like an instruction to agents instead of a lesson (memory poisoning).

A lesson may be in the imperative ("Use a composite index", "Always answer 400 for malformed bodies"), but it
does not say how an agent should behave.
The check looks for what an injection needs, whatever its subject: taking back earlier instructions, telling
a reader how to answer or judge, addressing a role, imitating a turn of a conversation or a tool call,
sending the reader to an address or running what comes from there, asking for secrets, hiding text. It reads
normalised text (compatibility forms folded, invisible characters taken out), so that spacing, case and
look-alike width do not hide a phrase.

It knows words, most of them English, and proves nothing; cards are shown to agents as data in any case.
A person looks at each flag, and may clear it with a reason.
"""

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import yaml

from mneme.stores.cards.card import Lesson

_FILE = yaml.safe_load(Path(__file__).with_name("injections.yaml").read_text(encoding="utf-8"))


def _filled(pattern: str) -> str:
    """Put the words of the file in the place of their names."""
    return re.sub(r"<([A-Z]+)>", lambda name: _filled(_FILE["words"][name[1]]), pattern)


CHECKS = {what: re.compile(_filled("|".join(patterns))) for what, patterns in _FILE["checks"].items()}
INVISIBLE = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\u00ad\U000e0000-\U000e007f]"
)
MAX_CHARS = 80


def flags_of(lesson: Lesson) -> list[str]:
    """Return what is suspicious, as "where: what: the words"; nothing for a plain lesson."""
    return [f"{where}: {found}" for where, text in texts(lesson) for found in findings(text)]


def findings(text: str) -> Iterator[str]:
    """Yield what in a text reads like an instruction to agents, with the words that do."""
    if INVISIBLE.search(text):
        yield "hides characters"
    plain = _plain(text)
    for what, pattern in CHECKS.items():
        found = pattern.search(plain)
        if found:
            yield f"{what}: {' '.join(found[0].split())[:MAX_CHARS]}"


def texts(lesson: Lesson) -> Iterator[tuple[str, str]]:
    """Yield every text of a lesson that an agent may read, with the path of its field."""
    yield from _texts("", lesson.model_dump(include={*Lesson.model_fields, "deprecated_because"}))


def _texts(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _texts(f"{path}.{name}".removeprefix("."), item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(f"{path}.{number}", item)


def _plain(text: str) -> str:
    folded = unicodedata.normalize("NFKC", INVISIBLE.sub("", text)).casefold()
    straight = re.sub("[‘’`´]", "'", folded).replace("“", '"').replace("”", '"')
    return re.sub(r"[^\S\n]+", " ", straight)
