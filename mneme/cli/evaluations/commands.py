"""`mneme eval NAME`: a command for every evaluation, with options from its model.

Evaluations are imported by name, so that no other code depends on them or on their packages.
"""

from importlib import import_module
from types import ModuleType
from typing import Any

import typer
from typer.core import TyperGroup

from mneme.cli.options import run_command
from mneme.core.errors import needs

PACKAGE = "mneme.evals"
EVALUATIONS = import_module(PACKAGE).EVALUATIONS


class Evaluations(TyperGroup):
    """List all evaluations, and import only the one that is run."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, listed, rest = super().resolve_command(ctx, args)
        return name, _command(str(name)) if listed else None, rest


app = typer.Typer(
    cls=Evaluations, no_args_is_help=True, help="Run an evaluation and print its table next to the paper's."
)


def _listed() -> None:
    """Be the entry of an evaluation in the list of commands."""


for _name, _evaluation in EVALUATIONS.items():
    app.command(_name, help=_evaluation.does)(_listed)


def _command(name: str) -> Any:
    """Return an evaluation's command with the options of its model."""
    from mneme.cli.evaluations.evaluate import evaluate
    from mneme.cli.evaluations.options import OptionsCommand

    module = _module(name)
    command = OptionsCommand(
        module.Options, lambda given, as_json: run_command(evaluate(name, module, given, as_json))
    )
    alone = typer.Typer(add_completion=False)
    alone.command(name, help=EVALUATIONS[name].does)(command)
    return typer.main.get_command(alone)


def _module(name: str) -> ModuleType:
    with needs(f"mneme eval {name}", "evals"):
        return import_module(f"{PACKAGE}.{EVALUATIONS[name].module}")
