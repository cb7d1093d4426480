"""For which versions of what a card is valid, written as packages are pinned: `python>=3.11,<4`."""

from collections.abc import Mapping

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from mneme.core.errors import BadInput


def check_valid_for(text: str) -> str:
    """Return what a card is valid for, as it is written. Raises BadInput for what names no version."""
    if not text.strip():
        return ""
    return str(_read(text))


def holds_for(valid_for: str, versions: Mapping[str, str]) -> bool | None:
    """Say whether a card is valid with these versions; None where nothing says so."""
    if not valid_for:
        return True
    wanted = _read(valid_for)
    here = {canonicalize_name(name): version for name, version in versions.items()}
    if canonicalize_name(wanted.name) not in here:
        return None
    try:
        return wanted.specifier.contains(Version(here[canonicalize_name(wanted.name)]), prereleases=True)
    except InvalidVersion:
        return None


def _read(text: str) -> Requirement:
    wrong = BadInput(f"{text!r} names no version.", "Write it like sqlite>=3.40 or python>=3.11,<4.")
    try:
        read = Requirement(text)
    except InvalidRequirement as why:
        raise wrong from why
    if not read.specifier or read.url or read.extras or read.marker:
        raise wrong
    return read
