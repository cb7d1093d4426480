"""`mneme threads …`: delete and prune the threads of a user, with and without a running server."""

from typing import Annotated

import typer
from rich.markup import escape

from mneme.api.threads import Cleaned, Threads
from mneme.cli.options import User
from mneme.cli.show import console, emit, say
from mneme.client.home import open_operations
from mneme.core.errors import BadInput
from mneme.core.settings import settings

Name = Annotated[str, typer.Argument(metavar="NAME|ID", help="A name, or the beginning of an id.")]


def print_deleted(done: Cleaned) -> None:
    """Print which threads were deleted, and which files may still hold something of them."""
    say(f"deleted: {', '.join(done.threads)}")
    for each in done.left:
        say(f"- not erased: {escape(each)}")


def is_left(done: Cleaned) -> bool:
    """Return whether files may still hold something of what was deleted."""
    return bool(done.left)


async def prune(
    name: Name = "",
    everything: Annotated[bool, "All your threads.", "--all"] = False,
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=1, help="Turns that you can go back. Default: MNEME_CHECKPOINT_TURNS."),
    ] = None,
    user: User = "local",
) -> None:
    """Delete a thread's old checkpoints, so that you can go back only a few turns; all messages stay."""
    if bool(name) == everything:
        raise BadInput("Which thread?", "Give its name, its id, or --all.")
    turns = settings().checkpoint_turns if keep is None else keep
    if turns == 0:
        raise BadInput("MNEME_CHECKPOINT_TURNS is 0: all turns are kept.", "Say how many with --keep.")
    async with open_operations(Threads, user) as threads:
        pruned = await threads.prune(name, turns)
    emit(pruned)
    console.print(f"{pruned.checkpoints} checkpoints of {pruned.threads} threads are gone.")
