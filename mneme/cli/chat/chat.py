"""`mneme chat`: a conversation in the terminal."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from textwrap import shorten
from threading import Thread
from typing import Annotated
from uuid import uuid4

from rich.markup import escape

from mneme.cli.chat.memories import print_erased
from mneme.cli.chat.talk import Context, Talk, get_ready, with_contents
from mneme.cli.derived import Fields
from mneme.cli.show import (
    console,
    count_of,
    emit,
    errors,
    print_error,
    print_outcome,
    print_result,
    prints_json,
    say,
)
from mneme.client.session import LastingSession
from mneme.core.errors import BadInput, Damaged, MnemeError, ServerGone, StorageFailure, TooMany
from mneme.models.asking.counting import in_words
from mneme.nodes.chat.chatbot import must_fit
from mneme.nodes.chat.context import ChatContext

HELP = "/memories  /history KEY  /forget KEY  /undo  /quit"
NO_OPTIONS = "similar min_similarity retrieval window recall debounce reread"
"""Fields of the chatbot's context that are no options."""


async def chat(
    context: Annotated[Context, Fields(ChatContext, without=NO_OPTIONS)],
    thread: Annotated[str, "Name of the conversation.", "--thread -t"] = "main",
) -> int:
    """Chat; what you tell is remembered (in it: /memories /history /forget /undo /quit)."""
    user = context.pop("user")
    await get_ready(context)
    async with LastingSession(user) as lasting:
        terminal = Terminal(Talk(await lasting.open(), thread, context), lasting)
        try:
            await terminal.greet()
            async for line in _lines():
                if not await terminal.take(line):
                    break
            await terminal.finish()
        finally:
            await terminal.talk.memory_agent.stop()
    return 1 if terminal.has_failed and not sys.stdin.isatty() else 0


async def _lines() -> AsyncIterator[str]:
    """Yield what the user types, line by line, until the end of the input.

    A daemon thread reads, so that Ctrl-C at the prompt ends the process at once.
    """
    prompt = "you: " if sys.stdin.isatty() and not prints_json() else ""
    loop = asyncio.get_running_loop()
    while True:
        line: asyncio.Future[str] = loop.create_future()
        Thread(target=_read_line, args=(prompt, loop, line), daemon=True).start()
        try:
            yield await line
        except EOFError:
            return


def _read_line(prompt: str, loop: asyncio.AbstractEventLoop, line: "asyncio.Future[str]") -> None:
    try:
        loop.call_soon_threadsafe(line.set_result, input(prompt))
    except (EOFError, UnicodeDecodeError):
        loop.call_soon_threadsafe(line.set_exception, EOFError())


@dataclass
class Terminal:
    """A conversation in the terminal, printed as text or as JSON Lines."""

    talk: Talk
    lasting: LastingSession
    open: list[str] = field(default_factory=list)
    has_failed: bool = False

    async def greet(self) -> None:
        """Print the commands, and finish a turn that a killed process left."""
        console.print(f"[dim]{HELP}[/]")
        try:
            if words := await self.talk.left_unanswered():
                about = f"[dim]answering your last message:[/] {escape(shorten(words, 80))}"
                say(about)
                await self._say(self.talk.say())
                emit({"message": words, "reply": self.talk.reply})
                console.print()
        except Damaged:
            raise  # nothing can be said in this conversation
        except MnemeError as error:
            self._complain(error)
        self.talk.remember()

    async def take(self, line: str) -> bool:
        """Answer a message or run a command; return whether the chat goes on."""
        words = line.strip()
        if words in {"/quit", "/exit"}:
            return False
        if not words:
            return True
        try:
            self.talk.session = await self.lasting.open()
            await (self._obey(words) if words.startswith("/") else self._answer(words))
        except ServerGone as error:
            await self.lasting.close()  # what comes next finds who has the memories then
            self._complain(error)
        except MnemeError as error:
            self._complain(error)
        return True

    def _complain(self, error: MnemeError) -> None:
        self.has_failed = True
        print_error(error)

    async def finish(self) -> None:
        """Wait for the memory agent, and print what it did."""
        self.talk.session = await self.lasting.open()
        if self.open:
            console.print(f"[dim]remembering {count_of(len(self.open), 'message')} …[/]")
        await self.talk.finish()
        await self._report(wait=True)
        emit({"asked": self.talk.asked})
        if self.talk.asked["questions"]:
            whose = "replies: " if self.talk.session.is_served else ""
            console.print(f"[dim]{whose}{in_words(self.talk.asked)}[/]")

    async def _answer(self, words: str) -> None:
        must_fit(words, ChatContext().window)
        message_id = uuid4().hex
        self.open.append(message_id)
        try:
            await self._say(self.talk.say(words, message_id))
        except (TooMany, StorageFailure):  # it was not taken in, so nothing will become of it
            self.open.remove(message_id)
            raise
        except ServerGone:  # in this turn: the message is answered here, or on a server that took over
            console.print()
            errors.print("[yellow]The server has ended. Your message is kept, and is answered without it.[/]")
            await self.lasting.close()
            self.talk.session = await self.lasting.open()
            await self._say(self.talk.again(words, message_id))
        emit({"message_id": message_id, "message": words, "reply": self.talk.reply})
        console.print()
        await self._report(wait=False)

    async def _say(self, pieces: AsyncIterator[str]) -> None:
        async for piece in pieces:
            console.print(escape(piece), end="", soft_wrap=True)

    async def _report(self, wait: bool) -> None:
        """Print what the memory agent did with each message; with `wait`, wait for the last one."""
        memories = self.talk.session.memories
        for message_id in list(self.open):
            find = self.talk.outcome if wait else self.talk.session.inbox.outcome
            outcome = await find(message_id)
            if outcome is None and not wait:
                continue
            self.open.remove(message_id)
            if outcome is None:
                reason = (await self.talk.failures()).get(message_id, "")
                hint = "The next start of `mneme chat` tries again."
                self._complain(MnemeError(f"One message could not be remembered yet: {reason}", hint))
                continue
            shown = {"message_id": message_id, **await with_contents(outcome, memories)}
            emit(shown)
            print_outcome(shown)

    async def _obey(self, words: str) -> None:
        """Run a command on the memories."""
        command, _, argument = words.partition(" ")
        memories = self.talk.session.memories
        if command == "/memories":
            print_result(await memories.list())
        elif command == "/history":
            print_result(await memories.history(argument))
        elif command == "/forget":
            if not self.talk.session.is_served:  # what is being remembered would write the old words again
                await self.talk.finish()
            print_erased(await memories.forget(argument, reason="requested in the chat"))
        elif command == "/undo":
            print_result(await memories.undo())
        else:
            raise BadInput(f"There is no command {command}.", HELP)
