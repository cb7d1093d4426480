"""`mneme chat`: a conversation in the terminal."""

import asyncio
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from io import TextIOWrapper
from textwrap import shorten
from typing import Annotated, Any
from uuid import uuid4

from langchain_core.messages import BaseMessage, convert_to_messages
from rich.markup import escape

from mneme.api.memories import Memories
from mneme.api.rendering import count_of
from mneme.cli.chat.memories import print_erased
from mneme.cli.chat.responders import Context, get_ready
from mneme.cli.derived import Fields
from mneme.cli.show import (
    OPERATION_SIGNS,
    SHORT,
    confirmed,
    console,
    emit,
    errors,
    from_person,
    must_be_unicode,
    print_error,
    print_outcome,
    print_result,
    prints_json,
    say,
)
from mneme.client.home import open_operations
from mneme.client.workflows import REPLY, GraphRun, MemoryAgent, Session, open_session, remember_waiting
from mneme.core.errors import (
    BadAnswer,
    BadInput,
    Damaged,
    MnemeError,
    NotFound,
    ServerGone,
    StorageFailure,
    TooMany,
)
from mneme.models.asking.asking import resolve
from mneme.models.asking.counting import NOTHING, in_words, sum_counts
from mneme.nodes.chat.chatbot import must_fit
from mneme.nodes.chat.context import ChatContext
from mneme.stores.users.inbox import MessageOutcome
from mneme.stores.users.memory import RULES

HELP = "/memories  /history KEY  /forget KEY  /undo  /quit"
NO_OPTIONS = "similar min_similarity retrieval window recall debounce reread"
"""Fields of the chatbot's context that are not options of `mneme chat`."""
OUTCOME_POLL_SECONDS = 0.05
"""Seconds between two checks whether a message has been remembered; doubled each time."""

SLOWEST_POLL_SECONDS = 0.5
WITHDRAWN_NOTE = "\n(This reply broke off and is withdrawn; it is asked for again.)\n"


async def chat(
    context: Annotated[Context, Fields(ChatContext, without=NO_OPTIONS)],
    thread: Annotated[str, "Name of the conversation.", "--thread -t"] = "main",
) -> int:
    """Chat; what you tell is remembered (in it: /memories /history /forget /undo /quit)."""
    user = context.pop("user")
    await get_ready(context)
    async with Terminal(user, thread, context) as terminal:
        await terminal.greet()
        async for line in _lines():
            if not await terminal.take(line):
                break
        await terminal.finish()
    return 1 if terminal.has_failed and not sys.stdin.isatty() else 0  # a person saw the error


async def _lines() -> AsyncIterator[str]:
    """Yield the lines that the user types, until the end of the input."""
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # one line of broken text is refused, no other
    prompt = "you: " if sys.stdin.isatty() and not prints_json() else ""  # a program reads lines alone
    while True:
        try:
            yield await from_person(partial(input, prompt))
        except EOFError:
            return


