"""`mneme threads …`: the threads of a user, with and without a running server."""

from mneme.api.threads import ThreadOperations
from mneme.cli.show import console, print_json
from mneme.client.home import open_operations
from mneme.core.errors import BadInput
from mneme.core.settings import settings


async def prune(user: str, thread: str, everything: bool, keep: int | None, as_json: bool) -> None:
    """Keep the checkpoints of the last turns of one thread, or of all."""
    if bool(thread) == everything:
        raise BadInput("Which thread?", "Give a conversation's name, a thread's id, or --all.")
    turns = settings().checkpoint_turns if keep is None else keep
    if turns == 0:
        raise BadInput("MNEME_CHECKPOINT_TURNS is 0: all turns are kept.", "Say how many with --keep.")
    async with open_operations(ThreadOperations, user) as threads:
        pruned = await threads.prune(thread, turns)
    if as_json:
        print_json(pruned)
    else:
        console.print(f"{pruned.checkpoints} checkpoints of {pruned.threads} threads are gone.")
