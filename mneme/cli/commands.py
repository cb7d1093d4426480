"""Every command of `mneme`, as `commands.toml` declares it, and one for each evaluation."""

import tomllib
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from mneme.cli.groups import Group, built, call, function, group

EVALS = "mneme.evals"
RUN = "run"


class TaskFirst(Group):
    """Read a first word that is no command as the task: `discuss TASK.md` is `discuss run TASK.md`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in {"--help", "-h"}:
            args = [RUN, *args]
        return super().parse_args(ctx, args)


def declared() -> dict[str, Any]:
    """Return what the file declares."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def add_commands(app: typer.Typer) -> None:
    """Add all commands, in the order in which they are listed."""
    _add(app, declared())
    evaluations = group("Run an evaluation and print its table next to the paper's.")
    for name, each in import_module(EVALS).EVALUATIONS.items():
        built(evaluations, name, each.does, partial(_evaluation, name, each.module), panel=each.paper)
    app.add_typer(evaluations, name="eval")


def _add(app: typer.Typer, about: dict[str, Any]) -> None:
    """Add the commands of a group, and the groups below it."""
    hidden, without_json = about.get("hidden", ()), about.get("without_json", ())
    for each in about.get("runs", ()):
        name, _, place = each.rpartition("=")
        name = name or place.partition(":")[2].strip("_").replace("_", "-")
        function(app, name, place, hidden=name in hidden, prints_json=name not in without_json)
    for name, below in about.items():
        if not isinstance(below, dict):
            continue
        if "calls" in below:
            call(app, name, **below)
            continue
        inner = group(below["help"], TaskFirst if below.get("reads_task_first") else Group)
        _add(inner, below)
        app.add_typer(inner, name=name)


def _evaluation(name: str, module: str) -> Any:
    from mneme.cli.evaluate import command_of

    return command_of(name, f"{EVALS}.{module}")
