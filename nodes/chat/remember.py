"""Remember the waiting messages, oldest first, one by one: the memory agent in batches.

A message waits in the inbox until its outcome is in the ledger, so a process that dies loses none,
and a message that no model could make sense of is kept for another attempt.
"""

import asyncio
from operator import add
from typing import Annotated, Any, Literal, cast

from langgraph.errors import NodeError
from langgraph.types import Command, Overwrite
from pydantic import Field
from typing_extensions import TypedDict

from mneme.core.errors import BadAnswer, MnemeError, PromptTooLong
from mneme.models.asking.asking import resolve
from mneme.models.asking.counting import NOTHING, Asked, sum_counts
from mneme.nodes.chat.asking_owner import Questions, next_question
from mneme.nodes.chat.chatbot import last_of
from mneme.nodes.chat.context import MemoryRuntime, memories_of
from mneme.nodes.chat.memory_operations import statements_of
from mneme.nodes.context import ledger_of, user_of
from mneme.nodes.messages import MESSAGES_EXAMPLE, spoken
from mneme.stores.users.inbox import Inbox, Message, OperationNote, complete, is_new
from mneme.stores.users.memory import RULES


class Batch(TypedDict, total=False):
    """Messages to remember beside those that are waiting already; may be empty.

    Each is a `Message` or a chat message; of chat messages the user's are remembered, the others are context.
    """

    messages: Annotated[
        list[Any],
        Field(
            [],
            description="Chat messages (LangChain's, or role and content), of which the user's are "
            "remembered; or messages with their own ids and times. None: what waits is remembered.",
            examples=[
                MESSAGES_EXAMPLE,
                [{"message": "I moved to Denver.", "message_id": "m-1", "time": "2026-11-20T09:30:00Z"}],
            ],
            json_schema_extra={"items": {"type": "object"}},
        ),
    ]


class Failure(TypedDict):
    """A message that is kept for another attempt, and the reason."""

    message_id: str
    error: str


class Report(TypedDict, total=False):
    """Report of a run: how many messages were remembered, which are kept for another attempt, and the cost.

    `reread` counts memories by rules whose messages a model has read again.
    """

    remembered: int
    reread: int
    failed: Annotated[list[Failure], add]
    asked: Annotated[Asked, sum_counts]


class State(Batch, Report, Questions, total=False):
    """The batch, the current message with its outcome, and the report."""

    message: str
    message_id: str
    preceding: list[str]
    time: str
    thread: str
    rereads: str
    told_in: str
    route: str
    rationale: str
    model: str
    operations: list[OperationNote]


PAUSE = 0.5
"""Seconds between two checks whether another process has remembered a message."""
Next = Command[Literal["memory_agent", "ask_owner", "__end__"]]


async def take_in(state: State, runtime: MemoryRuntime) -> dict[str, Any]:
    """Add the batch to the inbox, where it is safe: all of it, or nothing if there is no room."""
    inbox, user, given = Inbox(ledger_of(runtime)), user_of(runtime), state.get("messages", [])
    batch = [cast(Message, each) for each in given if isinstance(each, dict) and "message" in each]
    chat = spoken([each for each in given if each not in batch])
    batch += [last_of(chat[: at + 1], thread="") for at, each in enumerate(chat) if each.type == "human"]
    if batch:
        await inbox.must_have_room(user, batch)
    for message in batch:
        await inbox.add(user, message)
    return {
        "messages": [],
        "remembered": 0,
        "reread": 0,
        "asked_about": [],
        "failed": Overwrite([]),
        "asked": Overwrite(NOTHING),
    }


async def take(state: State, runtime: MemoryRuntime) -> Next:
    """Take the oldest waiting message that has not failed in this run, else the oldest to be read again.

    If none is left, ask the owner what a team may know (where somebody can answer), and end.
    """
    inbox, user, rereads = Inbox(ledger_of(runtime)), user_of(runtime), runtime.context.reread
    failed = {failure["message_id"] for failure in state["failed"]}
    while True:
        waiting = [each for each in await inbox.pending(user) if each["message_id"] not in failed]
        again = [each for each in waiting if each.get("rereads") and rereads]
        oldest = next(iter([*filter(is_new, waiting), *again]), None)  # what the user said goes first
        if oldest is None and rereads and not failed:
            oldest = await _read_by_rules(runtime)
        if oldest is None:
            asked = state["asked_about"]
            if runtime.context.asks_owner and (question := await next_question(asked, runtime)):
                return Command(goto="ask_owner", update={"asked_about": [*asked, question]})
            return Command(goto="__end__")
        if await inbox.claim(user, oldest["message_id"]):
            # New messages lack both fields, and would inherit those of the message before.
            return Command(goto="memory_agent", update={"rereads": "", "told_in": "", **oldest})
        await asyncio.sleep(PAUSE)  # another process has claimed it: the next message may repeat this one


async def _read_by_rules(runtime: MemoryRuntime) -> Message | None:
    """Add the user's words of the oldest memory by rules to the inbox again, if a model answers now."""
    if await resolve(runtime.context.memory_agent) == RULES:
        return None
    inbox, user = Inbox(ledger_of(runtime)), user_of(runtime)
    for known in await memories_of(runtime).read_by_rules():
        memory = known.memory
        again = complete(
            Message(
                message="\n".join(dict.fromkeys(each.quote for each in statements_of(memory))),
                message_id=f"reread-{known.key}-{known.version}",  # each version is read again once
                time=memory.time,
                thread=memory.thread,
                rereads=known.key,
                told_in=memory.message_id,
            )
        )
        if not await inbox.knows(user, again["message_id"]):
            await inbox.add(user, again)
            return again
    return None


def count(state: State) -> dict[str, int]:
    """Count a message whose outcome is in the ledger."""
    if state.get("rereads"):
        return {"reread": state["reread"] + 1}
    return {"remembered": state["remembered"] + 1}


async def keep(state: State, error: NodeError, runtime: MemoryRuntime) -> Command[Literal["take"]]:
    """Keep a message on which the memory agent failed for another attempt, with the reason; never drop it."""
    if not isinstance(error.error, BaseException):
        return Command(goto="take")  # a checkpoint of a stopped run has only the text
    if not isinstance(error.error, MnemeError):
        raise error.error  # a fault of the program: the run ends, and the message waits
    asked = NOTHING.copy()
    # A server that is down must not set a message aside: only what may be due to the message counts.
    counts = isinstance(error.error, BadAnswer | PromptTooLong)
    if counts:
        asked["questions"] = asked["refused"] = 1  # the subgraph's own count is lost
    reply = error.error.raw if isinstance(error.error, BadAnswer) else ""
    inbox, why = Inbox(ledger_of(runtime)), str(error.error)
    await inbox.fail(user_of(runtime), state["message_id"], why, reply, counts=counts)
    failure = Failure(message_id=state["message_id"], error=str(error.error))
    return Command(goto="take", update={"failed": [failure], "asked": asked})
