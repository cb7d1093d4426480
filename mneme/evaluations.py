"""`mneme eval …`: regenerate a result table."""

from importlib import import_module
from typing import Any

from pydantic import TypeAdapter, ValidationError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mneme.errors import BadInput, MnemeError
from mneme.show import console, errors, print_json


async def evaluate(name: str, options: dict[str, Any], as_json: bool) -> None:
    """Run one evaluation with those options that were given, and print its report."""
    module = _module(name)
    given = {option: value for option, value in options.items() if value not in (None, [])}
    try:
        chosen = TypeAdapter(module.Options).validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        field, *item = (str(part) for part in first["loc"])
        option = (field.removesuffix("s") if item else field).replace("_", "-")
        raise BadInput(
            f"--{option} {first['input']}: {first['msg']}.", f"mneme eval {name} --help"
        ) from error
    with _progress() as bar:
        task = bar.add_task(name, total=None)
        report = await module.run(
            chosen,
            lambda done, of, what: bar.update(task, completed=done, total=of, description=f"{name}: {what}"),
        )
    print_json(report.json()) if as_json else report.print(console)


def _module(name: str) -> Any:
    try:
        return import_module(f"evals.{name}")
    except ImportError as error:
        raise MnemeError(
            f"mneme eval {name} needs {error.name}.", 'Install it: pip install "mneme[evals]"'
        ) from error


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=errors, transient=True)
