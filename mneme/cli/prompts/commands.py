"""`mneme prompts …`: what models are asked, and wordings of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.options import Json

prompts = typer.Typer(no_args_is_help=True, help="Show the prompts that models are given, and use your own.")
Name = Annotated[str, typer.Argument(metavar="WORKFLOW/PROMPT", help="A name that `list` shows.")]


@prompts.command("list")
def list_prompts(as_json: Json = False) -> None:
    """List all prompts; those with a file of yours in MNEME_PROMPTS are marked."""
    from mneme.cli.prompts import prompts as run

    run.list_(as_json)


@prompts.command("show")
def show_prompt(name: Name) -> None:
    """Print a prompt as it is used now, in YAML: a file to start your own from."""
    from mneme.cli.prompts import prompts as run

    run.show(name)


@prompts.command("export")
def export_prompts(
    folder: Annotated[Path, typer.Argument(help="Where to write them; files that are there stay.")],
    name: Annotated[str, typer.Argument(metavar="[WORKFLOW/PROMPT]", help="Only this one.")] = "",
) -> None:
    """Write the prompts as files to change; use them with MNEME_PROMPTS=FOLDER."""
    from mneme.cli.prompts import prompts as run

    run.export(folder, name)


@prompts.command("check")
def check_prompts(as_json: Json = False) -> None:
    """Check every file in MNEME_PROMPTS against the type of its prompt; exit with 1 if one does not fit."""
    from mneme.cli.prompts import prompts as run

    raise typer.Exit(run.check(as_json))
