"""The documentation's commands, run one after the other: each prints what its page says.

In the README, the tutorial and every how-to each block of a shell or of Python is run, in order, in one home
of the page's own. A comment before a block says what else it is: `<!-- file: NAME -->`,
`<!-- run: COMMAND -->` where it is what a command prints, `<!-- shown: WHY -->` where it is not run,
`<!-- unordered: WHY -->` where lines may come in another order. `<!-- before: COMMANDS -->` makes what a page
takes for granted, and `<!-- server: URL -->` starts `langgraph dev`, which has that address on the page.

A command whose output is not shown must succeed. Where it is shown, `…` stands for any lines, and at the end
of a line for its rest. Times, durations, tokens and keys may differ. A key that was printed may be given to a
later command, and `KEY` or `ID` in a command is the first key that was printed last.
"""

import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.doubles.command_line import Done, run_mneme
from tests.doubles.langgraph_server import langgraph_dev
from tests.doubles.quiet import NOWHERE, quiet

ROOT = Path(__file__).parents[1]
TESTED = [ROOT / "README.md", ROOT / "docs/tutorial.md", *sorted((ROOT / "docs/how-to").glob("*.md"))]
QUICK = {"tutorial", "own-prompt", "own-pool-agent", "discuss"}
"""Pages that the short run of the tests can afford; the others are long."""
BLOCK = re.compile(
    r"^<!-- (before|server):\s(.+?)\s-->()()$|"
    r"(?:^<!-- (file|run|shown|unordered): ([^\n]+?) -->\n+)?^```(\w+)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
KEY = re.compile(r"(?<![^\W_])(?=[0-9a-f]*\d)[0-9a-f]{8,32}\b")
WHOLE_KEY = re.compile(rf"(?:card_|disp_)?{KEY.pattern}")
QUOTED, SHELL_SIGN = re.compile(r"'[^']*'|\"[^\"$]*\""), re.compile(r"[|<>&;$*`]")
VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00)?"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DAY"),
    (re.compile(r"\b\d+(\.\d+)? s\b"), "SECONDS"),
    (re.compile(r"\b\d+ tokens\b"), "TOKENS"),
    (re.compile(r"\b\d+(\.\d+)? times as fast"), "FASTER"),
    (re.compile(r"confidence \d\.\d+"), "CONFIDENCE"),  # it follows from the measured times
    # Two tasks that open a new home may each write a root of the user's threads: the first counts.
    (re.compile(r"\b\d+ records, \d+ versions"), "RECORDS"),
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "THREAD"),
    (re.compile(r"\bmneme-[0-9a-f]{16}-\S+"), "USER'S KEY"),
    (KEY, "KEY"),
)
ANYTHING = "…"
LINES, REST = r"(?:.*\n)*?", ".*"
READERS_HOME = "/home/ann"
OLLAMA = "http://127.0.0.1:11434"
"""Where a reader who has no Ollama has none."""


class Step(NamedTuple):
    """A file to write, or a command to run with the lines that it prints, where they are shown."""

    command: str
    shown: list[str] | None = None
    file: str = ""
    unordered: bool = False
    server: str = ""


def steps(page: Path) -> Iterator[Step]:
    """Yield what a reader of the page does, in order."""
    for found in BLOCK.findall(page.read_text(encoding="utf-8")):
        kind, about, language, text = found[:4] if found[0] else found[4:]
        if kind == "before":
            yield from map(Step, joined(about))
        elif kind == "server":
            yield Step("", server=about)
        elif kind == "file":
            yield Step(text, file=about)
        elif kind == "run":
            yield Step(about, text.splitlines())
        elif kind != "shown" and language == "sh":
            yield from map(Step, joined(text))
        elif not kind and language == "python":
            yield from (Step(text, file="example.py"), Step("python example.py"))
        elif kind != "shown" and language == "console":
            yield from (each._replace(unordered=kind == "unordered") for each in dialogue(text))


