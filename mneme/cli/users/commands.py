"""`mneme users …`: the users of the server; `mneme threads …`: what a user's threads keep."""

from typing import Annotated

import typer

from mneme.cli.options import Json, User, run_command

users = typer.Typer(no_args_is_help=True, help="Users of the server and their keys (needs MNEME_AUTH).")


@users.command("add")
def add_user(name: str, as_json: Json = False) -> None:
    """Add a user and print the key, which is shown only once."""
    from mneme.cli.users import accounts

    run_command(accounts.add(name, as_json))


@users.command("remove")
def remove_user(name: str, as_json: Json = False) -> None:
    """Remove a user; the user's memories stay in the ledger."""
    from mneme.cli.users import accounts

    run_command(accounts.remove(name, as_json))


@users.command("list")
def list_users(as_json: Json = False) -> None:
    """List the users."""
    from mneme.cli.users import accounts

    run_command(accounts.list_(as_json))


threads = typer.Typer(no_args_is_help=True, help="Your threads: conversations, and what runs behind them.")


@threads.callback()
def of_threads() -> None:
    """Be a group, also with a single command."""


@threads.command("prune")
def prune_threads(
    thread: Annotated[str, typer.Argument(help="A conversation's name, or a thread's id.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="All your threads.")] = False,
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=1, help="Turns to go back to; otherwise MNEME_CHECKPOINT_TURNS."),
    ] = None,
    user: User = "local",
    as_json: Json = False,
) -> None:
    """Keep only the last turns of a thread to go back to; what was said stays in the conversation."""
    from mneme.cli.users import threads

    run_command(threads.prune(user, thread, everything, keep, as_json))
