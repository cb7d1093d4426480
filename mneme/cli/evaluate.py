"""`mneme eval NAME`: a command for every evaluation, with options from its model.

Evaluations are imported by name, so that no other code depends on them or on their packages.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated

from pydantic import BaseModel

from mneme.cli.derived import Command, Fields
from mneme.cli.show import console, emit, progress_bar
from mneme.core.errors import needs


def command_of(name: str, place: str) -> Callable[..., None]:
    """Return an evaluation's command: it prints the report, with a progress bar meanwhile."""
    with needs(f"mneme eval {name}", "evals"):
        module = import_module(place)

    async def evaluate(options: Annotated[BaseModel, Fields(module.Options)]) -> None:
        with progress_bar(elapsed=True) as bar:
            task = bar.add_task(name, total=None)
            report = await module.run(
                options,
                lambda done, of, what: bar.update(
                    task, completed=done, total=of, description=f"{name}: {what}"
                ),
            )
        emit(report.json())
        report.print(console)

    return Command(evaluate)
