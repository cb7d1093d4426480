"""`mneme embedder …`: install the bundled embedder."""

import asyncio

import typer

from mneme.cli.options import Json, run_command

app = typer.Typer(no_args_is_help=True, help="Install the bundled embedder, which memory search needs.")


@app.callback()
def about() -> None:
    """Make `install` a subcommand; Typer would drop the name of a single command."""


@app.command()
def install(as_json: Json = False) -> None:
    """Download the embedder's weights (90 MB), and convert them to the file that it runs on."""
    run_command(_install(as_json))


async def _install(as_json: bool) -> None:
    from mneme.cli.show import console, print_json
    from mneme.core.settings import settings
    from mneme.models.embedding.absent import NAME
    from mneme.models.embedding.minilm_install import install

    done = await asyncio.to_thread(install, settings().cache)
    if as_json:
        print_json({"embedder": NAME, "installed": not done.already, "file": str(done.file)})
        return
    console.print(f"{NAME} {'was installed already' if done.already else 'is installed'}: {done.file}")
