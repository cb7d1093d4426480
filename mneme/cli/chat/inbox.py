"""`mneme inbox …`: the messages that are still to be remembered, and those that were set aside."""

from collections.abc import Sequence

from mneme.api.inbox import Messages
from mneme.cli.chat.memories import SHORT
from mneme.cli.show import console, print_json, print_table
from mneme.client.home import open_operations
from mneme.stores.users.inbox import Letter


async def list_(user: str, as_json: bool) -> None:
    """List the messages of the inbox."""
    async with open_operations(Messages, user, reading=True) as operations:
        _print(await operations.list(), as_json)


async def show(user: str, message_id: str, as_json: bool) -> None:
    """Print one message with the last failure and the reply that could not be used."""
    async with open_operations(Messages, user, reading=True) as operations:
        letter = await operations.get(message_id)
    if as_json:
        print_json(letter)
        return
    print_table("", ("field", "value"), ((name, str(value) or "–") for name, value in letter.items()))


async def retry(user: str, message_id: str, as_json: bool) -> None:
    """Let a message wait again; the memory agent takes it up with its next run."""
    async with open_operations(Messages, user) as operations:
        _print([await operations.retry(message_id)], as_json)


async def drop(user: str, message_id: str, as_json: bool) -> None:
    """Close a message without remembering it."""
    async with open_operations(Messages, user) as operations:
        letter = await operations.drop(message_id)
    if as_json:
        print_json(letter | {"status": "dropped"})
        return
    console.print(f"Dropped {letter['message_id'][:SHORT]}.")


def _print(letters: Sequence[Letter], as_json: bool) -> None:
    if as_json:
        for letter in letters:
            print_json(letter)
        return
    if not letters:
        console.print("[dim]nothing[/]")
        return
    columns = ("id", "status", "tries", "message", "last failure")
    print_table("", columns, (_row(letter) for letter in letters))


def _row(letter: Letter) -> list[str]:
    return [
        letter["message_id"][:SHORT],
        letter["status"],
        str(letter["tries"]),
        letter["message"],
        letter["error"] or "–",
    ]