class Terminal(AbstractAsyncContextManager["Terminal"]):
    """A conversation in the terminal, printed as text or as JSON Lines.

    Its session is reopened if its server has gone. `asked` counts the questions of the replies and, unless a
    server runs it, of the memory agent.
    """

    session: Session

    def __init__(self, user: str, thread: str, context: Context) -> None:
        self._user, self._thread, self._context = user, thread, context
        self._opened, self._is_open = AsyncExitStack(), False
        self._memory_agent = MemoryAgent(self._remember)
        self._unreported = list[str]()
        self.has_failed, self.reply, self.asked = False, "", NOTHING

    async def __aexit__(self, *_: object) -> None:
        await self._memory_agent.stop()  # it uses the session
        await self._opened.aclose()

    async def connect(self) -> None:
        """Reopen the session: in this process, or on the server that has the ledger open now."""
        self._is_open = False  # stays so where opening fails: the next message tries again
        await self._opened.aclose()
        self.session = await self._opened.enter_async_context(open_session(self._user))
        self._context = self._context | {"user": self.session.user}
        self._is_open = True
        self._memory_agent.start()  # with the messages that a stopped server or a killed chat left

    async def greet(self) -> None:
        """Print the commands, and finish a turn that a killed process or an error left."""
        await self.connect()
        console.print(f"[dim]{HELP}[/]")
        try:
            conversation = await self.session.conversation(self._thread)
            async with self.session.turn(conversation):  # a turn that another chat is still in was not left
                steps, spoken = await self._left()
            steps = () if await self.session.status(conversation) == "busy" else steps
            said = [message.text for message in spoken if message.type == "human"]
            if steps and said:
                about = f"[dim]answering your last message:[/] {escape(shorten(said[-1], 80))}"
                say(about)
                await self.say()
                emit({"message": said[-1], "reply": self.reply})
                console.print()
        except Damaged:
            raise  # nothing can be said in this conversation
        except MnemeError as error:
            self._complain(error)

    async def take(self, line: str) -> bool:
        """Answer a message or run a command; return whether the chat goes on."""
        words = line.strip()
        if words in {"/quit", "/exit"}:
            return False
        if not words:
            return True
        try:
            must_be_unicode(words, "Your message", "Nothing of it is kept.")
            if not self._is_open:
                await self.connect()
            await (self._obey(words) if words.startswith("/") else self._answer(words))
        except ServerGone as error:
            self._is_open = False  # the next call finds who has the memories then
            self._complain(error)
        except MnemeError as error:
            self._complain(error)
        return True

    def _complain(self, error: MnemeError) -> None:
        self.has_failed = True
        print_error(error)

    async def finish(self) -> None:
        """Wait for the memory agent, and print what it did."""
        if not self._is_open:  # the server has gone: what it left is remembered here
            await self.connect()
        if self._unreported:
            console.print(f"[dim]remembering {count_of(len(self._unreported), 'message')} …[/]")
        if failure := await self._memory_agent.wait():  # also where messages of others waited
            raise failure
        await self._report(wait=True)
        emit({"asked": self.asked})
        if self.asked["questions"]:  # a server's memory agent is not counted here
            whose = "replies: " if self.session.is_served else ""
            console.print(f"[dim]{whose}{in_words(self.asked)}[/]")

    async def _answer(self, words: str) -> None:
        must_fit(words, ChatContext().window)  # before it is kept: no later attempt could answer it
        message_id = uuid4().hex  # made here: by it the outcome is found, and a retry is no second message
        self._unreported.append(message_id)
        try:
            await self.say(words, message_id)
        except (TooMany, StorageFailure):  # it is not in the inbox: no outcome will come
            self._unreported.remove(message_id)
            raise
        except ServerGone:  # in this turn: the message is answered here, or on a server that took over
            console.print()
            errors.print("[yellow]The server has ended. Your message is kept, and is answered without it.[/]")
            await self.connect()
            steps, spoken = await self._left()
            is_known = message_id in [message.id for message in spoken]  # the server had taken it
            if is_known and not steps:  # only the end of the reply was lost on the way
                self.reply = spoken[-1].text
                console.print(escape(self.reply), end="", soft_wrap=True)
            else:  # the turn goes on where the server left it, or the message is sent again
                await (self.say() if is_known else self.say(words, message_id))
        emit({"message_id": message_id, "message": words, "reply": self.reply})
        console.print()
        await self._report(wait=False)

    async def _report(self, wait: bool) -> None:
        """Print what the memory agent did with each message; with `wait`, wait for the last one."""
        find = self.outcome if wait else self.session.inbox.outcome
        for message_id in list(self._unreported):
            outcome = await find(message_id)
            if outcome is None and not wait:
                continue
            self._unreported.remove(message_id)
            if outcome is not None:
                shown = {"message_id": message_id, **await with_contents(outcome, self.session.memories)}
                emit(shown)
                print_outcome(shown)
            elif letter := await self.session.letter(message_id):  # else it was forgotten
                reason = letter["error"] or "its turn has not come to its end."
                hint = "The next start of `mneme chat` tries again."
                self._complain(MnemeError(f"One message could not be remembered yet: {reason}", hint))

    async def _obey(self, words: str) -> None:
        """Run a command on the memories."""
        command, _, argument = words.partition(" ")
        memories = self.session.memories
        if command == "/memories":
            print_result(await memories.list())
        elif command == "/history":
            print_result(await memories.history(argument))
        elif command == "/forget":
            key = argument.removesuffix("--yes").strip()
            await memories.history(key)  # a missing one is reported before a person is asked
            if await from_person(partial(confirmed, argument.endswith("--yes"))):
                if failure := await self._memory_agent.wait():  # else it would write the old words again
                    raise failure
                await self._memory_agent.stop_rereading()
                print_erased(await memories.forget(key, reason="requested in the chat"))
        elif command == "/undo":
            print_result(await memories.undo())
        else:
            raise BadInput(f"There is no command {command}.", HELP)

    async def say(self, text: str = "", message_id: str = "") -> None:
        """Send a message, or none to continue the unfinished turn; print the reply piece by piece."""
        given = {"messages": [{"role": "user", "content": text, "id": message_id}]} if text else None
        self.reply = ""
        try:
            # looked up each time: the conversation may have been deleted meanwhile, and has a new thread then
            config = await self.session.conversation(self._thread)
            run = GraphRun(self.session.flows, "chatbot", given, config, self._context, REPLY)
            async with self.session.turn(config):
                async for piece, is_anew in run.pieces():
                    self.reply = piece if is_anew else self.reply + piece
                    shown = f"{WITHDRAWN_NOTE}{piece}" if is_anew else piece  # a terminal takes nothing back
                    console.print(escape(shown), end="", soft_wrap=True)
            asked = run.values.get("asked", NOTHING)  # an older version's turn has none
            self.asked = sum_counts(self.asked, asked)
        except BadAnswer:  # the run has no values, so what it asked is counted here
            self.asked = sum_counts(self.asked, NOTHING | {"questions": 1, "refused": 1})
            raise
        finally:
            self._memory_agent.start()  # also without a reply: a message is kept before it is answered

    async def _left(self) -> tuple[tuple[str, ...], list[BaseMessage]]:
        """Return the steps that the conversation still has to run, and its messages."""
        config = await self.session.conversation(self._thread)
        steps, values = await self.session.flows.left_at("chatbot", config)
        return steps, convert_to_messages(values.get("messages", []))

    async def _remember(self, reread: bool) -> None:
        """Run the memory agent until no message waits, unless the server runs it; continue a killed run."""
        if self.session.is_served:
            return
        who = self._context.get("memory_agent", "auto")
        if reread and await resolve(who) == RULES:
            return  # they would read the same again
        letters = await self.session.inbox.list() if reread else ()
        if any(each["error"] and each["status"] == "waiting" for each in letters):
            return  # a failed message is not retried at once
        done = await remember_waiting(self.session, {"memory_agent": who, "reread": reread})
        self.asked = sum_counts(self.asked, done["asked"])

    async def outcome(self, message_id: str) -> MessageOutcome | None:
        """Wait until a message is remembered; return None if it failed, or was erased."""
        if failure := await self._memory_agent.wait():
            raise failure
        session, seconds = self.session, OUTCOME_POLL_SECONDS
        while letter := await session.letter(message_id):
            if not session.is_served or letter["error"] or await session.is_broken():
                return None
            if (await self._left())[0]:  # the turn failed, so the server never begins
                return None
            await asyncio.sleep(seconds)  # a server's inbox tells nobody when it is done
            seconds = min(2 * seconds, SLOWEST_POLL_SECONDS)
        return await session.inbox.outcome(message_id)


