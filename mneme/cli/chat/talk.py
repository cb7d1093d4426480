"""A conversation with the chatbot, and the memory agent in the background."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from rich.markup import escape

from mneme.api.memories import Memories
from mneme.cli.show import SHORT, SIGNS, errors, prints_json, say
from mneme.client.home import open_operations, running_server
from mneme.client.session import MemoryAgent, Session, remember_waiting
from mneme.core.errors import BadAnswer, BadInput, MnemeError, NotFound
from mneme.models.asking.asking import auto_notice, by_rules, resolve
from mneme.models.asking.counting import NOTHING, added
from mneme.models.asking.responders import check
from mneme.prompts.chat.memory_agent.reading import read_message
from mneme.stores.users.inbox import MessageOutcome
from mneme.stores.users.memories import RULES

POLL_SECONDS = 0.05
"""Seconds between two checks whether a message has been remembered; doubled each time."""

SLOWEST_POLL_SECONDS = 0.5
WITHDRAWN = "\n(This reply broke off and is withdrawn; it is asked for again.)\n"

ROLES = ("chatbot", "memory_agent")
Context = dict[str, Any]


class Talk:
    """One conversation: send messages, stream the replies, and see what was remembered.

    `asked` counts the questions of the replies and, unless a server runs it, of the memory agent.
    """

    def __init__(self, session: Session, thread: str, context: Context) -> None:
        self.session, self._thread = session, thread
        self._context = context | {"user": session.user}
        self.memory_agent = MemoryAgent(self._remember)
        self.reply = ""
        self.asked = NOTHING

    async def say(self, text: str = "", message_id: str = "") -> AsyncIterator[str]:
        """Send a message, or none to go on with the unfinished turn; yield the reply piece by piece.

        Count what it took; an attempt that broke off is marked as withdrawn. Then the memory agent starts.
        """
        given = {"messages": [{"role": "user", "content": text, "id": message_id}]} if text else None
        self.reply = ""
        try:
            config = await self.session.conversation(self._thread)
            async for piece, is_anew in self.session.flows.pieces("chatbot", given, config, self._context):
                if is_anew:
                    self.reply = ""
                    yield WITHDRAWN
                self.reply += piece
                yield piece
            _, values = await self.session.flows.left_at("chatbot", config)
            self.asked = added(self.asked, values.get("asked", NOTHING))  # an older version's turn has none
        except BadAnswer:
            self.asked = added(self.asked, NOTHING | {"questions": 1, "refused": 1})
            raise
        finally:
            self.remember()

    async def again(self, text: str, message_id: str) -> AsyncIterator[str]:
        """Yield the reply to a message in whose turn the server ended, on what the session is now.

        The turn goes on where the server left it; if the message had not reached it, it is sent again.
        """
        steps, spoken = await self._left()
        is_known = message_id in [message.id for message in spoken]
        if is_known and not steps:  # only the end of the reply was lost on the way
            self.reply = spoken[-1].text
            yield self.reply
            return
        async for piece in self.say() if is_known else self.say(text, message_id):
            yield piece

    async def left_unanswered(self) -> str:
        """Return the message whose turn a killed process or an error left unfinished, or ""."""
        steps, spoken = await self._left()
        said = [message.text for message in spoken if message.type == "human"]
        return said[-1] if steps and said else ""

    async def _left(self) -> tuple[tuple[str, ...], list[BaseMessage]]:
        """Return the steps that the conversation still has to run, and its messages."""
        config = await self.session.conversation(self._thread)
        steps, values = await self.session.flows.left_at("chatbot", config)
        return steps, convert_to_messages(values.get("messages", []))

    def remember(self) -> None:
        """Start the memory agent in the background, unless the server runs it."""
        if not self.session.is_served:
            self.memory_agent.start()

    async def _remember(self, reread: bool) -> None:
        """Run the memory agent until no message waits; continue a run that was killed."""
        who = self._context.get("memory_agent", "auto")
        if reread and (await resolve(who) == RULES or await self.failures()):
            return  # what failed is not tried again at once
        context = {"memory_agent": who, "reread": reread}
        done = await remember_waiting(self.session.flows, self.session.user, context)
        self.asked = added(self.asked, done["asked"])

    async def outcome(self, message_id: str) -> MessageOutcome | None:
        """Wait until a message is remembered; return None if it failed and will be tried again."""
        seconds = POLL_SECONDS
        while (outcome := await self.session.inbox.outcome(message_id)) is None:
            self.memory_agent.check()
            if message_id in await self.failures() or await self.session.is_broken():
                return None
            await asyncio.sleep(seconds)
            seconds = min(2 * seconds, SLOWEST_POLL_SECONDS)
        return outcome

    async def failures(self) -> dict[str, str]:
        """Return the ids of the messages that failed, with the reasons."""
        background = await self.session.background()
        _, values = await self.session.flows.left_at("remember", background)
        return {each["message_id"]: each["error"] for each in values.get("failed", [])}

    async def finish(self) -> None:
        """Wait until nothing waits to be remembered; what rules have read is read again another time."""
        await self.memory_agent.wait()
        self.memory_agent.check()
        await self.memory_agent.stop_rereading()
        while self.session.is_served and not await self.session.is_broken():
            if await self.session.inbox.waiting() <= len(await self.failures()):
                return
            await asyncio.sleep(SLOWEST_POLL_SECONDS)


async def show_notice(*who: str) -> None:
    """Refuse who cannot answer, before any work; print once that `rules` answers where no model is there.

    What a model server or a provider lacks here, a running server of ours may have: it answers then.
    """
    for each in dict.fromkeys(who):
        try:
            await check(each)
        except BadInput:
            raise
        except MnemeError:
            if await asyncio.to_thread(running_server) is None:
                raise
    if "auto" in who and (notice := auto_notice()):
        say(f"[yellow]{escape(notice)}[/]", errors)


async def get_ready(context: Context) -> None:
    """Print who answers, and load the rules where they do: once the memories are open, others wait."""
    who = [context[role] for role in ROLES if role in context]
    await show_notice(*who)
    if "rules" in [await resolve(each) for each in who]:
        await by_rules(read_message, read_message.given(message="I am here."))  # reads the dictionaries


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
                say(f"  {SIGNS[each['event']]} {each['key'][:SHORT]}  {escape(each['content'])}")
