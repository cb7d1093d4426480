"""`mneme threads …`: conversations and other threads."""

from typing import Annotated

import typer

from mneme.cli.options import Json, User, Yes, run_command

threads = typer.Typer(no_args_is_help=True, help="List and delete conversations and other threads.")


@threads.command("list")
def list_threads(user: User = "local", as_json: Json = False) -> None:
    """List your threads; the one that went on last is at the end."""
    from mneme.cli.threads import threads as run

    run_command(run.list_(user, as_json))


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
