"""`mneme demo`: a conversation over two sessions, and what the memory agent does with it."""

import os
import shutil
import time
from collections.abc import Sequence
from uuid import uuid4

import yaml
from rich.markup import escape

from mneme.cli.chat.chat import Terminal, with_contents
from mneme.cli.chat.responders import show_notice
from mneme.cli.show import console, emit, print_outcome, print_rows, say
from mneme.core.settings import settings
from mneme.library import EXAMPLES

DEMO_USER = "demo"
DEMO_RESPONDERS = {"chatbot": "auto", "memory_agent": "auto"}
SESSIONS = EXAMPLES / "demo.yaml"


async def demo() -> None:
    """Show what the memory agent does, in a prepared conversation over two sessions."""
    folder = settings().home / "demo"  # the user's own memories are not touched
    shutil.rmtree(folder, ignore_errors=True)
    os.environ["MNEME_LEDGER"] = str(folder / "ledger")  # the environment goes before the settings file
    os.environ["MNEME_CHECKPOINTS"] = str(folder / "checkpoints.sqlite")
    settings.cache_clear()
    await show_notice(*DEMO_RESPONDERS.values())
    for number, messages in enumerate(yaml.safe_load(SESSIONS.read_text(encoding="utf-8")), start=1):
        await _session(number, messages)
    say(f"\n[dim]Everything is in {folder}. Start your own chat: mneme chat[/]")


async def _session(number: int, messages: Sequence[str]) -> None:
    """Run one session."""
    # a terminal of its own: the ledger is closed and opened again between sessions, as between two days
    async with Terminal(DEMO_USER, f"session {number}", DEMO_RESPONDERS) as terminal:
        await terminal.connect()
        console.rule(f"session {number}", align="left")
        console.print("memory before:")
        print_rows(await terminal.session.memories.list())
        for message in messages:
            await _turn(terminal, message)
        console.print("memory after:")
        print_rows(await terminal.session.memories.list())


async def _turn(terminal: Terminal, message: str) -> None:
    """Send one message; print the reply as it streams, then what the memory agent did and why."""
    message_id, started = uuid4().hex, time.perf_counter()
    console.print(f"\n[bold]you:[/] {escape(message)}\n[bold]mneme:[/] ", end="", soft_wrap=True)
    await terminal.say(message, message_id)
    replied = time.perf_counter() - started
    outcome = await terminal.outcome(message_id)
    remembered = time.perf_counter() - started
    session = terminal.session
    kept = {each["message_id"]: each["error"] for each in await session.inbox.list() if each["error"]}
    done = await with_contents(outcome, session.memories) if outcome else {"kept": kept}
    emit({"message": message, "reply": terminal.reply, "seconds": replied, "memory": done})
    model = outcome["model"] if outcome else "nobody"
    console.print(
        f"\n[dim]memory agent ({model}): reply after {replied:.2f} s, remembered after {remembered:.2f} s[/]"
    )
    if outcome:
        print_outcome(done)
