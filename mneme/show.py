"""How results look in the terminal: text for people, JSON Lines for programs."""

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mneme.errors import MnemeError
from mneme.operations import error_as_json

console = Console(highlight=False)

errors = Console(stderr=True, highlight=False)

SIGNS = {"insert": "[green]+ insert[/]", "update": "[yellow]~ update[/]", "discard": "[dim]· discard[/]"}


def print_json(value: BaseModel | Mapping[str, Any]) -> None:
    """Print one line of JSON."""
    if isinstance(value, BaseModel):
        print(value.model_dump_json(), flush=True)
        return
    print(json.dumps(value, ensure_ascii=False, default=str), flush=True)


def print_error(error: MnemeError, as_json: bool = False) -> None:
    """Say in one line what went wrong, and in another what mends it."""
    if as_json:
        print(json.dumps(error_as_json(error)), file=sys.stderr, flush=True)
        return
    errors.print(f"mneme: {escape(str(error))}", soft_wrap=True)
    errors.print(f"  {escape(error.hint or 'See `mneme --help`.')}", soft_wrap=True)


def print_outcome(outcome: Mapping[str, Any]) -> None:
    """Say what the memory agent did with a message, and why."""
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


def print_table(title: str, columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table; cells are plain text."""
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(escape(str(cell)) for cell in row))
    console.print(table)
