"""Print results: text for people, JSON Lines for programs.

Memories, replies, files and answers of a server can hold characters that a terminal obeys: they clear the
screen, write to the clipboard or hide text. Nothing printed here has any of them.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.text import Text

from mneme.cli.tables import Table
from mneme.core.errors import MnemeError
from mneme.models.asking.counting import NOTHING, Asked, in_words

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters but tab and newline; without them the rest of a control sequence is plain text."""


NARROWEST = 20
"""Columns for a text beside its label, however narrow the window is."""
PIPED, HEIGHT = 80, 25
"""The columns and lines of what is no terminal."""


class CleanConsole(Console):
    """A console that prints no control character but its own, however the text is cut into pieces.

    What goes into a file or a pipe is as wide as COLUMNS says, or 80: the window beside it changes nothing.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, emoji=False)  # ollama:fire:7b is a name
        self._width = None  # what COLUMNS says counts when something is printed, not when this is loaded

    @property
    def size(self) -> ConsoleDimensions:
        """Return how much room there is."""
        if self.is_terminal or self._width is not None:
            return super().size
        columns = os.environ.get("COLUMNS", "")
        return ConsoleDimensions(int(columns) if columns.isdigit() and int(columns) else PIPED, HEIGHT)

    @size.setter
    def size(self, new_size: tuple[int, int]) -> None:
        """Set how much room there is."""
        self._width, self._height = new_size

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the pieces of what is printed, clean."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else CONTROLS.sub("", text), style, control)


console = CleanConsole()

errors = CleanConsole(stderr=True)

SIGNS = {
    "insert": "[green]+ insert[/]",
    "update": "[yellow]~ update[/]",
    "retire": "[red]- retire[/]",
    "discard": "[dim]· discard[/]",
}


def print_json(value: BaseModel | Mapping[str, Any]) -> None:
    """Print one line of JSON."""
    if isinstance(value, BaseModel):
        print(_escaped(value.model_dump_json()), flush=True)
        return
    print(_escaped(json.dumps(value, ensure_ascii=False, default=str)), flush=True)


def print_result(result: Any, as_json: bool, show: Callable[[Any], object], called: str = "") -> None:
    """Print what an operation returned: as JSON Lines, or as text by `show`, which is not asked for nothing.

    In JSON, what is no object is `called` so.
    """
    several = isinstance(result, Sequence) and not isinstance(result, str)
    if not as_json:
        console.print("[dim]nothing[/]") if result is None or (several and not result) else show(result)
    elif called:
        print_json({called: result})
    else:
        for each in result if several else filter(None, [result]):
            print_json(each)


def print_records(
    found: Sequence[Mapping[str, Any]], as_json: bool, title: str = "", columns: Sequence[str] = ()
) -> None:
    """Print records with the same fields, as JSON Lines or as a table with a column for each field."""
    if as_json:
        for each in found:
            print_json(each)
        return
    print_table(title, columns or [*(found[0] if found else ())], (each.values() for each in found))


def print_fields(what: Mapping[str, object], as_json: bool = False) -> None:
    """Print a few named figures on one line."""
    if as_json:
        print_json(what)
        return
    console.print(", ".join(f"{name}: {value}" for name, value in what.items()))


def print_lines(text: str) -> None:
    """Print lines of JSON or YAML as they are, but for control characters."""
    sys.stdout.write(_escaped(text))


def _escaped(text: str) -> str:
    """Escape, as JSON and YAML read it, the control characters that their writers leave in strings."""
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_error(error: MnemeError, as_json: bool = False, asked: Asked = NOTHING) -> None:
    """Print what went wrong in one line, and how to fix it in the next; before it, what was asked so far."""
    if as_json:
        said: dict[str, Any] = {"error": type(error).__name__, "message": str(error), "hint": error.hint}
        if asked["questions"]:
            said["asked"] = asked
        print(json.dumps(said), file=sys.stderr, flush=True)
        return
    if asked["questions"]:
        errors.print(in_words(asked), soft_wrap=True)
    errors.print(f"mneme: {escape(str(error))}", soft_wrap=True)
    errors.print(f"  {escape(error.hint or 'See `mneme doctor`.')}", soft_wrap=True)


def print_outcome(outcome: Mapping[str, Any]) -> None:
    """Print what the memory agent did with a message, and why."""
    operations = outcome.get("operations", [])
    if not operations:
        console.print(f"  {SIGNS['discard']} [dim]{escape(outcome['rationale'])}[/]")
    for operation in operations:
        _print_operation(operation)


def _print_operation(operation: Mapping[str, Any]) -> None:
    sign = SIGNS[operation["event"]]
    before = f"[strike dim]{escape(operation['before'])}[/] → " if operation["before"] else ""
    console.print(f"  {sign} {before}{escape(operation['content'])}")
    console.print(f"    [dim]why: {escape(operation['reason'])}[/]")
    for each in operation["beside"]:
        console.print(f"    [dim]may contradict: {escape(each)}[/]")


def print_beside(label: str, text: str) -> None:
    """Print a label and, to the right of it, a text that is wrapped within the window; both are markup."""
    head = Text.from_markup(label)
    lines = Text.from_markup(text).wrap(console, max(console.width - head.cell_len, NARROWEST)) or [Text()]
    for line in lines:
        line.rstrip()
        console.print(Text.assemble(head, line), soft_wrap=True)
        head = Text(" " * head.cell_len)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table; cells are plain text."""
    console.print(Table(title, columns, [[str(cell) for cell in row] for row in rows]))
