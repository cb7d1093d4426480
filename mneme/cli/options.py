"""The options that commands share, and how a command is run."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, Any

import typer

User = Annotated[
    str, typer.Option("--user", "-u", envvar="MNEME_USER", help="The user whose memories are used.")
]
Agents = Annotated[
    str,
    typer.Option("--agents", envvar="MNEME_AGENTS", help="Who answers: auto, rules, ollama:MODEL, …"),
]
Role = Annotated[str, typer.Option(help="Model of this role; default: --agents.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON Lines instead of text.")]
Key = Annotated[str, typer.Argument(help="A memory's key, or its first letters.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="Show at most this many.")]
Reason = Annotated[str, typer.Option("--reason", help="The reason, which is kept in the history.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


def run_command(command: Coroutine[Any, Any, int | None]) -> None:
    """Run a command to its end and leave with its exit status."""
    try:
        status = asyncio.run(command)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    raise typer.Exit(status or 0)
