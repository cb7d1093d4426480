"""The tree of commands, as `commands.toml` declares it, and a command for each evaluation.

The function of a command is imported when the command runs: importing it is slow. A group lists its commands
with the first line of each function's docstring, which is read from the source.
"""

import gc
import re
import tomllib
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from mneme.cli.options import RENAMED
from mneme.core.errors import BadInput, needs

if TYPE_CHECKING:  # slow to import
    from mneme.cli.derived import Command

EVALS, COMPARE = "mneme.evals", "compare"
Build = Callable[[], "Command"]


class Group(TyperGroup):
    """A group that makes a command only where it is run; for its own help it needs names and help texts."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)  # also of each command of a list, to show its help
        place = getattr(getattr(command, "callback", None), "place", "")
        if command is not None and place and not command.help:
            command.help = _docstring(place)
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        build = getattr(getattr(command, "callback", None), "build", None)
        if command is None or build is None:
            return name, command, rest
        alone = typer.Typer(add_completion=False)  # of an app with one command Typer makes that command
        alone.command(name, help=command.help)(build())
        built = typer.main.get_command(alone)
        options = {option for each in built.params for option in (*each.opts, *each.secondary_opts)}
        for old in (given.partition("=")[0] for given in takewhile("--".__ne__, rest)):  # then come arguments
            new = [option for option in RENAMED.get(old, "").split() if option in options]
            # an option of an earlier version; but the shell's completion reads a line without judging it
            if new and old not in options and not ctx.resilient_parsing:
                raise BadInput(f"{old} is {new[0]} now.", f"See `{ctx.command_path} {name} --help`.")
        return name, built, rest


class TaskFirst(Group):
    """Treat a first word that is no command as the task: `discuss TASK.md` is `discuss run TASK.md`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in {"--help", "-h"}:
            args = ["run", *args]
        return super().parse_args(ctx, args)


def declared() -> dict[str, Any]:
    """Return the file's declarations."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def add_commands(app: typer.Typer) -> None:
    """Add all commands, in the order in which they are listed."""
    _add(app, about := declared())
    evidence = about["panels"][-1][0]  # the evaluations are no commands of the file: their panel is its last
    does = "Run an evaluation and print its table next to the paper's."
    evaluations = typer.Typer(cls=Group, no_args_is_help=True, help=does)
    for name, each in import_module(EVALS).EVALUATIONS.items():
        build = partial(_evaluation, name, f"{EVALS}.{each.module}")
        _built(evaluations, name, build, help=each.does, rich_help_panel=each.paper)
        if name == COMPARE:  # also by itself: it is what a person who chooses a memory looks for
            _built(app, name, build, help=each.does, rich_help_panel=evidence)
    app.add_typer(evaluations, name="eval", rich_help_panel=evidence)


def _add(app: typer.Typer, about: dict[str, Any]) -> None:
    """Add the commands of a group, and the groups below it."""
    hidden, without_json = about.get("hidden", ()), about.get("without_json", ())
    panels = {name: title for title, names in about.get("panels", ()) for name in names.split()}
    for each in about.get("runs", ()):
        name, _, place = each.rpartition("=")
        name = name or place.partition(":")[2].strip("_").replace("_", "-")
        how: dict[str, Any] = {"hidden": name in hidden, "rich_help_panel": panels.get(name)}
        _built(app, name, partial(_function, place, name not in without_json), place, **how)
    for name, below in about.items():
        if not isinstance(below, dict):
            continue  # a field of the group itself
        if "calls" in below:
            _built(app, name, partial(_call, **below), help=below["help"], rich_help_panel=panels.get(name))
            continue
        kind = TaskFirst if below.get("reads_task_first") else Group
        inner = typer.Typer(cls=kind, no_args_is_help=True, help=below["help"])
        _add(inner, below)
        app.add_typer(inner, name=name, rich_help_panel=panels.get(name))


def _built(
    app: typer.Typer,
    name: str,
    build: Callable[[], "Command"],
    place: str = "",
    *,
    help: str = "",
    **how: Any,
) -> None:
    """Add a command that is built when it is run; without help, its function's docstring is read."""

    def listed() -> None:
        """Be the command's entry in the list."""

    # Typer's wrapper takes the attributes over, and a click command has no field for them
    listed.build, listed.place = build, place  # type: ignore[attr-defined]
    app.command(name, help=help, **how)(listed)


def _docstring(place: str) -> str:
    """Read the docstring of `module:function` without importing its module."""
    module, _, name = place.partition(":")
    spec = find_spec(f"mneme.cli.{module}")
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    # parsing the files would take longer than all the rest of `--help`
    found = re.search(rf'^(async )?def {name}\(.*?"""(.+?)"""', source, re.MULTILINE | re.DOTALL)
    return cleandoc(found[2]) if found else ""


def _function(place: str, prints_json: bool) -> "Command":
    from mneme.cli.derived import Command, named

    command = Command(named(place), prints_json=prints_json)
    gc.enable()  # such a function may go on for long; the call of an operation does not
    return command


def _call(help: str, **about: Any) -> "Command":
    from mneme.cli.derived import call

    return call(**about)


def _evaluation(name: str, place: str) -> "Command":
    """Return an evaluation's command: it prints the report, with a progress bar meanwhile.

    Evaluations are imported by name, so that no other code depends on them or on their packages.
    """
    from mneme.cli.derived import Command, Fields
    from mneme.cli.show import console, emit, progress_bar

    with needs(f"mneme eval {name}", "evals"):
        module = import_module(place)
    gc.enable()  # `main` switched it off, and an evaluation runs for long

    async def evaluate(options: Annotated[Any, Fields(module.Options, whole=True)]) -> None:
        with progress_bar(elapsed=True) as bar:
            task = bar.add_task(name, total=None)

            def progress(done: int, of: int, what: str) -> None:
                bar.update(task, completed=done, total=of, description=f"{name}: {what}")

            report = await module.run(options, progress)
        emit(report.json())
        report.print(console)

    return Command(evaluate)
