"""`mneme threads …`: conversations and other threads."""

from typing import Annotated

import typer

from mneme.cli.groups import Calls, group
from mneme.cli.options import Json, User, Yes, run_command

threads = group("Conversations and other threads: list, prune, delete.")


Calls(threads, "threads", "mneme.api.threads:Threads", "mneme.cli.threads.threads")(
    "list", "list", "print_threads", "List your threads, the most recently used one last."
)


@threads.command("delete")
def delete_thread(
    name: Annotated[str, typer.Argument(metavar="NAME|ID", help="A name, or the beginning of an id.")],
    user: User = "local",
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Delete a thread for good: its checkpoints, and what the server keeps of it. Memories stay."""
    from mneme.cli.threads import threads as run

    run_command(run.delete(name, user, yes, as_json))


@threads.command("prune")
def prune_threads(
    name: Annotated[str, typer.Argument(metavar="NAME|ID", help="A name, or the beginning of an id.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="All your threads.")] = False,
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=1, help="Turns that you can go back. Default: MNEME_CHECKPOINT_TURNS."),
    ] = None,
    user: User = "local",
    as_json: Json = False,
) -> None:
    """Delete a thread's old checkpoints, so that you can go back only a few turns; all messages stay."""
    from mneme.cli.threads import threads as run

    run_command(run.prune(user, name, everything, keep, as_json))
