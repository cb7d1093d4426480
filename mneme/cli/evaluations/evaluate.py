"""Run an evaluation with a progress bar, and print its report."""

from types import ModuleType

from pydantic import BaseModel, ValidationError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mneme.cli.evaluations.options import Schema, option_of, schemas
from mneme.cli.show import console, errors, print_json
from mneme.core.errors import BadInput


async def evaluate(name: str, module: ModuleType, given: Schema, as_json: bool) -> None:
    """Run an evaluation with the options that were given, and print its report."""
    options = _checked(name, module.Options, given)
    with _progress() as bar:
        task = bar.add_task(name, total=None)
        report = await module.run(
            options,
            lambda done, of, what: bar.update(task, completed=done, total=of, description=f"{name}: {what}"),
        )
    print_json(report.json()) if as_json else report.print(console)


def _checked(name: str, model: type[BaseModel], given: Schema) -> BaseModel:
    """Return the options. Raises BadInput, naming the option."""
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        option = option_of(field, schemas(model)[field])
        raise BadInput(
            f"{option} {first['input']}: {first['msg']}.", f"See `mneme eval {name} --help`."
        ) from error


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=errors, transient=True)