def joined(text: str) -> list[str]:
    """Return the commands of a block, each on one line."""
    return [each for each in text.replace("\\\n", " ").splitlines() if each.strip()]


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
        self.folder, self.keys, self.latest_key = folder, dict[str, str](), ""
        self.servers, self.running, self.printed = dict[str, str](), ExitStack(), ""
        self.environment = quiet(folder / "mneme", HOME=str(folder), PYTHONPATH=str(ROOT))
        self.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def do(self, step: Step) -> None:
        """Write the file, or run the command and compare what it prints."""
        if step.file:
            path = self.folder / step.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.command, encoding="utf-8")
            return
        if step.server:
            started = langgraph_dev(Path(self.environment["MNEME_HOME"]), self.environment)
            self.servers[step.server] = self.running.enter_context(started).url
            return
        status, printed = self.run(self.own(step.command))
        for page, own in {READERS_HOME: str(self.folder), OLLAMA: NOWHERE, **self.servers}.items():
            printed = printed.replace(own, page)
        self.printed += printed
        self.latest_key = next(iter(WHOLE_KEY.findall(printed)), self.latest_key)
        if step.shown is None:
            assert status == 0, f"$ {step.command}\n{printed}"
        else:
            self.compare(step, [line.rstrip() for line in printed.splitlines() if line.strip()])

    def own(self, command: str) -> str:
        """Put this reader's keys and folder in place of those in the page."""
        own = re.sub(KEY, lambda key: self.key(key[0]), command.partition("  #")[0])
        own = re.sub(r"(?<![\w$-])(?:KEY|ID)\b", self.latest_key, own)
        own = re.sub(rf"([\w-]{{9,}}){ANYTHING}", lambda start: self.whole(start[1]), own)
        for page, mine in {READERS_HOME: str(self.folder), "/tmp": str(self.folder), **self.servers}.items():
            own = own.replace(page, mine)
        return own

    def key(self, shown: str) -> str:
        """Return this reader's key that stands for one of the page, or for the beginning of one."""
        return next((own for page, own in self.keys.items() if page.startswith(shown)), shown)

    def whole(self, start: str) -> str:
        """Return the printed word that begins so."""
        found = re.search(rf"\b{re.escape(start)}[\w-]*", self.printed)
        return found[0] if found else start + ANYTHING

    def run(self, command: str) -> tuple[int, str]:
        """Run a line of a shell; what `mneme` does there is done by a process that has its imports."""
        said, pipe, last = command.rpartition(" | mneme ")
        words = shlex.split(f"mneme {last}" if pipe else command)
        if words[0] == "export":
            self.environment |= dict(each.split("=", 1) for each in words[1:])
            return 0, ""
        given = [*iter_settings(words)]
        installs = self.environment["PYTHONPATH"] != str(ROOT)  # a package that only a new process finds
        if words[len(given)] != "mneme" or installs or SHELL_SIGN.search(QUOTED.sub("", last)):
            return self.shell(command)
        status, stdin = self.shell(said) if pipe else (0, "")
        done = run_mneme(words[len(given) + 1 :], self.environment | dict(given), stdin)
        return status or done.returncode, told(done)

    def shell(self, command: str) -> tuple[int, str]:
        """Run a line that is not a command of Mneme's."""
        bash = ["bash", "-c", command]
        done = subprocess.run(
            bash, env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False
        )
        return done.returncode, told(done)

    def compare(self, step: Step, printed: list[str]) -> None:
        """Find the shown lines among the printed ones, and note which key stands for which."""
        lines = [line.rstrip() for line in step.shown or () if line.strip()]
        shown = [ANYTHING if line.strip() == ANYTHING else line for line in lines]
        report = "\n".join(["--- the page", *shown, "--- printed", *printed])
        found = [KEY.findall("\n".join(each)) for each in (shown, printed)]
        if len(found[0]) == len(found[1]):
            self.keys |= zip(*found, strict=True)
        if step.unordered:
            lacking = Counter(map(masked, shown)) - Counter([*map(masked, printed), ANYTHING])
            more = Counter(map(masked, printed)) - Counter(map(masked, shown))
            assert not lacking and (ANYTHING in shown or not more), f"$ {step.command}\n{report}"
            return
        pattern = "".join(LINES if line == ANYTHING else f"{expected(line)}\n" for line in shown)
        assert re.fullmatch(pattern, masked("".join(f"{line}\n" for line in printed))), (
            f"$ {step.command}\n{report}"
        )


def told(done: Done) -> str:
    """Return what was printed: the notices first, but an error last."""
    return done.stdout + done.stderr if done.returncode else done.stderr + done.stdout


def iter_settings(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the settings that are written before a command."""
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.isupper():
            return
        yield name, value


def expected(line: str) -> str:
    """Return the pattern of a shown line."""
    end = ANYTHING if line.endswith(ANYTHING) else ""
    return re.escape(masked(line.removesuffix(end))) + (REST if end else "")


def masked(text: str) -> str:
    """Put words in place of what is different each time."""
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return text


@pytest.mark.parametrize(
    "page",
    [pytest.param(each, marks=[] if each.stem in QUICK else [pytest.mark.long]) for each in TESTED],
    ids=lambda page: page.stem,
)
def test_the_commands_of_a_page_print_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    reader = Reader(tmp_path)
    with reader.running:
        for step in steps(page):
            reader.do(step)
