"""Print results: text for people, JSON Lines for programs.

With `--json` only `emit` prints; without it only `console` does.

Memories, replies, files and answers of a server can contain control characters that clear the screen, write
to the clipboard or hide text. They are removed from everything printed here.
"""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from textwrap import shorten
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel
from rich.console import Console, ConsoleDimensions, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.prompt import Confirm
from rich.segment import Segment
from rich.text import Text

from mneme.api.rendering import Cell, cell_of, row_of
from mneme.api.tables import Table, figure
from mneme.core.errors import BadInput, MnemeError
from mneme.models.asking.counting import NOTHING, Asked, in_words

if TYPE_CHECKING:  # slow to import
    from rich.progress import Progress

CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters except tab and newline; without them the rest of a control sequence is plain text."""
MIN_WIDTH = 20
"""Minimum width of a text beside its label, in columns, even in a narrower window."""
KEY, SHORT = re.compile(r"\b[0-9a-f]{8}(?:[0-9a-f]{24}|(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b"), 8
"""A key or a thread's id, and the number of its characters shown in a table."""
T = TypeVar("T")
EXCERPTS, EXCERPT = {"prompt", "answer"}, 60
"""Columns of which a table shows the beginning, and how many characters."""
PIPED_COLUMNS, PIPED_LINES = 80, 25
"""Columns and lines of an output that is not a terminal."""


class CleanConsole(Console):
    """A console that prints no control character but its own, however the text is cut into pieces."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, highlight=False, emoji=False)  # ollama:fire:7b is a name
        self._width = None  # what COLUMNS says counts when something is printed, not when this is loaded

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Yield the printed segments without control characters."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else CONTROLS.sub("", text), style, control)


console = CleanConsole()
errors = CleanConsole(stderr=True)
OPERATION_SIGNS = {
    "insert": "[green]+ insert[/]",
    "update": "[yellow]~ update[/]",
    "retire": "[red]- retire[/]",
    "discard": "[dim]· discard[/]",
}


@contextmanager
def printing(as_json: bool = False) -> Iterator[None]:
    """Print JSON Lines inside the context if requested, else text."""
    # Rich would take the window's width from stdin or stderr: what goes into a pipe must not depend on it
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdigit() and int(columns) else PIPED_COLUMNS
    for each in (console, errors):
        if not each.is_terminal:
            each.size = ConsoleDimensions(width, PIPED_LINES)
    before, console.quiet = console.quiet, as_json
    try:
        yield
    finally:
        console.quiet = before


def prints_json() -> bool:
    """Return whether the command prints JSON Lines."""
    return console.quiet


def emit(value: BaseModel | Mapping[str, Any]) -> None:
    """Print one line of JSON, where the command prints JSON."""
    if console.quiet:
        if isinstance(value, BaseModel):
            text = value.model_dump_json()
        else:
            text = json.dumps(value, ensure_ascii=False, default=str)
        print(_escaped(text), flush=True)  # a program reads each line as it comes; Rich would wrap it


def print_rows(found: Any, *, titled: str = "") -> None:
    """Print records as a table, or one as a row of it; columns without any cell are left out."""
    records = found if isinstance(found, Sequence) and not isinstance(found, str) else [found]
    if not records:
        console.print("[dim]nothing[/]")
        return
    rows = [{name: _cell(name, each) for name, each in row_of(record).items()} for record in records]
    columns = [name for name in dict.fromkeys(chain(*rows)) if any(row.get(name) for row in rows)]
    print_table(titled, columns, ([row.get(name, "") for name in columns] for row in rows))


def _cell(name: str, cell: Cell) -> str:
    """Return a cell as text: a key by its first letters, the beginning of what may be long."""
    if isinstance(cell, float):
        return f"{cell:.2f}"
    text = shortened("" if cell is None else str(cell))
    return shorten(text, EXCERPT, placeholder="…") if name in EXCERPTS else text


def shortened(text: str) -> str:
    """Return a text with the first letters of each key in it."""
    return KEY.sub(lambda found: found[0][:SHORT], text)


def print_record(record: BaseModel | Mapping[str, Any]) -> None:
    """Print all fields of a record, and of a record in it, below one another."""
    fields = dict(record)
    for name in [name for name, each in fields.items() if isinstance(each, BaseModel)]:
        fields |= dict(fields.pop(name))
    cells = {name: "none" if each == {} else cell_of(each) for name, each in fields.items()}
    shown = {name: figure(cell) if isinstance(cell, float) else cell for name, cell in cells.items()}
    rows = ((name, "–" if cell is None else cell) for name, cell in shown.items())
    print_table("", ("field", "value"), rows)


def print_result(result: Any, show: Callable[[Any], object] = print_rows, called: str = "") -> None:
    """Print an operation's result as JSON Lines, or as text with `show`, which is not given an empty result.

    In JSON, `called` names a result that is no object.
    """
    several = isinstance(result, Sequence) and not isinstance(result, str)
    if not prints_json():
        print_rows([]) if result is None or (several and not result) else show(result)
    elif called:
        emit({called: result})
    else:
        for each in result if several else filter(None, [result]):
            emit(each)


def read_file(file: Path, hint: str) -> str:
    """Return the text of a file, its lines ended by `\\n`; `-` is stdin. Raises BadInput, with this hint."""
    try:
        if str(file) != "-":
            raw = file.read_bytes()
        else:  # it blocks the loop, where asyncio's handler would only ask for the end: Ctrl-C raises here
            before = signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                raw = sys.stdin.buffer.read()
            finally:
                signal.signal(signal.SIGINT, before)
        return raw.decode("utf-8-sig").replace("\r\n", "\n")  # as editors on Windows write it
    except OSError as error:
        raise BadInput(f"Cannot read {file}: {error.strerror}.", hint) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8 text.", hint) from error


async def from_person(read: Callable[[], T]) -> T:
    """Return the result of `read` on standard input; Ctrl-C ends the wait at once."""
    taken = Future[T]()

    def take(_stdin: object) -> None:  # holds it: closed while it is read, it would abort Python at its end
        taken.set_running_or_notify_cancel()  # else Ctrl-C would cancel it, and `set_result` raise here
        try:
            taken.set_result(read())
        except Exception as error:  # noqa: BLE001  (it is raised where this is awaited)
            taken.set_exception(error)

    # a daemon, since nothing ends a thread that reads: the process would wait for one of the executor's
    Thread(target=take, args=(sys.stdin,), daemon=True).start()
    return await asyncio.wrap_future(taken)


@contextmanager
def resumable(how: str) -> Iterator[None]:
    """Where Ctrl-C ends the work inside, print what is kept and which command goes on."""
    try:
        yield
    except asyncio.CancelledError:  # nothing but Ctrl-C cancels a command
        say(f"\nStopped. {how}", errors)
        raise


def must_be_unicode(text: str, name: str, hint: str) -> None:
    """Raise BadInput, with this hint, where a text was read from bytes that are not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:  # Python reads such bytes as surrogates
        raise BadInput(f"{name} is not UTF-8 text.", hint) from error


