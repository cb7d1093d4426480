"""`mneme inbox …`: the messages that are still to be remembered, and those that were set aside."""

from collections.abc import Sequence

from mneme.api.inbox import Messages
from mneme.cli.chat.memories import SHORT
from mneme.cli.show import console, print_result, print_table
from mneme.client.home import open_operations
from mneme.stores.users.inbox import Letter


async def drop(user: str, message_id: str, as_json: bool) -> None:
    """Close a message without remembering it."""
    async with open_operations(Messages, user) as operations:
        letter = await operations.drop(message_id)
    told = f"Dropped {letter['message_id'][:SHORT]}."
    print_result(letter | {"status": "dropped"}, as_json, lambda _: console.print(told))


def print_letter(letter: Letter) -> None:
    """Print one message with the last failure and the reply that could not be used."""
    print_table("", ("field", "value"), ((name, str(value) or "–") for name, value in letter.items()))


def print_waiting(letter: Letter) -> None:
    """Print one message as a line of the inbox."""
    print_letters([letter])


def print_letters(letters: Sequence[Letter]) -> None:
    """Print the messages of the inbox."""
    columns = ("id", "status", "tries", "message", "last failure")
    print_table("", columns, map(_row, letters))


def _row(letter: Letter) -> list[str]:
    return [
        letter["message_id"][:SHORT],
        letter["status"],
        str(letter["tries"]),
        letter["message"],
        letter["error"] or "–",
    ]
