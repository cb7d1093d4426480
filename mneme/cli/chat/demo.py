"""`mneme demo`: a conversation over two sessions, and what the memory agent does with it."""

import os
import shutil
import time
from collections.abc import Sequence
from uuid import uuid4

import yaml
from rich.markup import escape

from mneme.cli.chat.chat import Talk, with_contents
from mneme.cli.chat.responders import show_notice
from mneme.cli.show import console, emit, print_outcome, print_rows, say
from mneme.client.session import open_session
from mneme.core.settings import settings
from mneme.library import EXAMPLES

USER = "demo"
ROLES = {"chatbot": "auto", "memory_agent": "auto"}
SESSIONS = EXAMPLES / "demo.yaml"


async def demo() -> None:
    """Show what the memory agent does, in a prepared conversation over two sessions."""
    folder = settings().home / "demo"  # the user's own memories are not touched
    shutil.rmtree(folder, ignore_errors=True)
    os.environ["MNEME_LEDGER"] = str(folder / "ledger")
    os.environ["MNEME_CHECKPOINTS"] = str(folder / "checkpoints.sqlite")
    settings.cache_clear()
    await show_notice(*ROLES.values())
    for number, messages in enumerate(yaml.safe_load(SESSIONS.read_text(encoding="utf-8")), start=1):
        await _session(number, messages)
    say(f"\n[dim]Everything is in {folder}. Start your own chat: mneme chat[/]")


async def _session(number: int, messages: Sequence[str]) -> None:
    """Run one session; the ledger is closed and opened again between sessions."""
    async with open_session(USER) as session:
        talk = Talk(session, f"session {number}", ROLES)
        console.rule(f"session {number}", align="left")
        console.print("memory before:")
        print_rows(await session.memories.list())
        for message in messages:
            await _turn(talk, message)
        await talk.finish()
        console.print("memory after:")
        print_rows(await session.memories.list())


async def _turn(talk: Talk, message: str) -> None:
    """Send one message; print the reply as it streams, then what the memory agent did and why."""
    message_id, started = uuid4().hex, time.perf_counter()
    console.print(f"\n[bold]you:[/] {escape(message)}\n[bold]mneme:[/] ", end="", soft_wrap=True)
    await talk.say(message, message_id)
    replied = time.perf_counter() - started
    outcome = await talk.outcome(message_id)
    remembered = time.perf_counter() - started
    done = await with_contents(outcome, talk.session.memories) if outcome else {"kept": await talk.failures()}
    emit({"message": message, "reply": talk.reply, "seconds": replied, "memory": done})
    model = outcome["model"] if outcome else "nobody"
    console.print(
        f"\n[dim]memory agent ({model}): reply after {replied:.2f} s, remembered after {remembered:.2f} s[/]"
    )
    if outcome:
        print_outcome(done)
