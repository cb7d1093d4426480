"""Record `mneme demo` into docs/pictures/demo.svg: what it prints, line by line, as fast as it came.

Rich draws the terminal; a rule of CSS for each line lets it appear at its time. Rules answer.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from tests.doubles.quiet import quiet

DOCS = Path(__file__).parents[2]
WIDTH, PROMPT = 84, "$ mneme demo"
PICKED = ("My dog Max", "Actually, Max", "Max gets anxious", "Max lives with", "What do we know")
"""How the messages begin that are shown; the whole demo would not fit."""
PAUSE, READING = 1.6, 12.0
"""Seconds before a message, in which a person would type; and before the recording begins anew."""
FORMAT = """<svg viewBox="0 0 {terminal_width} {terminal_height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="-9" y="-9" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
<rect fill="#282828" width="{terminal_width}" height="{terminal_height}" rx="8"/>
<g transform="translate(9, 9)" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""
LINE = re.compile(r'(clip-path="url\(#demo-line-(\d+)\)")')


class Printed(NamedTuple):
    """A line of the terminal, and when it appears, in seconds."""

    at: float
    text: str


def main() -> None:
    """Run the demo in a home of its own, and draw what it prints."""
    lines = list(_picked(_run()))
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    for line in lines:
        console.print(Text.from_ansi(line.text), no_wrap=True, overflow="crop")
    drawn = console.export_svg(theme=DIMMED_MONOKAI, code_format=FORMAT, unique_id="demo")
    drawn = LINE.sub(lambda found: f'{found[1]} style="animation-name: l{found[2]}"', drawn)
    drawn = drawn.replace("</style>", f"{_times(lines)}</style>")
    DOCS.joinpath("pictures/demo.svg").write_text(drawn, encoding="utf-8")


def _run() -> Iterator[Printed]:
    """Yield what the demo prints and when."""
    with tempfile.TemporaryDirectory() as home:
        demo = subprocess.Popen(
            [sys.executable, "-u", "-m", "mneme", "demo"],
            env=quiet(Path(home), COLUMNS=str(WIDTH), FORCE_COLOR="1", PYTHONPATH=str(DOCS.parent)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert demo.stdout is not None
        for line in demo.stdout:
            yield Printed(time.monotonic(), line.rstrip("\n"))


def _picked(lines: Iterator[Printed]) -> Iterator[Printed]:
    """Yield the shown turns, each a pause after the one before; within a turn the times are the real ones."""
    yield Printed(0.0, PROMPT)
    clock, before, is_shown = PAUSE, 0.0, False
    for at, text in lines:
        plain = Text.from_ansi(text).plain
        if plain.startswith(("session ", "memory ")) and not plain.startswith("memory agent"):
            is_shown = plain.startswith("session")
        elif plain.startswith("you: "):
            is_shown = plain.removeprefix("you: ").startswith(PICKED)
            clock += PAUSE if is_shown else 0.0
            before = at
        if is_shown:
            clock += max(0.0, min(at - before, 2.0))
            before = at
            yield Printed(clock, text)
            is_shown = not plain.startswith("session")


def _times(lines: list[Printed]) -> str:
    """Return the rules by which each line appears at its time, and all again from the beginning."""
    whole = lines[-1].at + READING
    rules = [f"[clip-path*=line] {{ animation: {whole:.1f}s infinite; }}"]
    for number, line in enumerate(lines):
        share = 100 * line.at / whole
        hidden = f"0%, {share:.2f}% {{ opacity: 0; }} " if number else ""
        rules.append(f"@keyframes l{number} {{ {hidden}{share + 0.01:.2f}%, 100% {{ opacity: 1; }} }}")
    still = "@media (prefers-reduced-motion: reduce) { [clip-path*=line] { animation: none !important; } }"
    return "\n".join([*rules, still, ""])


if __name__ == "__main__":
    main()
