"""Groups of commands. The function of a command is imported when the command runs: importing it is slow.

A group lists its commands with the first line of each function's docstring, which is read from the source.
"""

import re
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

HERE = "mneme.cli"


class Group(TyperGroup):
    """A group that makes a command only where it is run; for its own help it needs names and help texts."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        about = getattr(getattr(command, "callback", None), "about", None)
        if command is not None and about is not None and not command.help:
            command.help = about()
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        build = getattr(getattr(command, "callback", None), "build", None)
        if command is None or build is None:
            return name, command, rest
        alone = typer.Typer(add_completion=False)
        alone.command(name, help=command.help)(build())
        return name, typer.main.get_command(alone), rest


def group(about: str, kind: type[TyperGroup] = Group) -> typer.Typer:
    """Return an empty group of commands."""
    return typer.Typer(cls=kind, no_args_is_help=True, help=about)


def built(
    app: typer.Typer,
    name: str,
    about: str | Callable[[], str],
    build: Callable[[], Callable[..., None]],
    *,
    hidden: bool = False,
    panel: str | None = None,
) -> None:
    """Add a command whose function is made when it is run; `about` is its help, or reads it.

    `panel` is the part of the list of commands where it stands.
    """

    def listed() -> None:
        """Be the command's entry in the list."""

    listed.build = build  # type: ignore[attr-defined]
    if callable(about):
        listed.about = about  # type: ignore[attr-defined]
    app.command(name, help=about if isinstance(about, str) else "", hidden=hidden, rich_help_panel=panel)(
        listed
    )


def function(app: typer.Typer, name: str, place: str, *, hidden: bool, prints_json: bool) -> None:
    """Add a function of `mneme.cli`, as `module:function`, as a command."""

    def build() -> Callable[..., None]:
        from mneme.cli.derived import Command, named

        return Command(named(place), prints_json=prints_json)

    built(app, name, partial(_docstring, place), build, hidden=hidden)


def _docstring(place: str) -> str:
    """Read a function's docstring without importing its module."""
    module, _, name = place.partition(":")
    spec = find_spec(f"{HERE}.{module}")
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    found = re.search(rf'^(async )?def {name}\(.*?"""(.+?)"""', source, re.MULTILINE | re.DOTALL)
    return cleandoc(found[2]) if found else ""


def call(app: typer.Typer, name: str, *, help: str, **about: Any) -> None:
    """Add a command that calls an operation; `about` is as for `mneme.cli.derived.Call`."""

    def build() -> Callable[..., None]:
        from mneme.cli.derived import Call

        return Call(**about)

    built(app, name, help, build)
