"""Check of the responders before a command begins its work."""

import asyncio
from typing import Any

from rich.markup import escape

from mneme.cli.show import errors, say
from mneme.client.home import running_server
from mneme.core.errors import BadInput, MnemeError
from mneme.models.asking.asking import auto_notice, resolve
from mneme.models.asking.lazily import by_rules
from mneme.models.asking.responders import check
from mneme.prompts.chat.memory_agent.reading import read_message

CHAT_ROLES = ("chatbot", "memory_agent")
Context = dict[str, Any]


async def show_notice(*who: str) -> None:
    """Refuse unusable responders before any work; print once that `rules` answers if there is no model."""
    for each in dict.fromkeys(who):
        try:
            await check(each)
        except BadInput:  # a name that means nothing, here or on a server
            raise
        except MnemeError:  # what is missing here, a model or a package, a server may have: then it answers
            if await asyncio.to_thread(running_server) is None:
                raise
    if "auto" in who and (notice := auto_notice()):
        say(f"[yellow]{escape(notice)}[/]", errors)


async def get_ready(context: Context) -> None:
    """Print who answers, and load the rules where they do: once the memories are open, others wait."""
    who = [context[role] for role in CHAT_ROLES if role in context]
    await show_notice(*who)
    if "rules" in [await resolve(each) for each in who]:
        await by_rules(read_message, read_message.given(message="I am here."))  # reads the dictionaries
