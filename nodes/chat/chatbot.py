"""The chatbot (§2.2, Figure 1): recall, hand the message to the memory agent, reply, wake the agent.

The reply never waits for memory: handing over is one small write, and the memory agent works in the
background, after the reply. Only the user's messages are handed over (§2.2 assumes that the assistant's words
repeat what the user said), so neither recalled memories nor replies are stored back.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately
from langgraph.graph.message import add_messages
from langgraph.types import Overwrite
from pydantic import Field
from typing_extensions import TypedDict

from mneme.core.errors import BadInput
from mneme.models.asking.asking import ask
from mneme.models.asking.counting import NOTHING, Asked, sum_counts
from mneme.nodes.chat.context import ChatRuntime, MemoryContext, memories_of
from mneme.nodes.chat.waking import remember_later
from mneme.nodes.context import ledger_of, user_of
from mneme.nodes.messages import MESSAGES_EXAMPLE, turn
from mneme.nodes.shared_memory import lines_of, look_up
from mneme.nodes.workflow import Update, counted
from mneme.prompts.chat.chatbot import Turn, reply
from mneme.stores.audit import was_shown
from mneme.stores.users.inbox import PRECEDING, Inbox, Message, is_new

MAX_EARLIER_RECORDS = 20
"""Maximum records of the team shown in earlier replies, the latest first: outdated ones are pointed out."""


class Conversation(TypedDict):
    """The conversation so far; the last message is the user's."""

    messages: Annotated[
        list[AnyMessage],
        Field(
            description="The conversation so far, or what is new of it on a thread; the last is the user's.",
            examples=[MESSAGES_EXAMPLE],
        ),
        add_messages,
    ]


class State(Conversation, total=False):
    """The conversation, what was recalled for its last message and under which keys, and the reply's cost."""

    recalled: list[dict[str, str]]
    keys: list[str]
    unclear: list[str]
    said: list[str]
    shared: list[str]
    shown: list[str]
    asked: Annotated[Asked, sum_counts]


async def recall(state: State, runtime: ChatRuntime) -> Update:
    """Recall the memories that fit the user's message best."""
    message = state["messages"][-1] if state["messages"] else None
    if not isinstance(message, HumanMessage) or not message.text.strip():
        raise BadInput("There is no message to answer.", "Send a user message with some text in it.")
    context = runtime.context
    must_fit(message.text, context.window)  # before it is handed over: what is refused is not remembered
    memories, inbox, user = memories_of(runtime), Inbox(ledger_of(runtime)), user_of(runtime)
    # Messages of this thread that are not remembered yet are shown to the model, oldest first.
    thread = (runtime.execution_info and runtime.execution_info.thread_id) or ""
    waiting = await inbox.pending(user) if thread else []
    # Memories of the user's message before may have an open question (`unclear`) to ask.
    before = [each for each in state["messages"][:-1] if isinstance(each, HumanMessage)][-1:]
    outcomes = [await inbox.outcome(user, str(each.id)) for each in before]
    written = [each["key"] for outcome in outcomes if outcome for each in outcome["operations"]]
    unclear = []
    for key in dict.fromkeys(written):
        with suppress(BadInput):  # another program may have written it
            known = await memories.find(key)
            unclear += [known.memory.unclear] if known and known.live and known.memory.unclear else []
    shared = await look_up(runtime, message.text, "chatbot", own_facts=False)
    begun = {
        "unclear": unclear,
        "said": [each["message"] for each in waiting if each.get("thread") == thread and is_new(each)],
        "shared": shared,
        "shown": list(dict.fromkeys([*shared, *state.get("shown", [])]))[:MAX_EARLIER_RECORDS],
        "asked": Overwrite(NOTHING),  # the reducer would add to the counts of the turn before
    }
    if context.recall == 0:
        return begun | {"recalled": [], "keys": []}
    found = await memories.similar(message.text, k=context.recall, mode=context.search)
    recalled = [
        {"content": each.memory.timed, "told_on": each.memory.time[:10] or f"{each.at:%Y-%m-%d}"}
        for each in found
    ]
    keys = [each.key for each in found]
    was_shown(memories.ledger, user, "chatbot", keys)  # in the background: the reply does not wait for it
    return begun | {"recalled": recalled, "keys": keys}


def must_fit(message: str, window: int) -> None:
    """Raise BadInput if a message is longer than the window."""
    tokens = count_tokens_approximately([HumanMessage(message)])
    if tokens > window:
        raise BadInput(
            f"The message has about {tokens} tokens; the window holds {window}.",
            "Send it in parts.",
        )


async def hand_over(state: State, runtime: ChatRuntime) -> Update:
    """Put the user's message into the inbox, where it is safe even if the reply fails."""
    thread = (runtime.execution_info and runtime.execution_info.thread_id) or ""
    inbox, user, said = Inbox(ledger_of(runtime)), user_of(runtime), last_of(state["messages"], thread)
    await inbox.must_have_room(user, [said])  # raises: a reply would hide that the message is not kept
    await inbox.add(user, said)
    return {}


def last_of(messages: Sequence[BaseMessage], thread: str) -> Message:
    """Return the last message of a conversation, with those before it, as input of the memory agent."""
    *before, last = messages[-1 - PRECEDING :]
    return Message(
        message=last.text,
        message_id=str(last.id or ""),
        preceding=[turn(each) for each in before],
        thread=thread,
    )


@counted
async def respond(state: State, runtime: ChatRuntime) -> Update:
    """Answer at once, token by token, from the latest whole turns in the window (§2.2) and the memories."""
    history = trim_messages(
        state["messages"],
        max_tokens=runtime.context.window,
        token_counter=count_tokens_approximately,
        strategy="last",
        start_on="human",  # a reply without the message that it answers is no turn
        include_system=True,
    )
    asked = Turn(
        message=state["messages"][-1].text,
        memories=state["recalled"],
        today=f"{datetime.now():%A, %Y-%m-%d}",  # with the weekday, for "next Friday"
        unclear=state.get("unclear", []),
        said=state.get("said", []),
        shared=await lines_of(runtime, state.get("shared", []), state.get("shown", [])),
    )
    answered = await ask(reply, asked, runtime.context.chatbot, history=history[:-1])
    # With the id of the streamed tokens, so that a client does not show the reply twice.
    return {"messages": [AIMessage(answered.value, id=answered.message_id)]}


async def wake(state: State, runtime: ChatRuntime) -> Update:
    """Let the LangGraph server remember waiting messages; without it, the caller runs `remember`."""
    if runtime.server_info is not None:
        context = runtime.context.model_dump(include=set(MemoryContext.model_fields))
        context["user"] = user_of(runtime)  # the server's own run will have no authenticated user
        await remember_later(ledger_of(runtime), context, runtime.context.debounce)
    return {}
