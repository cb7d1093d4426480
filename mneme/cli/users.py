"""`mneme users …`: the users of the server."""

from pathlib import Path
from typing import Annotated

import typer

from mneme.cli.show import console, emit, errors, print_result, prints_json
from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.server import users

Name = Annotated[str, typer.Argument(help="The user's name.")]


def add(name: Name) -> None:
    """Add a user and print the key, which is shown only once."""
    key = users.add_user(_file(), name)
    emit({"user": name, "key": key})
    if prints_json():
        return
    print(key)  # alone on stdout, so that a script can take it; the advice goes to stderr
    errors.print(
        "[dim]Keep this key: it is shown only once. Set it as MNEME_KEY, or send it in x-api-key.[/]"
    )


def remove(name: Name) -> None:
    """Remove a user; the user's memories stay in the ledger."""
    users.remove_user(_file(), name)
    emit({"removed": name})
    console.print(f"removed {name}")


def list_() -> None:
    """List the users."""
    print_result([{"user": each.name, "added": each.added} for each in users.list_users(_file())])


def _file() -> Path:
    file = settings().auth
    if file is None:
        raise BadInput(
            "MNEME_AUTH is not set.", "Set it to a file, e.g. export MNEME_AUTH=~/mneme-users.json"
        )
    return file.expanduser()
