"""Groups of commands whose options are declared elsewhere, by contexts of graphs and by operations."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import typer
from typer.core import TyperGroup

from mneme.cli.options import Names

Function = TypeVar("Function", bound=Callable[..., None])


class Group(TyperGroup):
    """A group that makes a command's options only for the command that is run: what declares them is slow.

    The group's own help needs no more than names and first lines.
    """

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
    about: str | None,
    build: Callable[[], Callable[..., None]],
    hidden: bool = False,
    panel: str | None = None,
) -> None:
    """Add a command whose function is made when it is run; `panel` is its part of the list of commands."""

    def listed() -> None:
        """Be the command's entry in the list."""

    listed.build = build  # type: ignore[attr-defined]
    app.command(name, help=about, hidden=hidden, rich_help_panel=panel)(listed)


def options_of(
    app: typer.Typer,
    path: str,
    names: Names | None = None,
    without: str = "",
    *,
    hidden: bool = False,
    **models: str,
) -> Callable[[Function], Function]:
    """Declare a command some of whose parameters are models: each field becomes an option.

    `models` says of a parameter which model it is, as `module:Model`; `names` what a field is called on the
    command line where its own name is not the option's; `without` the fields that are no option.
    """

    def declare(function: Function) -> Function:
        def build() -> Callable[..., None]:
            from mneme.cli.derived import WithModels

            return WithModels(path, function, models, names or {}, without.split())

        built(app, path.rsplit(maxsplit=1)[-1], function.__doc__, build, hidden)
        return function

    return declare


@dataclass(frozen=True)
class Calls:
    """Commands that call one operation each and print its result; their options are its parameters.

    `operations` is the class, as `module:Class`, and `shows` the module of the functions that print.
    """

    app: typer.Typer
    path: str
    operations: str
    shows: str
    owner: Any = None
    """The option that says whose data it is; else the common one."""

    def __call__(
        self, name: str, operation: str, show: str, about: str, names: Names | None = None, **more: Any
    ) -> None:
        """Add a command; `more` is as for `mneme.cli.derived.Call`."""

        def build() -> Callable[..., None]:
            from mneme.cli.derived import Call

            return Call(
                self.operations,
                self.shows,
                self.owner,
                f"{self.path} {name}".strip(),
                operation,
                show,
                names or {},
                **more,
            )

        built(self.app, name, about, build)
