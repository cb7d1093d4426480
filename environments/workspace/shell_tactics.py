"""Four changes of a shell pipeline that a program can make, each for a well-known cause of slowness.

They edit the text of `.sh` files. What they cannot: turn a loop with a program of its own for each line into
one program in general, or know which order of lines the next program needs (so they sort again).
"""

import re
from collections.abc import Callable, Mapping
from functools import partial

from mneme.environments.workspace.tactics import Tactics

COUNT, DISTINCT, GREP, BYTES = "COUNT in awk", "DISTINCT in awk", "GREP from file", "BYTES order"
DEFINITION = f"""A pattern is one of these, which a program carries out, or an approach in plain words:
{COUNT}: `sort | uniq -c` becomes one awk that counts in a table, and sorts only what is left.
{DISTINCT}: `sort | uniq` and `sort -u` become one awk that passes each line once, sorted afterwards.
{GREP}: a loop with one grep for each line of a file becomes one `grep -F -f`.
{BYTES}: LC_ALL=C, so that texts are compared byte by byte.
Several are written with `;` between them."""
_COUNT = re.compile(r"\bsort\s*\|\s*uniq\s+-c\b(?P<next>\s*\|\s*(?:sort|wc)\b)?")
_DISTINCT = re.compile(r"\b(?:sort\s*\|\s*uniq(?!\s*-)|sort\s+-u(?![\w-]))\b(?P<next>\s*\|\s*(?:sort|wc)\b)?")
_LOOP = re.compile(
    r"while\s+(?:IFS=\s+)?read\s+(?:-r\s+)?(?P<name>\w+)\s*(?:;|\n)\s*do\s+grep\s+-F\s+(?:--\s+)?"
    r"\"\$\{?(?P=name)\}?\"\s+(?P<file>[^\s;|<>]+)\s*(?:;|\n)\s*done\s*<\s*(?P<keys>[^\s;|<>]+)"
)
_COUNTING = "awk '{ count[$0]++ } END { for (line in count) printf \"%7d %s\\n\", count[line], line }'"
_PASSING = "awk '!seen[$0]++'"
LOCALE = "export LC_ALL=C"


def _then(found: "re.Match[str]", program: str, sorting: str) -> str:
    """Put a program in the place of a sort; what it leaves is sorted unless the next program does that."""
    return f"{program}{found['next']}" if found["next"] else f"{program} | {sorting}"


def _with_locale(text: str) -> str:
    if LOCALE in text:
        return text
    first, newline, rest = text.partition("\n")
    return f"{first}\n{LOCALE}\n{rest}" if first.startswith("#!") else f"{LOCALE}\n{first}{newline}{rest}"


class ShellTactics(Tactics):
    """Patterns for shell pipelines."""

    definition = DEFINITION
    first = (BYTES, COUNT, DISTINCT, GREP)
    ending = ".sh"
    changes: Mapping[str, Callable[[str], str]] = {
        COUNT: partial(_COUNT.sub, lambda found: _then(found, _COUNTING, "sort -k 2")),
        DISTINCT: partial(_DISTINCT.sub, lambda found: _then(found, _PASSING, "sort")),
        GREP: partial(_LOOP.sub, lambda found: f"grep -F -f {found['keys']} {found['file']}"),
        BYTES: _with_locale,
    }
    signs: Mapping[str, Callable[[str], bool]] = {
        "lines sorted to be counted": lambda text: bool(_COUNT.search(text)),
        "lines sorted to be distinct": lambda text: bool(_DISTINCT.search(text)),
        "a grep for each line": lambda text: bool(_LOOP.search(text)),
    }