async def with_contents(outcome: MessageOutcome, memories: Memories) -> dict[str, Any]:
    """Return an outcome with each memory before and after its operation, and what it may contradict."""
    operations = []
    for operation in outcome["operations"]:
        values = list[Any]()
        with suppress(NotFound):  # it was forgotten later
            values = [version.value for version in await memories.history(operation["key"])]
        number, beside = operation["version"], list[str]()
        is_known = 0 < number <= len(values)
        value = values[number - 1] if is_known else {"content": "(forgotten)"}
        before = values[number - 2] if is_known and operation["event"] == "update" else {}
        for key in value.get("may_contradict") or ():
            with suppress(NotFound):
                beside.append((await memories.show(str(key))).memory.content)
        contents = {"content": str(value.get("content", "")), "before": str(before.get("content", ""))}
        operations.append({**operation, **contents, "beside": beside})
    return {**outcome, "operations": operations}


async def print_remembered(outcomes: Sequence[MessageOutcome], user: str) -> None:
    """Print each memory that was written or changed, in one line."""
    if prints_json() or not any(each["operations"] for each in outcomes):
        return
    async with open_operations(Memories, user, reading=True) as memories:
        for outcome in outcomes:
            for each in (await with_contents(outcome, memories))["operations"]:
                say(f"  {OPERATION_SIGNS[each['event']]} {each['key'][:SHORT]}  {escape(each['content'])}")
