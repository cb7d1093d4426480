"""`mneme eval NAME`: a command for every evaluation, with options from its model.

Evaluations are imported by name, so that no other code depends on them or on their packages.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from mneme.cli.groups import built, group
from mneme.cli.options import run_command
from mneme.core.errors import needs

PACKAGE = "mneme.evals"
EVALUATIONS = import_module(PACKAGE).EVALUATIONS
app = group("Run an evaluation and print its table next to the paper's.")


def _build(name: str) -> Callable[..., None]:
    """Return an evaluation's command with the options of its model."""
    from mneme.cli.derived import OptionsCommand
    from mneme.cli.evaluations.evaluate import evaluate

    with needs(f"mneme eval {name}", "evals"):
        module = import_module(f"{PACKAGE}.{EVALUATIONS[name].module}")
    return OptionsCommand(
        f"eval {name}",
        module.Options,
        lambda given, as_json: run_command(evaluate(name, module, given, as_json)),
    )


for _name, _evaluation in EVALUATIONS.items():
    built(app, _name, _evaluation.does, partial(_build, _name), panel=_evaluation.paper)
