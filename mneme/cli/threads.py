"""`mneme threads …`: delete and prune the threads of a user, with and without a running server."""

from typing import Annotated

import typer
from rich.markup import escape

from mneme.api.threads import Threads
from mneme.cli.options import User, Yes
from mneme.cli.show import confirmed, console, emit
from mneme.client.home import open_operations
from mneme.core.errors import BadInput
from mneme.core.settings import settings

Name = Annotated[str, typer.Argument(metavar="NAME|ID", help="A name, or the beginning of an id.")]


async def delete(name: Name, user: User = "local", yes: Yes = False) -> int:
    """Delete a thread for good: its checkpoints, and what the server keeps of it. Memories stay."""
    async with open_operations(Threads, user) as threads:
        thread = await threads.find(name)
        if not confirmed(yes):
            return 0
        done = await threads.delete(thread.id)
    emit(done)
    console.print(f"deleted: {thread.id} {escape(thread.name)}", soft_wrap=True)
    for each in done.left:
        console.print(f"- not erased: {escape(each)}", soft_wrap=True)
    return 1 if done.left else 0


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
