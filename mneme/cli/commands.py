"""`mneme graph` and `mneme doctor`: commands that belong to no workflow."""

from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.options import Json, run_command

app = typer.Typer()


@app.command()
def graph(
    name: Annotated[str, typer.Argument(help="A graph in langgraph.json, e.g. memory_agent.")],
    png: Annotated[Path | None, typer.Option("--png", help="Also draw it into this file.")] = None,
    as_json: Json = False,
) -> None:
    """Print a graph as Mermaid."""
    from mneme.cli.draw import draw

    run_command(draw(name, png, as_json))


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check models, embedder, store, checkpoints, folders and tracing; print how to fix each problem."""
    from mneme.cli.doctor import doctor

    run_command(doctor(as_json))
