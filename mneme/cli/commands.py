"""Commands of no workflow, such as `mneme console`, `mcp`, `doctor`, `verify` and `backup`."""

from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.options import Agents, Json, User, run_command

app = typer.Typer()


@app.command()
def graph(
    name: Annotated[str, typer.Argument(help="A graph in langgraph.json, e.g. memory_agent.")],
    png: Annotated[Path | None, typer.Option("--png", help="Also write it as an image to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Print a graph as Mermaid."""
    from mneme.cli.draw import draw

    run_command(draw(name, png, as_json))


@app.command()
def mcp(
    user: User = "local",
    team: Annotated[
        str, typer.Option("--team", envvar="MNEME_TEAM", help="The team of cards and pools.")
    ] = "local",
    agents: Agents = "auto",
) -> None:
    """Serve memories, cards and pools to an MCP client over standard input and output."""
    from mneme.integrations.mcp import serve_stdio

    run_command(serve_stdio(user, team, agents))


@app.command()
def console(
    browser: Annotated[bool, typer.Option(help="Open the page; else print only its address.")] = True,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="The port of the server, if one is started.")
    ] = 2024,
    as_json: Json = False,
) -> None:
    """Open the console, to look at memories in the browser and correct them. Starts a server if none runs."""
    from mneme.cli.console import open_console

    run_command(open_console(port, browser=browser, as_json=as_json))


@app.command()
def doctor(as_json: Json = False) -> None:
    """Check models, embedder, store, checkpoints, folders and tracing; print how to fix each problem."""
    from mneme.cli.doctor import doctor

    run_command(doctor(as_json))


@app.command()
def verify(as_json: Json = False) -> None:
    """Read all files of the ledger and the checkpoints, compare checksums, and list what is damaged."""
    from mneme.cli import keeping

    run_command(keeping.verify(as_json))


@app.command()
def repair(as_json: Json = False) -> None:
    """Rebuild a damaged ledger from its intact versions, and list what is lost."""
    from mneme.cli import keeping

    run_command(keeping.repair(as_json))


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(help="Where to write; it must not exist.")],
    as_json: Json = False,
) -> None:
    """Write all memories and conversations into one file, also while they are in use."""
    from mneme.cli import keeping

    run_command(keeping.backup(file, as_json))


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(help="A file of `mneme backup`.")],
    as_json: Json = False,
) -> None:
    """Restore a backup where there are no memories yet."""
    from mneme.cli import keeping

    run_command(keeping.restore(file, as_json))
