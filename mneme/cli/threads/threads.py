"""`mneme threads …`: the threads of a user, with and without a running server."""

from collections.abc import Sequence

from rich.markup import escape

from mneme.api.threads import Thread, Threads
from mneme.cli.confirming import confirmed
from mneme.cli.show import console, print_json, print_table
from mneme.client.home import open_operations
from mneme.core.errors import BadInput
from mneme.core.settings import settings


def print_threads(found: Sequence[Thread]) -> None:
    """Print threads as a table."""
    rows = ([each.id, each.name, each.graph, each.checkpoints, f"{each.at:%Y-%m-%d %H:%M}"] for each in found)
    print_table("", ("id", "name", "graph", "checkpoints", "last"), rows)


async def delete(name: str, user: str, yes: bool, as_json: bool) -> int:
    """Delete a thread; return 1 if a file may still hold it."""
    async with open_operations(Threads, user) as threads:
        thread = await threads.find(name)
        if not confirmed(yes):
            return 0
        done = await threads.delete(thread.id)
    if as_json:
        print_json(done)
    else:
        console.print(f"deleted: {thread.id} {escape(thread.name)}", soft_wrap=True)
        for each in done.left:
            console.print(f"- not erased: {escape(each)}", soft_wrap=True)
    return 1 if done.left else 0


async def prune(user: str, name: str, everything: bool, keep: int | None, as_json: bool) -> None:
    """Keep the checkpoints of the last turns of one thread, or of all."""
    if bool(name) == everything:
        raise BadInput("Which thread?", "Give its name, its id, or --all.")
    turns = settings().checkpoint_turns if keep is None else keep
    if turns == 0:
        raise BadInput("MNEME_CHECKPOINT_TURNS is 0: all turns are kept.", "Say how many with --keep.")
    async with open_operations(Threads, user) as threads:
        pruned = await threads.prune(name, turns)
    if as_json:
        print_json(pruned)
    else:
        console.print(f"{pruned.checkpoints} checkpoints of {pruned.threads} threads are gone.")
