"""`mneme users …`: the users of the server."""

from typing import Annotated

import typer

from mneme.cli.options import Json, run_command

Name = Annotated[str, typer.Argument(help="The user's name.")]

users = typer.Typer(no_args_is_help=True, help="Users of the server and their keys (needs MNEME_AUTH).")


@users.command("add")
def add_user(name: Name, as_json: Json = False) -> None:
    """Add a user and print the key, which is shown only once."""
    from mneme.cli.users import accounts

    run_command(accounts.add(name, as_json))


@users.command("remove")
def remove_user(name: Name, as_json: Json = False) -> None:
    """Remove a user; the user's memories stay in the ledger."""
    from mneme.cli.users import accounts

    run_command(accounts.remove(name, as_json))


@users.command("list")
def list_users(as_json: Json = False) -> None:
    """List the users."""
    from mneme.cli.users import accounts

    run_command(accounts.list_(as_json))