def is_written(text: str, file: Path) -> bool:
    """Write a file and return True; for `-` print the text and return False. Raises BadInput."""
    if str(file) == "-":
        print_lines(text)
        return False
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"Cannot write {file}: {error.strerror}.", "Choose another file.") from error
    return True


def confirmed(yes: bool) -> bool:
    """Ask a person to confirm an erasure, unless `yes` was given. Raises BadInput without a terminal."""
    if not yes and not sys.stdin.isatty():
        raise BadInput("There is no terminal to ask for confirmation.", "Add --yes to erase without asking.")
    try:
        return yes or Confirm.ask(
            "Erase it? This cannot be undone.", console=errors if prints_json() else console
        )
    except EOFError:  # Ctrl-D is no yes
        return False


def say(text: str, to: Console = console) -> None:
    """Print markup, without breaking its lines: the terminal wraps them."""
    to.print(text, soft_wrap=True)


def print_text(text: str) -> None:
    """Print a text as it is."""
    console.print(escape(text))


def print_fields(what: Mapping[str, object]) -> None:
    """Print a few named figures: on one line, or as JSON."""
    emit(what)
    console.print(", ".join(f"{name}: {value}" for name, value in what.items()), soft_wrap=True)


def progress_bar(*, elapsed: bool = False) -> "Progress":
    """Return a progress bar, done of total, on the terminal's error stream."""
    from rich import progress  # slow to import

    clock = progress.TimeElapsedColumn() if elapsed else progress.TimeRemainingColumn()
    named = progress.TextColumn("{task.description}")
    columns = (named, progress.BarColumn(), progress.MofNCompleteColumn(), clock)
    return progress.Progress(*columns, console=errors, transient=elapsed)


def print_lines(text: str) -> None:
    """Print lines of JSON or YAML as they are, but for control characters."""
    sys.stdout.write(_escaped(text))


def print_code(text: str, language: str) -> None:
    """Print JSON, YAML or a diff in colours."""
    from rich.syntax import Syntax

    # as text: a Syntax would break and pad its lines, and they could not be copied
    console.print(Syntax("", language, background_color="default").highlight(text), soft_wrap=True, end="")


def _escaped(text: str) -> str:
    """Escape the control characters that writers of JSON and YAML leave in strings, as both read them."""
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def print_error(error: MnemeError, asked: Asked = NOTHING) -> None:
    """Print the error in one line, and how to fix it in the next; before it, the calls made so far."""
    if prints_json():
        said: dict[str, Any] = {"error": type(error).__name__, "message": str(error), "hint": error.hint}
        if asked["questions"]:
            said["asked"] = asked
        print(json.dumps(said), file=sys.stderr, flush=True)
        return
    if asked["questions"]:
        say(in_words(asked), errors)
    say(f"mneme: {escape(str(error))}", errors)
    say(f"  {escape(error.hint or 'See `mneme doctor`.')}", errors)


def print_outcome(outcome: Mapping[str, Any]) -> None:
    """Print what the memory agent did with a message, and why."""
    operations = outcome.get("operations", [])
    if not operations:
        console.print(f"  {OPERATION_SIGNS['discard']} [dim]{escape(outcome['rationale'])}[/]")
    for each in operations:
        before = f"[strike dim]{escape(each['before'])}[/] → " if each["before"] else ""
        console.print(f"  {OPERATION_SIGNS[each['event']]} {before}{escape(each['content'])}")
        console.print(f"    [dim]why: {escape(each['reason'])}[/]")
        for other in each["beside"]:
            console.print(f"    [dim]may contradict: {escape(other)}[/]")


def print_beside(label: str, text: str) -> None:
    """Print a label and, to the right of it, a text that is wrapped within the window; both are markup."""
    head = Text.from_markup(label)
    lines = Text.from_markup(text).wrap(console, max(console.width - head.cell_len, MIN_WIDTH)) or [Text()]
    for line in lines:
        line.rstrip()  # Rich keeps the space at which it broke the line
        console.print(Text.assemble(head, line), soft_wrap=True)
        head = Text(" " * head.cell_len)


def print_shared(lines: Sequence[str]) -> None:
    """Print the memories of other workflows that agents are shown."""
    print_beside("  [cyan]shared[/]  ", escape("\n".join(lines)))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table; cells are plain text."""
    console.print(Table(title, columns, [[str(cell) for cell in row] for row in rows]))
