"""Run an evaluation with a progress bar, and print its report."""

from types import ModuleType

from pydantic import BaseModel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mneme.cli.show import console, errors, print_json


async def evaluate(name: str, module: ModuleType, options: BaseModel, as_json: bool) -> None:
    """Run an evaluation with the options that were given, and print its report."""
    with _progress() as bar:
        task = bar.add_task(name, total=None)
        report = await module.run(
            options,
            lambda done, of, what: bar.update(task, completed=done, total=of, description=f"{name}: {what}"),
        )
    print_json(report.json()) if as_json else report.print(console)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=errors, transient=True)
