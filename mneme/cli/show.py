"""Print results: text for people, JSON Lines for programs."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.markup import escape

from mneme.api.memories import error_as_json
from mneme.cli.tables import Table
from mneme.core.errors import MnemeError, NotFound

console = Console(highlight=False)

errors = Console(stderr=True, highlight=False)

SIGNS = {
    "insert": "[green]+ insert[/]",
    "update": "[yellow]~ update[/]",
    "retire": "[red]- retire[/]",
    "discard": "[dim]· discard[/]",
}


def print_json(value: BaseModel | Mapping[str, Any]) -> None:
    """Print one line of JSON."""
    if isinstance(value, BaseModel):
        print(value.model_dump_json(), flush=True)
        return
    print(json.dumps(value, ensure_ascii=False, default=str), flush=True)


def print_error(error: MnemeError, as_json: bool = False) -> None:
    """Print what went wrong in one line, and how to fix it in the next."""
    if as_json:
        print(json.dumps(error_as_json(error)), file=sys.stderr, flush=True)
        return
    errors.print(f"mneme: {escape(str(error))}", soft_wrap=True)
    errors.print(f"  {escape(error.hint or 'See `mneme doctor`.')}", soft_wrap=True)


@contextmanager
def versions_listed_by(command: str) -> Iterator[None]:
    """Give a missing version a hint: the command that lists the versions."""
    try:
        yield
    except NotFound as error:
        raise NotFound(str(error), error.hint or f"`{command}` lists the versions.") from error


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


def print_table(title: str, columns: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table; cells are plain text."""
    console.print(Table(title, columns, [[str(cell) for cell in row] for row in rows]))
