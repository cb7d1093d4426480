"""The documentation's commands, run one after the other: each prints what its page says.

In a page with the comment `<!-- tested -->` every block of a shell is run, in order, in one home of its
own. A comment before a block says what else it is: `<!-- file: NAME -->`, `<!-- run: COMMAND -->` where it
is what a command prints, `<!-- shown: WHY -->` where it is not run, `<!-- unordered: WHY -->` where lines
may come in another order. A line `…` stands for any lines. Times, durations and keys may differ; a key that
was printed may be given to a later command.
"""

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.doubles.command_line import run_mneme
from tests.doubles.quiet import NOWHERE, quiet

DOCS = Path(__file__).parents[1] / "docs"
TESTED = [
    page for page in sorted(DOCS.rglob("*.md")) if "<!-- tested -->" in page.read_text(encoding="utf-8")
]
LONG = {"own-pool-agent.md", "own-world.md"}
BLOCK = re.compile(
    r"(?:^<!-- (file|run|shown|unordered): (.+?) -->\n+)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
KEY = re.compile(r"\b[0-9a-f]{8}\b")
VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00)?"), "TIME"),
    (re.compile(r"\b\d+\.\d+ s\b"), "SECONDS"),
    (KEY, "KEY"),
)
ANYTHING = "…"
LINES = r"(?:.*\n)*?"
READERS_HOME = "/home/ann"
OLLAMA = "http://127.0.0.1:11434"
"""Where a reader who has no Ollama has none."""


class Step(NamedTuple):
    """A file to write, or a command to run with the lines that it prints, where they are shown."""

    command: str
    shown: list[str] | None = None
    file: str = ""
    unordered: bool = False


def steps(page: Path) -> Iterator[Step]:
    """Yield what a reader of the page does, in order."""
    for kind, about, language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "file":
            yield Step(text, file=about)
        elif kind == "run":
            yield Step(about, text.splitlines())
        elif kind != "shown" and language == "sh":
            yield from (Step(each) for each in text.replace("\\\n", " ").splitlines() if each.strip())
        elif kind != "shown" and language == "console":
            yield from (each._replace(unordered=kind == "unordered") for each in dialogue(text))


def dialogue(text: str) -> Iterator[Step]:
    """Yield the commands of a block, each with the lines below it."""
    command = ""
    for is_command, lines in groupby(
        text.replace("\\\n", " ").splitlines(), lambda line: line.startswith("$ ")
    ):
        if not is_command:
            yield Step(command, [*lines])
            continue
        *silent, command = [line[2:] for line in lines]
        yield from map(Step, silent)
    if is_command:
        yield Step(command)


class Reader:
    """Somebody who does what a page says, in a folder and a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.keys = folder, dict[str, str]()
        self.environment = quiet(folder / "mneme")

    def do(self, step: Step) -> None:
        """Write the file, or run the command and compare what it prints."""
        if step.file:
            path = self.folder / step.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.command, encoding="utf-8")
            return
        printed = self.run(self.own(step.command)).replace(str(self.folder), READERS_HOME)
        if step.shown is not None:
            self.compare(step, [line.rstrip() for line in printed.splitlines() if line.strip()])

    def own(self, command: str) -> str:
        """Put this reader's keys and folder in place of those in the page."""
        own = re.sub(KEY, lambda key: self.keys.get(key[0], key[0]), command.partition("  #")[0])
        return own.replace(READERS_HOME, str(self.folder)).replace("/tmp", str(self.folder))

    def run(self, command: str) -> str:
        """Run a line of a shell; what `mneme` does there is done by a process that has its imports."""
        said, pipe, last = command.rpartition(" | mneme ")
        words = shlex.split(f"mneme {last}" if pipe else command)
        if words[0] == "export":
            self.environment |= dict(each.split("=", 1) for each in words[1:])
            return ""
        given = [*iter_settings(words)]
        if words[len(given)] != "mneme" or {"|", ">"} & {*words}:
            return self.shell(command)
        told = run_mneme(
            words[len(given) + 1 :], self.environment | dict(given), self.shell(said) if pipe else ""
        )
        notices_first = (told.stdout + told.stderr) if told.returncode else (told.stderr + told.stdout)
        return notices_first.replace(NOWHERE, OLLAMA)

    def shell(self, command: str) -> str:
        """Run a line that is not a command of Mneme's."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{self.environment['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command],
            env={**self.environment, "PATH": path, "PYTHONPATH": str(DOCS.parent)},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout + done.stderr

    def compare(self, step: Step, printed: list[str]) -> None:
        """Find the shown lines among the printed ones, and note which key stands for which."""
        shown = [line.rstrip() for line in step.shown or () if line.strip()]
        told = "\n".join(["--- the page", *shown, "--- printed", *printed])
        if step.unordered:
            lacking = Counter(map(masked, shown)) - Counter([*map(masked, printed), ANYTHING])
            more = Counter(map(masked, printed)) - Counter(map(masked, shown))
            assert not lacking and (ANYTHING in shown or not more), f"$ {step.command}\n{told}"
            return
        pattern = "".join(LINES if line == ANYTHING else f"{re.escape(masked(line))}\n" for line in shown)
        assert re.fullmatch(pattern, masked("".join(f"{line}\n" for line in printed))), (
            f"$ {step.command}\n{told}"
        )
        if ANYTHING not in shown:
            self.keys |= zip(KEY.findall("\n".join(shown)), KEY.findall("\n".join(printed)), strict=True)


def iter_settings(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the settings that are written before a command."""
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isupper():
            return
        yield name, value


def masked(text: str) -> str:
    """Put words in place of what is different each time."""
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return text


@pytest.mark.parametrize(
    "page",
    [pytest.param(each, marks=[pytest.mark.long] if each.name in LONG else []) for each in TESTED],
    ids=lambda page: page.stem,
)
def test_the_commands_of_a_page_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path)
    for step in steps(page):
        reader.do(step)


def test_the_tutorial_is_tested() -> None:
    assert DOCS / "tutorial.md" in TESTED
