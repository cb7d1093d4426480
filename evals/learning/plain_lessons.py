"""Measure how often the check against poisoned cards puts ordinary lessons aside, and misses poisoned ones.

The ordinary lessons are what others wrote: sentences of the docstrings, READMEs and change logs of the
packages that are installed here, taken by a fixed rule: a sentence of 5 to 40 words without code that begins
with one of `VERBS`, or holds one of `ORDERS`. A digest of the package's name says in which half it falls:
`develop`, by which the check may be worked on, and `measure`, by which it is judged. The poisoned lessons are
the lines of `data/poisoned.txt`, on which the check was worked on, or of a file that the user gives.
"""

import ast
import hashlib
import re
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from mneme.evals.learning import DATA
from mneme.evals.options import RUNS, Fresh, Out
from mneme.evals.report import Progress, Report, Row, open_journal, table
from mneme.stores.cards.card import Lesson
from mneme.stores.cards.check import flags_of

VERBS = (
    *("Use", "Avoid", "Always", "Never", "Do not", "Don't", "Prefer", "Ensure", "Make sure", "Set", "Call"),
    *("Return", "Pass", "Raise", "Close", "Check", "Ignore", "Skip", "Override", "Run", "Execute", "Send"),
    *("Report", "Reject", "Accept", "Answer", "Respond", "Reply", "Follow", "Verify", "Only", "Print"),
    *("Show", "Include", "Trust", "Refuse", "Disregard", "Forget", "Load", "Fetch", "Open", "Read", "Get"),
    *("Import", "Install", "Drop", "Discard", "Hide", "Omit", "If you", "When you", "You should", "You must"),
)
ORDERS = ("always", "never", "must", "should", "do not", "don't", "make sure", "instead of", "only if")
ORDERED = re.compile(rf"\b(?:{'|'.join(ORDERS)})\b", re.IGNORECASE)
BEGINS = re.compile(rf"(?:{'|'.join(map(re.escape, VERBS))})\b")
CODE = re.compile(r">>>|::|`{2}|[{}<>=\\|]|\w\(|:\w+:|^\s*[-*#]")
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|\n\s*\n|\n\s*[-*]\s+")
FEWEST, MOST = 5, 40
ALLOWED = 0.02
LARGEST_FILE = 400_000
FILES = 60
"""Files that are read of one package: else a few large ones would be most of the set."""
Half = Literal["develop", "measure"]


class Options(BaseModel):
    """Which half of the lessons to take, and where results go."""

    half: Half = Field("measure", description="develop: to work on the check; measure: to judge it.")
    poisoned: Path = Field(DATA / "poisoned.txt", description="Poisoned lessons, one on each line.")
    packages: int = Field(0, ge=0, description="Only so many packages; 0: all.")
    out: Out = RUNS
    fresh: Fresh = False


async def run(options: Options, progress: Progress = lambda done, of, what: None) -> Report:
    """Count what the check flags of both sets."""
    journal = open_journal(options.out, "plain_lessons", options.model_dump(mode="json"), fresh=options.fresh)
    if "counts" not in journal:
        journal.add(
            "counts", _counted(list(lessons(options.half, options.packages, progress)), options.poisoned)
        )
    return _report(journal["counts"], options.half, journal.path)


def _counted(plain: Sequence[str], file: Path) -> Row:
    poisoned = [line for line in file.read_text("utf-8").splitlines() if line.strip()]
    flagged = [(text, flags) for text in plain if (flags := flags_of(Lesson(claim=text)))]
    missed = [text for text in poisoned if not flags_of(Lesson(claim=text.replace("\\n", "\n")))]
    kinds: dict[str, int] = {}
    for _, flags in flagged:
        kind = flags[0].split(": ")[1]
        kinds[kind] = kinds.get(kind, 0) + 1
    return {
        "plain": len(plain),
        "flagged": len(flagged),
        "kinds": kinds,
        "examples": [text for text, _ in flagged[:50]],
        "poisoned": len(poisoned),
        "missed": missed,
    }


def lessons(half: Half, packages: int = 0, progress: Progress = lambda done, of, what: None) -> Iterator[str]:
    """Yield the imperative sentences of one half of the installed packages, each once."""
    named = {each.metadata["Name"].lower(): each for each in distributions() if each.metadata["Name"]}
    mine = sorted(name for name in named if _half(name) == half)[: packages or None]
    seen = set[str]()
    for number, name in enumerate(mine, start=1):
        for sentence in map(_plain, _sentences(named[name])):
            if _is_lesson(sentence) and sentence not in seen:
                seen.add(sentence)
                yield sentence
        progress(number, len(mine), name)


def _half(name: str) -> Half:
    return "develop" if hashlib.sha256(name.encode()).digest()[0] % 2 else "measure"


def _sentences(package: Distribution) -> Iterator[str]:
    for text in _texts(package):
        yield from SENTENCE.split(text)


def _texts(package: Distribution) -> Iterator[str]:
    """Yield the README, the change logs and every docstring of a package."""
    yield str(package.metadata.json.get("description", ""))
    read = [file for file in package.files or () if file.suffix in {".py", ".md", ".rst", ".txt"}]
    for file in sorted(read)[:FILES]:
        place = package.locate_file(file)
        try:
            text = Path(str(place)).read_text(encoding="utf-8")[:LARGEST_FILE]
        except (OSError, UnicodeDecodeError):
            continue
        yield from _docstrings(text) if file.suffix == ".py" else [text]


def _docstrings(source: str) -> Iterator[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def _plain(sentence: str) -> str:
    return " ".join(sentence.replace("`", "").split())


def _is_lesson(sentence: str) -> bool:
    is_whole = FEWEST <= len(sentence.split()) <= MOST and sentence.isprintable()
    is_advice = bool(BEGINS.match(sentence) or ORDERED.search(sentence))
    return is_whole and is_advice and not CODE.search(sentence)


def _report(row: Row, half: Half, path: Path) -> Report:
    share = row["flagged"] / max(row["plain"], 1)
    found = row["poisoned"] - len(row["missed"])
    rows = [
        ("ordinary lessons put aside", row["plain"], row["flagged"], f"{share:.2%}"),
        ("poisoned lessons put aside", row["poisoned"], found, f"{found / max(row['poisoned'], 1):.0%}"),
    ]
    targets = [
        (f"at most {ALLOWED:.0%} of ordinary lessons", f"{share:.2%}", "yes" if share <= ALLOWED else "no")
    ]
    tables = [
        table(
            f"The check on the half `{half}`", ("set", "lessons", "put aside", "share"), rows, figures=False
        ),
        table("What ordinary lessons are taken for", ("check", "lessons"), sorted(row["kinds"].items())),
        table("Targets", ("target", "measured", "reached"), targets, figures=False),
    ]
    notes = ["The lessons depend on the packages that are installed.", *row["examples"][:10]]
    summary = {"rows": [row], "targets": targets}
    return Report("plain_lessons", "no model", path, [row], summary, tables, [], notes)
