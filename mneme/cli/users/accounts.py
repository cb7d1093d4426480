"""`mneme users …`: the users of the server."""

from pathlib import Path

from mneme.cli.show import console, errors, print_json, print_records
from mneme.core.errors import BadInput
from mneme.core.settings import settings
from mneme.server.users import add_user, list_users, remove_user


async def add(name: str, as_json: bool) -> None:
    """Add a user and print the key."""
    key = add_user(_file(), name)
    if as_json:
        print_json({"user": name, "key": key})
        return
    print(key)
    errors.print(
        "[dim]Keep this key: it is shown only once. Set it as MNEME_KEY, or send it in x-api-key.[/]"
    )


async def remove(name: str, as_json: bool) -> None:
    """Remove a user."""
    remove_user(_file(), name)
    print_json({"removed": name}) if as_json else console.print(f"removed {name}")


async def list_(as_json: bool) -> None:
    """List the users."""
    users = list_users(_file())
    print_records(
        [{"user": user.name, "added": user.added} for user in users], as_json, "", ("user", "added")
    )


def _file() -> Path:
    file = settings().auth
    if file is None:
        raise BadInput(
            "MNEME_AUTH is not set.", "Set it to a file, e.g. export MNEME_AUTH=~/mneme-users.json"
        )
    return file.expanduser()
