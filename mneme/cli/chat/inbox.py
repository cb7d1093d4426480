"""`mneme inbox drop`: close a message that cannot be remembered."""

from typing import Annotated

import typer

from mneme.api.inbox import Messages
from mneme.cli.options import User
from mneme.cli.show import SHORT, console, print_result
from mneme.client.home import open_operations


async def drop(
    message_id: Annotated[str, typer.Argument(metavar="ID", help="A message's id, or its first letters.")],
    user: User = "local",
) -> None:
    """Close a message without remembering it."""
    async with open_operations(Messages, user) as operations:
        letter = await operations.drop(message_id)
    told = f"Dropped {letter['message_id'][:SHORT]}."
    print_result(letter | {"status": "dropped"}, lambda _: console.print(told))
